"""The command ``kfree``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run a command from the shell's arguments."""
    try:
        import rich  # noqa: F401
        import typer
    except ImportError as error:
        sys.exit(
            f"The package {error.name} is missing; pip install 'kfree[paper]' brings all that the "
            "command kfree needs."
        )
    from kfree.paper.command import paper

    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        help="Nearest-neighbor classification free of k.",
    )
    # With a callback, "paper" stays a command of its own although it is the only one.
    app.callback()(lambda: None)
    app.command()(paper)
    app()
