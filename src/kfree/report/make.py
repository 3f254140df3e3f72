"""From a table to a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kfree.atomic import replacing
from kfree.field.estimator import FieldClassifier
from kfree.page import render, require_jinja
from kfree.report.chapters import chapters
from kfree.report.findings import Findings, find
from kfree.report.headline import top
from kfree.tables import TablePreparation

REPRODUCE = """from kfree.report import make_report

make_report(X, y, output="report.html")"""


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes
    ----------
    html : str
        The page. It needs no other file and no network.
    findings : Findings
        The numbers behind it.
    """

    html: str
    findings: Findings


def make_report(
    X: Any,
    y: Any,
    *,
    model: Any = None,
    title: str = "What kfree makes of these data",
    row_names: Any = None,
    count_from: int = 0,
    notes: Sequence[str] = (),
    reproduce: str = REPRODUCE,
    step: Callable[[str], Any] | None = None,
    output: str | os.PathLike | None = None,
) -> Report:
    """Make a page about a table and what kfree learns from it.

    The page says in words and four numbers how good the classifier is, against what and how sure
    that is; then, in pictures, whether the probabilities can be relied on, which classes are taken
    for which, which columns matter, which labels look wrong, which rows are uncertain, and, of a
    KFreeClassifier, how probable each number of neighbors is.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_samples, n_features)
        Features. Columns of a data frame may be of any kind; an array holds numbers.
    y : array-like of shape (n_samples,)
        Labels.
    model : FieldClassifier, KFreeClassifier, or a Pipeline that ends in one, default=None
        If it is fitted, then on these very rows; if not, it is fitted here. None: a
        FieldClassifier after a `TablePreparation` of a data frame, or a `StandardScaler` of an
        array.
    title : str
        Heading of the page.
    row_names : array-like of shape (n_samples,), default=None
        What the rows are called in tables. None: the index of a data frame, or numbers, with the
        cell of a column that was left out as an identifier.
    count_from : int, default=0
        Is added to the numbers of the rows.
    notes : sequence of str, default=()
        Sentences about how the data were read, for the chapter about the data.
    reproduce : str
        What to type to make the page again.
    step : callable, default=None
        Is told in a few words what comes next, to show progress.
    output : path, default=None
        Where to write the page; a file that is there is replaced once the new one is whole.

    Returns
    -------
    Report
    """
    require_jinja()
    if model is None:
        first = TablePreparation() if hasattr(X, "columns") else StandardScaler()
        model = make_pipeline(first, FieldClassifier())
    step = step or (lambda words: None)
    found = find(model, X, y, row_names, count_from, notes, step)
    step("drawing")
    html = render(title, chapters(found, reproduce), lead=top(found), sorting=True)
    if output is not None:
        with replacing(Path(output)) as file:
            file.write(html.encode("utf-8"))
    return Report(html=html, findings=found)
