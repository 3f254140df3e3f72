"""How long something took, as days: 41:03:22, 89:12, 2 days 03:00:00, PT3H25M, 3h 25m, 90 min."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

# In days, by the first letter of a unit.
LENGTHS = {"w": 7.0, "d": 1.0, "h": 1 / 24, "m": 1 / 1440, "s": 1 / 86_400}
UNIT = r"(w(?:eeks?)?|d(?:ays?)?|h(?:(?:ou)?rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
# 3h 25m.
PART = re.compile(rf"\s*(\d+(?:\.\d+)?) ?{UNIT},?")
# A clock's form, after days if there are any; pandas writes minus an hour as -1 days +23:00:00.
CLOCK = re.compile(r"(-)?(?:(\d+) days?,? )?(\+)?(\d+):(\d\d)(?::(\d\d(?:[.,]\d+)?))?")
# ISO 8601.
ISO = re.compile(r"p(?=.)(?:\d+d)?(?:t(?=.)(?:\d+h)?(?:\d+m)?(?:\d+(?:\.\d+)?s)?)?")
# What looks like one of these, if every letter is an a and every digit a zero.
PATTERN = (
    r"-?(\d+ [A-Za-z]+,? \+?)?\d+:\d{2}(:\d{2}([.,]\d+)?)?"
    r"|([\d.]+ ?[A-Za-z]+,? ?)+|[A-Za-z]{1,2}([\d.]+[A-Za-z]{1,2})+"
)


def days_of_durations(texts: Sequence[str]) -> np.ndarray:
    """The days (n_texts,) that each took; NaN for what is no duration."""
    return np.array([_days(text.lower()) for text in texts], dtype=float)


def _days(text: str) -> float:
    clock = CLOCK.fullmatch(text)
    if clock:
        sign, days, plus, hours, minutes, seconds = clock.groups(default="")
        whole = float(days or 0)
        part = int(hours) / 24 + int(minutes) / 1440
        part += float((seconds or "0").replace(",", ".")) / 86_400
        if not sign:
            return whole + part
        return part - whole if plus else -whole - part
    if ISO.fullmatch(text):
        # Months have no M here, so the units are those below.
        text = text.replace("p", "").replace("t", "")
        return sum(float(n) * LENGTHS[unit] for n, unit in re.findall(r"([\d.]+)([dhms])", text))
    if PART.sub("", text).strip():
        return np.nan
    return sum(float(number) * LENGTHS[unit[0]] for number, unit in PART.findall(text))
