"""The command ``kfree paper``: its options, and what it says."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import joblib
import typer

from kfree.commands.files import check_output
from kfree.commands.telling import INTERRUPTED, console, say, show
from kfree.evaluation.data import DataNotFound, folder
from kfree.paper.progress import Bar
from kfree.paper.run import PARTS, PaperError, make
from kfree.paper.settings import FULL, QUICK

Part = StrEnum("Part", {name: name for name in PARTS})  # type: ignore[misc]


def paper(
    output: Annotated[Path, typer.Option(help="The folder to write to.", file_okay=False)] = Path(
        "paper"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="A minute's version.")] = False,
    only: Annotated[
        list[Part] | None, typer.Option(help="Only this part; may be given several times.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder of data sets, <name>.csv.gz each.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; all cores if not given.")
    ] = None,
) -> None:
    """Make the tables and figures of the paper anew, as one page and CSV files.

    An interrupted run goes on where it stopped when the same command is given again.

    Example: `kfree paper --output paper --only scores --only times`
    """
    check_output(output, _folders(data), folder=True)
    parts = tuple(part.value for part in only) if only else tuple(PARTS)
    try:
        with Bar(console()) as bar:
            made = make(
                output, QUICK if quick else FULL, parts, data, jobs or joblib.cpu_count(), bar
            )
    except PaperError as error:
        raise ValueError(str(error)) from None
    except KeyboardInterrupt:
        say("Interrupted. The same command goes on from here.")
        raise typer.Exit(INTERRUPTED) from None
    for sentence in made.missing.values():
        say(sentence, style="yellow")
    names = ", ".join(path.name for path in made.files if path != made.page)
    show(f"Written: {made.page}, and beside it {names}.")


def _folders(data: Path | None) -> list[Path]:
    """Where data sets are read from; without a folder those of installed packages are taken."""
    try:
        return [folder() if data is None else data]
    except DataNotFound:
        return []
