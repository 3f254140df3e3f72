"""The command ``kfree``."""

from __future__ import annotations

import sys
from typing import Any


def main() -> None:
    """Run a command from the shell's arguments."""
    try:
        import pandas  # noqa: F401
        import rich  # noqa: F401
        import skops  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.exit(
            f"The package {error.name} is missing; pip install 'kfree[cli]' brings all that the "
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
        help="Nearest-neighbor classification free of k.",
    )
    for command in (fit, predict, evaluate, audit, report):
        app.command()(told(command))
    app.command()(paper)
    return app
