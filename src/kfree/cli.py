"""The command ``kfree``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

NEEDED = ("typer", "rich", "pandas", "skops")


def main() -> None:
    """Run a command from the shell's arguments."""
    for package in NEEDED:
        if find_spec(package) is None:
            sys.exit(
                f"The package {package} is missing; pip install 'kfree[cli]' brings all that the "
                "command kfree needs."
            )
    make_app()()


def make_app() -> Any:
    """The commands, each in a module of its own."""
    import typer

    from kfree.commands.audit import audit
    from kfree.commands.evaluate import evaluate
    from kfree.commands.fit import fit
    from kfree.commands.predict import predict
    from kfree.commands.report import report
    from kfree.commands.telling import told
    from kfree.paper.command import paper

    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",  # or lines would end where those of the docstrings do
        help="Nearest-neighbor classification free of k.",
    )
    for command in (fit, predict, evaluate, audit, report):
        app.command()(told(command))
    app.command()(paper)
    return app
