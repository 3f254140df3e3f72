"""The command ``kfree report``."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kfree.commands import options
from kfree.commands.files import check_output, standard_output
from kfree.commands.learning import Task, make_model, preparation, read_task
from kfree.commands.progress import Working
from kfree.commands.telling import say, show, show_json
from kfree.plain_text import quoted
from kfree.report import Report, make_report
from kfree.report.headline import verdict


def report(
    data: options.Data,
    target: options.Target,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="The page, *.html; - is stdout."),
    ],
    model: options.ModelOption = None,
    structure: options.StructureOption = options.ASYMMETRIC,
    drop: options.Drop = None,
    keep: options.Keep = None,
    categorical: options.Categorical = None,
    decimal: options.DecimalMark = None,
    thousands: options.Thousands = None,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
) -> None:
    """Write a page about a table: how good kfree is on it, how sure, and which labels look wrong.

    The page is one HTML file that needs no network. It can be read on a phone and printed.

    Example: `kfree report iris.csv --target species --output iris.html`
    """
    check_output(output, [data], as_json=as_json)
    prepare = preparation(target, drop, keep, categorical, decimal, thousands)
    task = read_task(data, target)
    fresh = make_model(prepare, task, model, structure, jobs)
    columns = {
        "--drop": drop,
        "--keep": keep,
        "--categorical": categorical,
        "--decimal": None if decimal is None else [str(decimal)],
        "--thousands": None if thousands is None else [thousands],
    }
    with _steps() as step:
        made = make_report(
            task.features,
            task.labels,
            model=fresh,
            title=f"{task.name}: what kfree makes of {quoted(target)}",
            # As kfree audit counts them: the first row after the header is 1.
            count_from=1,
            notes=task.notes,
            reproduce=_command(data, target, output, model, str(structure), columns),
            step=step,
            output=None if output == options.STANDARD else output,
        )
    if output == options.STANDARD:
        standard_output().write(made.html.encode("utf-8"))
        _tell(task, made, say)
    elif as_json:
        found = made.findings
        show_json(
            {
                "data": task.name,
                "verdict": verdict(found),
                **found.summary(),
                "report": output,
            }
        )
    else:
        _tell(task, made, show)
        show(f"\nThe report is in {output}.")


def _tell(task: Task, made: Report, tell: Callable[[str], None]) -> None:
    found = made.findings
    task.tell(found.notes, tell)
    tell(f"\n{verdict(found)}")


@contextmanager
def _steps() -> Iterator[Callable[[str], None]]:
    """A function that is told what comes next; what takes long is spoken of."""
    with ExitStack() as stack:

        def step(words: str) -> None:
            stack.close()
            stack.enter_context(Working(words[0].upper() + words[1:]))

        yield step


def _command(
    data: str,
    target: str,
    output: str,
    model: str | None,
    structure: str,
    columns: Mapping[str, Sequence[str] | None],
) -> str:
    """The command that makes the page again, and which file it read."""
    words = ["kfree", "report", data, "--target", target, "--output", output]
    if model is not None:
        words += ["--model", str(model)]
    if structure != str(options.ASYMMETRIC):
        words += ["--structure", structure]
    words += [word for name, values in columns.items() for v in values or () for word in (name, v)]
    lines = shlex.join(words)
    if Path(data).is_file():
        with open(data, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        lines += f"\n# SHA-256 of {Path(data).name}: {digest}"
    return lines
