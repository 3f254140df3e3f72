"""The command ``kfree predict``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline

from kfree.candidates import most_probable
from kfree.classifier import KFreeClassifier
from kfree.commands import options
from kfree.commands.files import check_output
from kfree.commands.progress import Working
from kfree.commands.table_output import refuse_taken, table_writer
from kfree.commands.telling import say, show_json
from kfree.persistence import ModelFileError, load
from kfree.plain_text import quoted, shown
from kfree.tables import OddRows, TablePreparation, read_blocks
from kfree.tables.messages import count
from kfree.tables.numbers import given_style
from kfree.tables.tally import Tally

# How many rows are read, predicted and written at a time.
BLOCK_ROWS = 5_000
UNCERTAINTY = "uncertainty_from_k_and_beta"


def predict(
    model: Annotated[str, typer.Argument(help="A model that kfree fit made.")],
    data: options.Data,
    output: options.TableOutput,
    decimal: options.DecimalMark = None,
    thousands: options.Thousands = None,
    escape_formulas: options.EscapeFormulas = False,
    as_json: options.Json = False,
) -> None:
    """Predict the rows of a table with a saved model.

    Writes the table's own columns, as they are written there, then the predicted class, its
    probability, the probability of each class, and of a model of k which share of the uncertainty
    comes from not knowing k and beta. Rows stay in order and are read block by block, so the table
    may be larger than memory. A second line of names or units, a total and empty rows have no
    prediction.

    Example: `kfree predict iris.kfree new.csv --output predicted.csv`
    """
    check_output(output, [model, data], as_json=as_json)
    given_style(decimal, thousands)
    fitted = load(model)
    # How the table of fit wrote its numbers is kept with each column; this is about the new one.
    prepare = _preparation(fitted, model).set_params(
        decimal=None if decimal is None else str(decimal), thousands=thousands
    )
    added = _names(fitted)
    tally, odd_rows = Tally(), OddRows(prepare)
    predicted: Counter[str] = Counter()
    n_rows, n_predicted, sum_probability = 0, 0, 0.0
    # One block is predicted before the output is begun: what is wrong mostly shows there.
    with Working("Predicting", noun="rows") as working, ExitStack() as stack:
        write = None
        for cells, last in _to_the_last(read_blocks(data, rows=BLOCK_ROWS)):
            refuse_taken(cells.columns, added, "the predictions are")
            odd = odd_rows.among(cells, last)
            whole = cells if not odd.any() else cells.loc[~odd]
            answer = _answer(fitted, whole, tally) if len(whole) else _empty(added)
            predicted.update(map(str, answer["prediction"]))
            sum_probability += float(answer["probability"].sum())
            n_predicted += len(whole)
            if write is None:
                writer = table_writer(output, prepare.numbers_of, escape_formulas)
                write = stack.enter_context(writer)
            write(cells, _with_gaps(answer, odd))
            n_rows += len(cells)
            working.advance(len(cells))
    notes = odd_rows.notes + [sentence for sentence, _ in tally.oddities()]
    notes += [tally.filled()] if tally.filled_in else []
    if as_json:
        show_json(
            {
                "output": output,
                "n_rows": n_rows,
                "n_predicted": n_predicted,
                "predicted": dict(sorted(predicted.items())),
                "mean_probability": sum_probability / n_predicted if n_predicted else None,
                "filled_in": dict(tally.filled_in),
                "notes": notes,
            }
        )
        return
    for note in notes:
        say(f"Note: {note}", style="yellow")
    if output != options.STANDARD:
        first = ", ".join(f"{shown(name)}: {n:,}" for name, n in predicted.most_common(8))
        classes = f" ({first})" if first else ""
        say(f"{count(n_predicted, 'row')} predicted{classes}; written to {output}.")


def _to_the_last(blocks: Iterator[Any]) -> Iterator[tuple[Any, bool]]:
    """Each block, and whether it is the last one."""
    block = next(blocks)
    for following in blocks:
        yield block, False
        block = following
    yield block, True


def _preparation(model: Any, path: str) -> TablePreparation:
    if isinstance(model, Pipeline) and isinstance(model[0], TablePreparation):
        return model[0]
    raise ModelFileError(
        f"{quoted(path, 200)} was not fitted on a table: kfree predict needs a model of "
        "kfree fit, or a Pipeline that begins with kfree.tables.TablePreparation."
    )


def _answer(model: Pipeline, cells: Any, tally: Tally) -> dict[str, np.ndarray]:
    """The new columns for a block of rows."""
    classifier, features = model[-1], model[0].transform_block(cells, tally)
    for step in model[1:-1]:
        features = step.transform(features)
    known = classifier.posterior(features) if isinstance(classifier, KFreeClassifier) else None
    probabilities = (
        classifier.predict_proba(features) if known is None else known.class_probabilities
    )
    best = most_probable(probabilities)
    answer = {
        "prediction": classifier.classes_[best],
        "probability": probabilities[np.arange(len(best)), best],
    }
    for name, column in zip(classifier.classes_, probabilities.T, strict=True):
        answer[f"probability_{name}"] = column
    if known is not None:
        between = known.class_variance_between.sum(axis=1)
        whole = between + known.class_variance_within.sum(axis=1)
        # Where the class is certain to the last bit there is nothing to divide up.
        answer[UNCERTAINTY] = between / np.where(whole > 0, whole, 1.0)
    return answer


def _empty(names: list[str]) -> dict[str, np.ndarray]:
    """The new columns for no rows."""
    return {name: np.empty(0, dtype=object if name == "prediction" else float) for name in names}


def _with_gaps(answer: dict[str, np.ndarray], odd: np.ndarray) -> dict[str, np.ndarray]:
    """The new columns with missing values in the rows that are `odd`."""
    if not odd.any():
        return answer
    columns = {}
    for name, values in answer.items():
        number = values.dtype.kind == "f"
        column = np.full(len(odd), np.nan if number else None, dtype=float if number else object)
        column[~odd] = values if number else values.tolist()
        columns[name] = column
    return columns


def _names(model: Pipeline) -> list[str]:
    """The columns that are written."""
    classes = [f"probability_{name}" for name in model[-1].classes_]
    about_k = [UNCERTAINTY] if isinstance(model[-1], KFreeClassifier) else []
    return ["prediction", "probability", *classes, *about_k]
