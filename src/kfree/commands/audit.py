"""The command ``kfree audit``."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from kfree.audit import NOBODY, LabelAudit, audit_labels
from kfree.commands import options
from kfree.commands.files import check_output
from kfree.commands.learning import fit_model, make_model, preparation, read_task
from kfree.commands.progress import Working
from kfree.commands.table_output import has_types, refuse_taken, table_writer, with_values
from kfree.commands.telling import say, show, show_json
from kfree.plain_text import shown
from kfree.tables import TablePreparation
from kfree.tables.messages import count

# How many of the rows are shown on the screen.
N_SHOWN = 10
# What is said of each row.
TOLD = (
    "row_number",
    "given_label",
    "given_probability",
    "suggested_label",
    "suggested_probability",
    "neighbors_against",
)


def audit(
    data: options.Data,
    target: options.Target,
    output: options.TableOutput,
    top: Annotated[
        int | None, typer.Option("--top", min=1, help="Only the N most suspicious rows.")
    ] = None,
    neighbors: Annotated[
        int, typer.Option("--neighbors", min=1, help="How many neighbors to name for each row.")
    ] = 5,
    model: options.ModelOption = None,
    structure: options.StructureOption = options.ASYMMETRIC,
    drop: options.Drop = None,
    keep: options.Keep = None,
    categorical: options.Categorical = None,
    decimal: options.DecimalMark = None,
    thousands: options.Thousands = None,
    escape_formulas: options.EscapeFormulas = False,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
) -> None:
    """Find the rows of a table whose label the other rows contradict.

    Writes these rows, the most suspicious first: the number of the row in the table (the first
    after the header is 1, which a spreadsheet shows as its line 2), its label and how probable the
    other rows make that label, the label that they suggest and its probability, the rows nearest to
    it that have the suggested label, then the table's other columns, as they are written there.

    Example: `kfree audit iris.csv --target species --output suspects.csv`
    """
    check_output(output, [data], as_json=as_json)
    prepare = preparation(target, drop, keep, categorical, decimal, thousands)
    task = read_task(data, target)
    refuse_taken(task.features.columns, TOLD, "the audit is")
    fitted = make_model(prepare, task, model, structure, jobs)
    # Opened first: that the rows cannot be written is better known before the work.
    with table_writer(output, escape_formulas=escape_formulas) as write:
        fit_model(fitted, task)
        with Working("Judging each label by the other rows"):
            found = audit_labels(fitted, n_neighbors=neighbors)
        n_contradicted = found.n_contradicted
        suspects = found.take(min(n_contradicted, top or n_contradicted))
        # Rows without a label were left out, so a row's place among the others is not its number.
        numbers = task.features.index.to_numpy() + 1
        own = task.features
        if has_types(output):
            own = _typed(own, fitted[0])
        write(_table(suspects, numbers, own), {})
    notes = [*task.notes, *fitted[0].notes_]
    if as_json:
        show_json(
            {
                **task.for_machines(notes),
                "n_contradicted": n_contradicted,
                "n_estimated": found.wrong.n_estimated,
                "n_estimated_interval": list(found.wrong.interval),
                "suspects": [
                    {
                        "row_number": numbers[suspects.rows[i]],
                        "given_label": suspects.given[i],
                        "given_probability": suspects.given_probability[i],
                        "suggested_label": suspects.suggested[i],
                        "suggested_probability": suspects.suggested_probability[i],
                        "neighbors_against": _numbers_against(suspects, numbers, i),
                    }
                    for i in range(len(suspects.rows))
                ],
                "output": output,
            }
        )
        return
    tell = say if output == options.STANDARD else show
    task.tell(notes, tell)
    tell(f"\nThe other rows contradict {count(n_contradicted, 'label')}. {found.wrong.in_words}")
    for i in range(min(N_SHOWN, len(suspects.rows))):
        tell(
            f"  row {numbers[suspects.rows[i]]}: {shown(suspects.given[i])} "
            f"({suspects.given_probability[i]:.3f}), rather {shown(suspects.suggested[i])} "
            f"({suspects.suggested_probability[i]:.3f})"
        )
    if len(suspects.rows) > N_SHOWN:
        tell("  ...")
    if output != options.STANDARD:
        tell(f"\n{count(len(suspects.rows), 'row')} written to {output}.")


def _typed(cells: Any, prepare: TablePreparation) -> Any:
    """The cells, but as numbers where the model has numbers and no cell is something else."""
    from pandas.api.types import is_string_dtype

    odd = {column.name for column in prepare.columns_ if column.n_unreadable}
    odd |= set(cells.attrs.get("types", ()))  # they have a type already
    used = {
        name: values
        for name, values in prepare.numbers_of(cells).items()
        if name not in odd and is_string_dtype(cells[name].dtype)
    }
    return with_values(cells, used)


def _table(suspects: LabelAudit, numbers: np.ndarray, own: Any) -> Any:
    """What is said of each row, then the row itself."""
    import pandas as pd

    against = [
        " ".join(map(str, _numbers_against(suspects, numbers, i)))
        for i in range(len(suspects.rows))
    ]
    told = (
        numbers[suspects.rows],
        suspects.given,
        np.round(suspects.given_probability, 6),
        suspects.suggested,
        np.round(suspects.suggested_probability, 6),
        np.array(against, dtype=str),
    )
    frame = pd.DataFrame(dict(zip(TOLD, told, strict=True)))
    whole = frame.join(own.iloc[suspects.rows].reset_index(drop=True))
    whole.attrs = own.attrs
    return whole


def _numbers_against(suspects: LabelAudit, numbers: np.ndarray, i: int) -> list[int]:
    line = suspects.neighbors_against[i]
    return numbers[line[line != NOBODY]].tolist()
