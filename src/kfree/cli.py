"""The command ``kfree``."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

NEEDED = ("typer", "rich", "pandas", "skops")
# Where each command is, and what it does. The list is printed without importing any of them, so it
# needs no extras; and a command imports no other.
COMMANDS = {
    "fit": ("kfree.commands.fit", "learn from a table to predict one of its columns"),
    "predict": ("kfree.commands.predict", "predict the rows of a table with a saved model"),
    "evaluate": ("kfree.commands.evaluate", "compare kfree with other classifiers on a table"),
    "audit": ("kfree.commands.audit", "find the rows whose label the other rows contradict"),
    "report": ("kfree.commands.report", "write a page about a table and its labels"),
    "paper": ("kfree.commands.paper", "make the paper's tables and figures anew"),
}
HELP = ("--help", "-h", "help")
# Those that read or write models.
WITH_FILES = ("fit", "predict")


def main() -> None:
    """Run a command from the shell's arguments."""
    _hold_closed_streams()
    words = sys.argv[1:]
    if not words or words[0] in HELP:
        _print(usage())
        sys.exit(0 if words else 2)
    if words[0] == "--version":
        _print(f"kfree {installed_version()}")
        return
    for package in NEEDED:
        if find_spec(package) is None:
            sys.exit(
                f"The package {package} is missing; pip install 'kfree[cli]' brings all that the "
                "command kfree needs."
            )
    # Nothing that modules bring is garbage: looking for it takes a tenth of the time of importing.
    gc.disable()
    if words[0] in WITH_FILES and "--help" not in words:
        _import_skops()
    app = make_app([words[0]] if words[0] in COMMANDS else list(COMMANDS))
    gc.freeze()
    gc.enable()
    app(prog_name="kfree")


def usage() -> str:
    """What there is, in a few lines."""
    width = max(map(len, COMMANDS))
    return "\n".join(
        [
            "Nearest-neighbor classification free of k.",
            "",
            "Usage: kfree COMMAND [OPTIONS]",
            "",
            *(f"  {name:{width}}  {words}" for name, (_, words) in COMMANDS.items()),
            "",
            "kfree COMMAND --help has the options of a command, kfree --version the version.",
        ]
    )


def installed_version() -> str:
    """The version, from the installed package."""
    try:
        return version("kfree")
    except PackageNotFoundError:  # run from its sources
        return "unknown"


def make_app(names: list[str] | None = None) -> Any:
    """The commands, each in a module of its own; all of them, or those that are named."""
    import typer

    from kfree.commands.telling import told

    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",  # or lines would end where those of the docstrings do
        help="Nearest-neighbor classification free of k.",
    )

    @app.callback()
    def group() -> None:
        """Keep the names of the commands, also where there is a single one."""

    for name in names or COMMANDS:
        app.command()(told(getattr(import_module(COMMANDS[name][0]), name)))
    return app


def _import_skops() -> None:
    """Import skops without its list of all estimators of scikit-learn.

    For that list it imports all of scikit-learn, and dask where it is installed: more than a second
    of a process that predicts a few rows. kfree says itself which types it trusts.
    """
    # skops looks for each function of scipy.special in all modules, in the order of their import.
    import scipy.special  # noqa: F401
    from sklearn import utils

    usual = utils.all_estimators
    utils.all_estimators = lambda *args, **kwargs: []
    try:
        import_module("skops.io")
    finally:
        utils.all_estimators = usual


def _print(text: str) -> None:
    try:
        print(text)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        # Whoever reads it has had enough, or the device is full.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _hold_closed_streams() -> None:
    """Put nothing in the place of closed standard streams, or a file might be opened there."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
