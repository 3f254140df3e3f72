"""Columns of any kind made ready for distances."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kfree.plain_text import quoted
from kfree.tables import dates, free_text, saved_state
from kfree.tables.categories import learn_values, one_hot
from kfree.tables.cells import (
    Cells,
    as_frame,
    as_texts,
    cells_of_frame,
    plain_numbers,
)
from kfree.tables.kinds import MOST, Column, judge, settle_dates
from kfree.tables.messages import TableError, TableWarning
from kfree.tables.names import refuse_lacking, refuse_unknown
from kfree.tables.notes import notes
from kfree.tables.numbers import POINT, Reading, given_style, read_columns
from kfree.tables.relevance import MOST_ROWS, hiding, tells
from kfree.tables.scaling import learn_scales, usable
from kfree.tables.tally import Tally
from kfree.tables.units import bare, common_unit, has_limits


class TablePreparation(TransformerMixin, BaseEstimator):
    """Makes a table ready for a classifier that measures distances.

    Numbers are standardized, with the median for missing ones. Text that holds numbers is read as
    numbers, also with a decimal comma, thousands set apart, a currency or a percent sign. Dates
    become days, and where the labels depend on them also weekday, season and time of day.
    Categories (text, booleans) become one column for each value; a missing cell is a value of its
    own, and a value that was not there in `fit` is none of them. Free text becomes features by
    which texts that look alike are near each other. Columns that tell nothing (always the same
    value, empty, free text that the labels do not depend on or that hides what other columns tell)
    or stand for the row itself (identifiers) are left out. `notes_` says what was done to which
    column.

    New data are matched by the names of their columns: the order does not matter, and columns that
    are not needed are passed over.

    Parameters
    ----------
    drop : sequence of str, default=()
        Columns to be left out.
    keep : sequence of str, default=()
        Columns that are not to be left out as identifiers.
    categorical : sequence of str, default=()
        Columns whose numbers are codes for categories.
    decimal : {".", ","}, default=None
        The decimal mark of numbers that are text. None: each column tells.
    thousands : {",", ".", " ", "'", "none"}, default=None
        What sets thousands apart in them; spaces and apostrophes are always understood. None: each
        column tells.

    Attributes
    ----------
    notes_ : list of str
        Sentences: what was done to which columns.
    columns_ : list of Column
        What was found out about each column.
    numbers_, categories_, texts_ : list of str
        The columns taken as numbers (dates among them), as categories and as free text.
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
    ...     {"id": [7, 8, 9], "size": ["$1,200", None, "$950"], "color": ["red", "blue", "red"]}
    ... )
    >>> preparation = TablePreparation().fit(frame)
    >>> preparation.get_feature_names_out()
    array(['size', 'color=blue', 'color=red'], dtype=object)
    >>> for note in preparation.notes_:
    ...     print(note)
    1 column of numbers, standardized: 'size'.
    1 column of categories, one feature for each value: 'color' (2 values).
    '$1,200' was read as 1200, and so on, in 'size'.
    Missing numbers were filled in with the median: 'size' (1 cell).
    Left out: 'id' (it numbers the rows: an identifier).
    """

    def __init__(
        self,
        *,
        drop: Sequence[str] = (),
        keep: Sequence[str] = (),
        categorical: Sequence[str] = (),
        decimal: str | None = None,
        thousands: str | None = None,
    ) -> None:
        self.drop = drop
        self.keep = keep
        self.categorical = categorical
        self.decimal = decimal
        self.thousands = thousands

    def fit(self, X: Any, y: Any = None) -> TablePreparation:
        """Find out what each column is, and learn medians, scales and categories.

        Parameters
        ----------
        X : pandas.DataFrame
        y : array-like of shape (n_rows,), default=None
            Labels, by which texts, weekdays and seasons are left out that tell nothing. None:
            texts are taken, weekdays and seasons are not.

        Returns
        -------
        self
        """
        frame, y = as_frame(X), None if y is None else np.asarray(y)
        for option in ("drop", "keep", "categorical"):
            refuse_unknown(option, getattr(self, option), frame.columns)
        dropped, kept, codes = set(self.drop), set(self.keep), set(self.categorical)
        cells = cells_of_frame(frame, [n for n in frame.columns if n not in dropped], codes)
        texts = {
            name: found.texts
            for name, found in cells.items()
            if found.texts is not None and name not in codes
        }
        hint = frame.attrs.get("decimal", POINT)
        given = given_style(self.decimal, self.thousands)
        units = {name: common_unit(column) for name, column in texts.items()}
        numbers = {
            name: bare(column, units[name], limits=has_limits(column))
            for name, column in texts.items()
        }
        read = read_columns(numbers, given, dict.fromkeys(texts, hint))
        columns = [
            Column(name, "left out", "as asked for")
            if name in dropped
            else judge(
                cells[name],
                read.get(name),
                unit=units.get(name, ""),
                keep=name in kept,
                category=name in codes,
            )
            for name in frame.columns
        ]
        self.columns_ = settle_dates(columns)
        self._learn_texts(cells, y)
        self._sort_columns()
        if not (self.numbers_ or self.categories_ or self.texts_):
            whole = "; ".join(f"{quoted(c.name)}: {c.why}" for c in self.columns_[:6])
            raise TableError("No column is left to learn from" + (f" ({whole})." if whole else "."))
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.n_features_in_ = len(frame.columns)
        self._learn_numbers(cells, read, y)
        self.values_, self.rare_values_ = {}, {}
        for name in self.categories_:
            self.values_[name], rare = learn_values(cells[name].texts or [])
            if rare:
                self.rare_values_[name] = rare
        if y is not None and self.texts_ and (self.numbers_ or self.categories_):
            self._leave_out_hiding(frame, y)
        self.notes_ = notes(self.columns_, self.circles_)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and the same table as numbers. What is odd about it is in the notes, not warned of.

        Parameters
        ----------
        X : pandas.DataFrame
        y : array-like of shape (n_rows,), default=None
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out)
        """
        return self.fit(X, y).transform_block(X, Tally())

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
        tally = Tally()
        features = self.transform_block(X, tally)
        for sentence, topic in tally.oddities():
            warnings.warn(TableWarning(sentence, topic), stacklevel=2)
        return features

    def transform_block(self, X: Any, tally: Tally) -> np.ndarray:
        """A block of a table as numbers; what is found in it is added to `tally`, not warned of.

        Parameters
        ----------
        X : pandas.DataFrame
        tally : Tally
            Of the whole table.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out)
        """
        check_is_fitted(self)
        frame = as_frame(X)
        refuse_lacking(self.numbers_ + self.categories_ + self.texts_, frame)
        known = set(self.feature_names_in_)
        tally.unknown_columns = [name for name in frame.columns if name not in known]
        if not len(frame):
            return np.empty((0, len(self.get_feature_names_out())))
        numbers = self._read_numbers(frame, tally)  # (n_rows, n_numbers)
        place = {name: j for j, name in enumerate(self.numbers_)}
        filled = np.where(np.isnan(numbers), self.median_, numbers)
        parts = [(filled - self.center_) / self.scale_]
        for name, circle in self.circles_:
            parts.append(dates.on_circle(numbers[:, place[name]], circle))
        for name in self.categories_:
            rare = self.rare_values_.get(name, ())
            features, new = one_hot(as_texts(frame[name]), self.values_[name], rare)
            parts.append(features)
            if new:
                tally.add_values(name, new)
        for name in self.texts_:
            parts.append(free_text.features(as_texts(frame[name]), self.text_maps_[name]))
        return np.hstack(parts)

    def numbers_of(self, X: Any) -> dict[str, np.ndarray]:
        """The columns taken as numbers, without dates, as numbers; NaN for what is none.

        Parameters
        ----------
        X : pandas.DataFrame

        Returns
        -------
        dict of str to ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        table = self._read_numbers(as_frame(X), Tally())
        return {
            name: table[:, j]
            for j, name in enumerate(self.numbers_)
            if name not in self.date_formats_
        }

    def readable(self, X: Any) -> Any:
        """The table as it was understood, for people: numbers as numbers, None for empty cells.

        Parameters
        ----------
        X : pandas.DataFrame

        Returns
        -------
        pandas.DataFrame
            Of the same rows and columns. Dates, categories, texts and what was left out stay as
            they are written, without surrounding blanks.
        """
        import pandas as pd
        from pandas.api.types import is_string_dtype

        frame = as_frame(X)
        numbers = self.numbers_of(frame)
        columns = {}
        for name, column in frame.items():
            if name in numbers:
                columns[name] = pd.Series(numbers[name], index=frame.index)
            elif is_string_dtype(column.dtype) and hasattr(column, "str"):
                columns[name] = pd.Series(as_texts(column), index=frame.index, dtype=object)
            else:
                columns[name] = column
        return pd.DataFrame(columns, index=frame.index)

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
        for name, circle in self.circles_:
            names += [f"{name} ({circle}, sine)", f"{name} ({circle}, cosine)"]
        for name in self.categories_:
            names += [f"{name}={value}" for value in self.values_[name]]
        for name in self.texts_:
            n_features = len(self.text_maps_[name].directions)
            names += [f"{name} (text {i + 1})" for i in range(n_features)]
        return np.array(names, dtype=object)

    def _sort_columns(self) -> None:
        """The names of the columns by what they are."""
        used = [column for column in self.columns_ if column.kind != "left out"]
        self.numbers_ = [c.name for c in used if c.kind in ("number", "date")]
        self.categories_ = [c.name for c in used if c.kind == "category"]
        self.texts_ = [c.name for c in used if c.kind == "text"]
        self.date_formats_ = {c.name: c.date_format for c in used if c.kind == "date"}
        self.left_out_ = {c.name: c.why for c in self.columns_ if c.kind == "left out"}
        self.identifiers_ = [c.name for c in self.columns_ if c.identifier]

    def _learn_texts(self, cells: dict[str, Cells], y: np.ndarray | None) -> None:
        """Features of free text; columns whose features tell nothing are left out."""
        self.text_maps_ = {}
        for i, column in enumerate(self.columns_):
            if column.kind != "text":
                continue
            texts = cells[column.name].texts or []
            learned = free_text.learn(texts)
            if column.name in set(self.keep) or tells(free_text.features(texts, learned), y):
                self.text_maps_[column.name] = learned
            else:
                why = "free text on which the labels do not depend"
                self.columns_[i] = Column(column.name, "left out", why)

    def _leave_out_hiding(self, frame: Any, y: np.ndarray) -> None:
        """Leave texts out that hide what the other columns tell."""
        rows = np.linspace(0, len(frame) - 1, min(len(frame), MOST_ROWS)).astype(int)
        # All columns were read before, so none is refused for what a few rows have.
        tally = Tally(readable=Counter(self.numbers_))
        features = self.transform_block(frame.iloc[rows], tally)
        sizes = [len(self.text_maps_[name].directions) for name in self.texts_]
        ends = features.shape[1] - sum(sizes) + np.cumsum([0, *sizes[:-1]])
        others, *texts = np.split(features, ends, axis=1)
        judged = {n: t for n, t in zip(self.texts_, texts, strict=True) if n not in self.keep}
        kept = [t for n, t in zip(self.texts_, texts, strict=True) if n in self.keep]
        for name in hiding(np.hstack([others, *kept]), judged, y[rows]):
            del self.text_maps_[name]
            i = [column.name for column in self.columns_].index(name)
            why = "free text that hides what the other columns tell"
            self.columns_[i] = Column(name, "left out", why)
        self._sort_columns()

    def _learn_numbers(
        self,
        cells: dict[str, Cells],
        read: dict[str, tuple[np.ndarray, Reading]],
        y: np.ndarray | None,
    ) -> None:
        """Medians and scales, and which circles of dates the labels depend on."""
        n_rows = max((len(found.values) for found in cells.values()), default=0)
        table = np.empty((n_rows, len(self.numbers_)))
        for j, name in enumerate(self.numbers_):
            table[:, j] = self._values(cells[name], read)
        place = {name: j for j, name in enumerate(self.numbers_)}
        self.circles_ = [
            (name, circle)
            for name, date_format in (self.date_formats_.items() if y is not None else ())
            if date_format != dates.DURATION
            for circle in dates.circles_of(table[:, place[name]])
            if tells(dates.on_circle(table[:, place[name]], circle), y)
        ]
        self.median_, self.center_, self.scale_ = learn_scales(usable(self.numbers_, table))

    def _values(self, found: Cells, read: dict[str, tuple[np.ndarray, Reading]]) -> np.ndarray:
        """A column of numbers or dates, NaN for what is neither; `read`: texts that are numbers."""
        if found.texts is None:
            return found.values
        if found.name in self.date_formats_:
            return dates.days_of_texts(found.texts, self.date_formats_[found.name] or "ISO8601")
        return read[found.name][0]

    def _read_numbers(self, frame: Any, tally: Tally) -> np.ndarray:
        """The columns of numbers and dates (n_rows, n_numbers) of a new table, NaN for missing."""
        styles = {c.name: c.style for c in self.columns_ if c.style is not None}
        given, hint = given_style(self.decimal, self.thousands), frame.attrs.get("decimal", POINT)
        hints = {n: styles[n].decimal if n in styles else hint for n in self.numbers_}
        if given is None and not self.date_formats_ and set(hints.values()) <= {POINT}:
            table = plain_numbers(frame, self.numbers_)
            if table is not None:
                tally.add_table(self.numbers_, table)
                return usable(self.numbers_, table)
        cells = cells_of_frame(frame, self.numbers_)
        units = {c.name: c.unit for c in self.columns_}
        texts = {
            name: bare(found.texts, units[name], limits=True)
            for name, found in cells.items()
            if found.texts is not None and name not in self.date_formats_
        }
        read = read_columns(texts, given, hints)
        table = np.empty((len(frame), len(self.numbers_)))
        for j, (name, found) in enumerate(cells.items()):
            noun = "number"
            if name in self.date_formats_:
                noun = dates.noun_of(self.date_formats_[name])
            if found.strange:
                raise TableError(f"The column {quoted(name)} held {noun}s in fit; {found.strange}.")
            values = self._values(found, read)
            if name in self.date_formats_ and found.texts and not np.isfinite(values).any():
                values = self._dates_written_otherwise(found, tally)
            table[:, j] = values
            tally.add_numbers(name, found.texts, values, noun)
            if name in read and name in styles:
                decimal = read[name][1].style.decimal
                if decimal != styles[name].decimal:
                    tally.read_otherwise[name] = decimal
        return usable(self.numbers_, table)

    def _dates_written_otherwise(self, found: Cells, tally: Tally) -> np.ndarray:
        """Days of a column of which no cell is written as in fit; NaN if these are no dates."""
        texts, name = found.texts or [], found.name
        present = [text for text in texts if text is not None]
        if name not in tally.date_formats:
            other = dates.find_other_format(present, MOST, self.date_formats_[name])
            if other is None:
                return np.full(len(texts), np.nan)
            tally.date_formats[name] = other
        days = dates.days_of_texts(texts, tally.date_formats[name])
        for i in np.flatnonzero(np.isfinite(days))[:1]:
            tally.date_examples.setdefault(name, (str(texts[i]), float(days[i])))
        return days

    def __getstate__(self) -> dict[str, Any]:
        return saved_state.state_of(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved_state.restore(self, state)
        if hasattr(self, "columns_"):
            self._sort_columns()
            saved_state.check(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
