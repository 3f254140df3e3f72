"""Arguments and options that commands share, so that they have one name and one help text."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kfree.commands.models import MODELS, USUAL_STRUCTURE
from kfree.neighbors.structures import STRUCTURES

# The name of standard input and output.
STANDARD = "-"

Structure = StrEnum("Structure", {name: name for name in STRUCTURES})  # type: ignore[misc]
ASYMMETRIC = Structure(USUAL_STRUCTURE)
Model = StrEnum("Model", {name: name for name in MODELS})  # type: ignore[misc]
Decimal = StrEnum("Decimal", {"point": ".", "comma": ","})

Data = Annotated[str, typer.Argument(help="The table: CSV, TSV or Parquet, or gzip; - is stdin.")]
Target = Annotated[
    str, typer.Option("--target", "-t", metavar="COLUMN", help="The column to be predicted.")
]
TableOutput = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="CSV, or by its name .tsv, .parquet, .gz; - is stdout.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="Leave this column out; may be repeated."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="COLUMN",
        help="Keep this column although it looks like an identifier; may be repeated.",
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical",
        metavar="COLUMN",
        help="The numbers of this column are codes for categories; may be repeated.",
    ),
]
DecimalMark = Annotated[
    Decimal | None,
    typer.Option("--decimal", help="The decimal mark of numbers. If not given, each column tells."),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        "--thousands",
        metavar="MARK",
        help="What sets thousands apart: , or . or space or apostrophe or none. If not given, "
        "each column tells.",
    ),
]
ModelOption = Annotated[
    Model | None,
    typer.Option(
        "--model",
        help="; ".join(f"{name}: {kind.words}" for name, kind in MODELS.items())
        + ". If not given: field; k with --structure.",
    ),
]
StructureOption = Annotated[
    Structure,
    typer.Option(
        "--structure",
        help="Who counts as a neighbor: the k nearest (asymmetric), or also the rows that have "
        "this one among theirs, mutual ones twice (boltzmann) or once (boltzmann2).",
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Threads.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="In CSV and TSV, put ' before texts that a spreadsheet would take as a formula "
        "(that begin with = + - @, and are no numbers).",
    ),
]
