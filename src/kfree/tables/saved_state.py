"""What a TablePreparation has learned, as one text and a few arrays, and back.

Files of models keep each Python object with the name of its type, which for ten thousand columns is
many times the data. So everything that is not an array is one JSON text. It may come from a file
that somebody else made: what does not fit together is refused here, and not met in `transform`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from kfree.tables.categories import OTHER
from kfree.tables.dates import BAR, CIRCLES, DATES
from kfree.tables.free_text import TextMap
from kfree.tables.kinds import Column
from kfree.tables.numbers import COMMA, POINT, Reading, Style

PARAMETERS = ("drop", "keep", "categorical", "decimal", "thousands")
ARRAYS = ("median_", "center_", "scale_")
# Plain JSON as it stands.
LEARNED = ("circles_", "values_", "rare_values_", "notes_")
# Set by scikit-learn's set_output.
OUTPUT = "_sklearn_output_config"
KINDS = ("number", "date", "category", "text", "left out")
USUAL = Column("", "number")


def state_of(prepare: Any) -> dict[str, Any]:
    """All that a preparation knows."""
    told: dict[str, Any] = {"parameters": {}, "tuples": []}
    for name in PARAMETERS:
        value = getattr(prepare, name)
        told["parameters"][name] = value if value is None or isinstance(value, str) else list(value)
        if isinstance(value, tuple):
            told["tuples"].append(name)
    if hasattr(prepare, OUTPUT):
        told["output"] = getattr(prepare, OUTPUT)
    if not hasattr(prepare, "columns_"):
        return {"told": json.dumps(told)}
    told |= _alike(prepare.columns_)
    told |= {name: getattr(prepare, name) for name in LEARNED}
    told["terms"] = [list(prepare.text_maps_[name].terms) for name in prepare.texts_]
    return {
        "told": json.dumps(told, ensure_ascii=False),
        **{name: getattr(prepare, name) for name in ARRAYS},
        "rarity": [prepare.text_maps_[name].rarity for name in prepare.texts_],
        "directions": [prepare.text_maps_[name].directions for name in prepare.texts_],
    }


def restore(prepare: Any, state: dict[str, Any]) -> None:
    """Make a preparation what `state_of` was given."""
    told = json.loads(state["told"])
    for name in PARAMETERS:
        value = told["parameters"][name]
        setattr(prepare, name, tuple(value) if name in told["tuples"] else value)
    if "output" in told:
        setattr(prepare, OUTPUT, told["output"])
    if "columns" not in told:
        return
    prepare.columns_ = _columns(told)
    prepare.feature_names_in_ = np.array([c.name for c in prepare.columns_], dtype=object)
    prepare.n_features_in_ = len(prepare.columns_)
    for name in LEARNED:
        setattr(prepare, name, told[name])
    for name in ARRAYS:
        setattr(prepare, name, state[name])
    texts = [column.name for column in prepare.columns_ if column.kind == "text"]
    parts = zip(texts, told["terms"], state["rarity"], state["directions"], strict=True)
    prepare.text_maps_ = {
        name: TextMap(tuple(terms), rarity, directions) for name, terms, rarity, directions in parts
    }


def check(prepare: Any) -> None:
    """Raise ValueError unless what was restored fits together."""
    names = [column.name for column in prepare.columns_]
    _demand(len(set(names)) == len(names) and all(isinstance(n, str) for n in names), "columns")
    _demand(all(column.kind in KINDS for column in prepare.columns_), "columns")
    formats = [part for f in prepare.date_formats_.values() if f for part in f.split(BAR)]
    _demand(all(part in DATES for part in formats), "dates")
    _demand(_is_texts([column.unit for column in prepare.columns_]), "numbers")
    for column in prepare.columns_:
        if column.style is not None:
            _demand(column.style.decimal in (POINT, COMMA), "numbers")
            _demand(column.style.thousands in ("", POINT, COMMA), "numbers")
    n_numbers = len(prepare.numbers_)
    for name in ARRAYS:
        _demand_numbers(getattr(prepare, name), (n_numbers,), "numbers")
    _demand(bool((prepare.scale_ > 0).all()), "numbers")
    for pair in prepare.circles_:
        _demand(len(pair) == 2 and pair[0] in prepare.date_formats_, "dates")
        _demand(pair[1] in CIRCLES, "dates")
    _demand(set(prepare.values_) == set(prepare.categories_), "categories")
    _demand(set(prepare.rare_values_) <= set(prepare.categories_), "categories")
    for values in (*prepare.values_.values(), *prepare.rare_values_.values()):
        _demand(_is_texts(values) and len(values) > 0, "categories")
    for name in prepare.rare_values_:
        _demand(OTHER in prepare.values_[name], "categories")
    for learned in prepare.text_maps_.values():
        n_terms = len(learned.terms)
        _demand(_is_texts(learned.terms) and len(set(learned.terms)) == n_terms > 0, "texts")
        _demand_numbers(learned.rarity, (n_terms,), "texts")
        _demand(isinstance(learned.directions, np.ndarray), "texts")
        _demand(learned.directions.ndim == 2 and len(learned.directions) > 0, "texts")
        _demand_numbers(learned.directions, (len(learned.directions), n_terms), "texts")
    _demand(_is_texts(prepare.notes_), "notes")


def _alike(columns: Sequence[Column]) -> dict[str, Any]:
    """The names of columns, what is not as usual about each kind of them, and each one's kind.

    Of thousands of columns most are alike but for their names.
    """
    kinds: dict[str, int] = {}
    numbers = []
    for column in columns:
        unusual = {
            field.name: getattr(column, field.name)
            for field in fields(Column)
            if field.name != "name" and getattr(column, field.name) != getattr(USUAL, field.name)
        }
        text = json.dumps(unusual, default=asdict, ensure_ascii=False)
        numbers.append(kinds.setdefault(text, len(kinds)))
    return {
        "columns": [column.name for column in columns],
        "kinds": [json.loads(text) for text in kinds],
        "kind_of": numbers,
    }


def _columns(told: dict[str, Any]) -> list[Column]:
    kinds = [_kind(values) for values in told["kinds"]]
    pairs = zip(told["columns"], told["kind_of"], strict=True)
    return [Column(name, **kinds[number]) for name, number in pairs]


def _kind(values: dict[str, Any]) -> dict[str, Any]:
    known = {field.name for field in fields(Column)} - {"name"}
    _demand(isinstance(values, dict) and set(values) <= known, "columns")
    values = {"kind": USUAL.kind, **values}
    values["signs"] = tuple(values.get("signs", ()))
    if values.get("style") is not None:
        values["style"] = Style(**values["style"])
    if values.get("reading") is not None:
        reading = dict(values["reading"])
        values["reading"] = Reading(Style(**reading.pop("style")), **reading)
    return values


def _is_texts(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)


def _demand_numbers(values: Any, shape: tuple[int, ...], what: str) -> None:
    _demand(isinstance(values, np.ndarray) and values.dtype.kind == "f", what)
    _demand(values.shape == shape and bool(np.isfinite(values).all()), what)


def _demand(fine: bool, what: str) -> None:
    if not fine:
        raise ValueError(f"The {what} of the saved table do not fit together.")
