"""Columns of any kind made ready for distances."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from kfree.tables.kinds import Column, as_days, as_numbers, as_text, judge
from kfree.tables.messages import TableError, TableWarning, count, listed, nearest

# Categories beyond this number are taken together, the rarest first.
MOST_CATEGORIES = 100
MISSING = "(missing)"
# From how many cells on a column of numbers without a single number is taken as a mistake.
FEWEST_CELLS = 10

# Is given a sentence, and what it is about.
Say = Callable[[str, str], None]


class TablePreparation(TransformerMixin, BaseEstimator):
    """Makes a table ready for a classifier that measures distances.

    Numbers are standardized, with the median for missing ones. Categories (text, booleans) become
    one column for each value; a missing cell is a value of its own, and a value that was not there
    in `fit` is none of them. Dates become days, then numbers. Columns that tell nothing (always the
    same value, empty) or stand for the row itself (identifiers, free text) are left out. `notes_`
    says what was done to which column.

    New data are matched by the names of their columns: the order does not matter, and columns that
    are not needed are passed over.

    Parameters
    ----------
    drop : sequence of str, default=()
        Columns to be left out.
    keep : sequence of str, default=()
        Columns that are not to be left out as identifiers or free text.
    categorical : sequence of str, default=()
        Columns whose numbers are codes for categories.

    Attributes
    ----------
    notes_ : list of str
        Sentences: what was done to which columns.
    numbers_, categories_ : list of str
        The columns taken as numbers (dates among them) and as categories.
    left_out_ : dict of str to str
        The columns left out, and why.
    identifiers_ : list of str
        Those of them that were left out as identifiers.
    feature_names_in_ : ndarray of str
    n_features_in_ : int

    Examples
    --------
    >>> import pandas as pd
    >>> from kfree.tables import TablePreparation
    >>> frame = pd.DataFrame(
    ...     {"id": [7, 8, 9], "size": [1.0, None, 3.0], "color": ["red", "blue", "red"]}
    ... )
    >>> preparation = TablePreparation().fit(frame)
    >>> preparation.get_feature_names_out()
    array(['size', 'color=blue', 'color=red'], dtype=object)
    >>> for note in preparation.notes_:
    ...     print(note)
    1 column of numbers, standardized: 'size'.
    1 column of categories, one feature for each value: 'color' (2 values).
    Missing numbers were filled in with the median: 'size' (1 cell).
    Left out: 'id' (it numbers the rows: an identifier).
    """

    def __init__(
        self,
        *,
        drop: Sequence[str] = (),
        keep: Sequence[str] = (),
        categorical: Sequence[str] = (),
    ) -> None:
        self.drop = drop
        self.keep = keep
        self.categorical = categorical

    def fit(self, X: Any, y: Any = None) -> TablePreparation:
        """Find out what each column is, and learn medians, scales and categories.

        Parameters
        ----------
        X : pandas.DataFrame
        y : ignored

        Returns
        -------
        self
        """
        frame = _as_frame(X)
        for given in ("drop", "keep", "categorical"):
            for name in getattr(self, given):
                if name not in frame.columns:
                    raise TableError(
                        f"{given} names the column {name!r}, which the table does not have; "
                        f"it has {listed(nearest(name, frame.columns) or frame.columns)}."
                    )
        columns = [
            Column(name, "left out", "as asked for")
            if name in self.drop
            else judge(frame[name], keep=name in self.keep, category=name in self.categorical)
            for name in frame.columns
        ]
        used = [column for column in columns if column.kind != "left out"]
        if not used:
            whole = "; ".join(f"{column.name!r}: {column.why}" for column in columns[:6])
            raise TableError("No column is left to learn from" + (f" ({whole})." if whole else "."))
        self.numbers_ = [column.name for column in used if column.kind != "category"]
        self.categories_ = [column.name for column in used if column.kind == "category"]
        self.date_formats_ = {
            column.name: column.date_format for column in used if _is_date(column)
        }
        self.left_out_ = {
            column.name: column.why for column in columns if column.kind == "left out"
        }
        self.identifiers_ = [column.name for column in columns if column.identifier]
        self.text_columns_ = [name for name in frame.columns if _is_text(frame[name])]
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.n_features_in_ = len(frame.columns)
        numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        # Values beyond the most common ones share a column, and so do new ones then; without such
        # a column a new value is zero in all of them.
        categories = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=MOST_CATEGORIES,
            sparse_output=False,
        )
        self.transformer_ = ColumnTransformer(
            [("numbers", numbers, self.numbers_), ("categories", categories, self.categories_)]
        ).fit(self._plain(frame, _say_nothing))
        self.notes_ = _notes(columns)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The table as numbers.

        Parameters
        ----------
        X : pandas.DataFrame
            With at least the columns that are used, in any order.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out)
        """
        check_is_fitted(self)
        frame = _as_frame(X)
        needed = self.numbers_ + self.categories_
        lacking = [name for name in needed if name not in frame.columns]
        if lacking:
            close = nearest(lacking[0], set(frame.columns) - set(needed), most=1)
            hint = f" (is {lacking[0]!r} perhaps {close[0]!r}?)" if close else ""
            raise TableError(
                f"The table lacks {'a column' if len(lacking) == 1 else 'columns'} that the model "
                f"was fitted with: {listed(lacking)}{hint}."
            )
        unknown = [name for name in frame.columns if name not in set(self.feature_names_in_)]
        if unknown:
            _warn(
                f"Columns that the model does not know were passed over: {listed(unknown)}.",
                "unknown columns",
            )
        if not len(frame):
            return np.empty((0, len(self.get_feature_names_out())))
        plain = self._plain(frame, _warn)
        if self.categories_:
            self._look_at_categories(plain, _warn)
        return self.transformer_.transform(plain)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features made: the column, or column=value for a category.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = list(self.numbers_)
        if self.categories_:
            encoder = self.transformer_.named_transformers_["categories"]
            rare = encoder.infrequent_categories_
            for name, values, few in zip(self.categories_, encoder.categories_, rare, strict=True):
                common = values if few is None else [value for value in values if value not in few]
                names += [f"{name}={value}" for value in common]
                names += [] if few is None else [f"{name}=(other)"]
        return np.array(names, dtype=object)

    def _plain(self, frame: Any, say: Say) -> Any:
        """The used columns only, each as floats or as texts without missing ones."""
        import pandas as pd

        plain = {}
        for name in self.numbers_:
            column = frame[name]
            if name in self.date_formats_:
                numbers, noun = as_days(column, self.date_formats_[name]), "date"
            else:
                numbers, noun = as_numbers(column), "number"
            _look_at_numbers(column, numbers, noun, say)
            plain[name] = pd.Series(numbers)
        for name in self.categories_:
            text = as_text(frame[name])
            text[text == None] = MISSING  # noqa: E711 - elementwise
            plain[name] = pd.Series(text, dtype=object)
        return pd.DataFrame(plain)

    def _look_at_categories(self, plain: Any, say: Say) -> None:
        """Say which values were not there in fit."""
        encoder = self.transformer_.named_transformers_["categories"]
        for name, known in zip(self.categories_, encoder.categories_, strict=True):
            new = sorted(set(plain[name]) - set(known) - {MISSING})
            if new:
                say(
                    f"The column {name!r} has values that were not there in fit: {listed(new)}.",
                    f"new values in {name}",
                )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _as_frame(X: Any) -> Any:
    """The table as a pandas.DataFrame whose columns have names of their own."""
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
        raise TableError(
            "TablePreparation needs a table whose columns have names, a pandas.DataFrame; "
            f"got {type(X).__name__}."
        )
    names = [str(name) for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TableError(f"The table has more than one column named {listed(twice)}.")
    return frame if names == list(frame.columns) else frame.set_axis(names, axis=1)


def _is_date(column: Column) -> bool:
    return column.kind == "date"


def _is_text(column: Any) -> bool:
    from pandas.api.types import is_object_dtype, is_string_dtype

    return bool(is_object_dtype(column.dtype) or is_string_dtype(column.dtype))


def _look_at_numbers(column: Any, numbers: np.ndarray, noun: str, say: Say) -> None:
    """Say which cells of a column are not what they should be; raise if it is all of them."""
    wrong = np.isnan(numbers) & column.notna().to_numpy(dtype=bool)
    if not wrong.any():
        return
    example = column.to_numpy()[wrong][0]
    if wrong.sum() >= FEWEST_CELLS and not np.isfinite(numbers).any():
        raise TableError(
            f"The column {column.name!r} held {noun}s in fit, but has none here: its cells are "
            f"like {str(example)!r}."
        )
    say(
        f"The column {column.name!r} has cells that are not a {noun}, such as {str(example)!r}; "
        "they were taken as missing.",
        f"no {noun}s in {column.name}",
    )


def _notes(columns: Sequence[Column]) -> list[str]:
    """What was done to which columns."""
    numbers = [column.name for column in columns if column.kind == "number"]
    dates = [column.name for column in columns if column.kind == "date"]
    categories = [
        f"{column.name!r} ({count(column.n_values, 'value')})"
        for column in columns
        if column.kind == "category"
    ]
    notes = []
    if numbers:
        notes.append(
            f"{count(len(numbers), 'column')} of numbers, standardized: {listed(numbers)}."
        )
    if categories:
        notes.append(
            f"{count(len(categories), 'column')} of categories, one feature for each value: "
            f"{_joined(categories)}."
        )
    many = [column.name for column in columns if column.n_values > MOST_CATEGORIES]
    many = [name for name in many if name not in numbers and name not in dates]
    if many:
        notes.append(
            f"Of {listed(many)} the {MOST_CATEGORIES - 1} most common values have a feature each; "
            "the others share one."
        )
    if dates:
        notes.append(f"{count(len(dates), 'column')} of dates, taken as days: {listed(dates)}.")
    for column in columns:
        if column.kind == "date" and column.date_format == "%d/%m/%Y":
            notes.append(f"The dates of {column.name!r} were read as day/month/year.")
        if column.unreadable:
            notes.append(
                f"{column.name!r} has cells that are not numbers, such as {column.unreadable!r}; "
                "they were taken as missing."
            )
    for kinds, how in (
        (("number", "date"), "Missing numbers were filled in with the median"),
        (("category",), "Missing categories count as a value of their own"),
    ):
        missing = [
            f"{column.name!r} ({count(column.n_missing, 'cell')})"
            for column in columns
            if column.kind in kinds and column.n_missing
        ]
        if missing:
            notes.append(f"{how}: {_joined(missing)}.")
    out = [f"{column.name!r} ({column.why})" for column in columns if column.kind == "left out"]
    if out:
        notes.append(f"Left out: {_joined(out, most=12)}.")
    return notes


def _joined(parts: list[str], most: int = 6) -> str:
    if len(parts) > most + 1:
        return f"{', '.join(parts[:most])} and {len(parts) - most} more"
    return ", ".join(parts)


def _warn(sentence: str, topic: str) -> None:
    warnings.warn(TableWarning(sentence, topic), stacklevel=2)


def _say_nothing(sentence: str, topic: str) -> None:
    """What was found in fit is in the notes."""
