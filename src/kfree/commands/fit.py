"""The command ``kfree fit``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from kfree.atomic import check_writable
from kfree.commands import options
from kfree.commands.k_bars import LEVEL, bars, credible_k, in_words
from kfree.commands.learning import fit_model, leave_one_out, make_model, preparation, read_task
from kfree.commands.telling import show, show_json
from kfree.persistence import save


def fit(
    data: options.Data,
    target: options.Target,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The model's file, *.kfree.")
    ],
    structure: options.StructureOption = options.ASYMMETRIC,
    drop: options.Drop = None,
    keep: options.Keep = None,
    categorical: options.Categorical = None,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
) -> None:
    """Learn from a table to predict one of its columns, and save the model.

    Says what was done with each column, how probable each number of neighbors k is, and how good
    the predictions are, each row predicted from all the others.

    Example: `kfree fit iris.csv --target species --output iris.kfree`
    """
    if output == options.STANDARD:
        raise typer.BadParameter("A model is saved in a file; --output - is not offered.")
    check_writable(output)
    task = read_task(data, target)
    model = make_model(preparation(drop, keep, categorical), structure, jobs)
    fit_model(model, task)
    scores = leave_one_out(model, task)[1]
    save(model, output)
    notes, classifier = [*task.notes, *model[0].notes_], model[-1]
    credible = credible_k(classifier.k_values_, classifier.k_posterior_)
    if as_json:
        show_json(
            {
                **task.for_machines(notes),
                "k_optimal": classifier.k_optimal_,
                "k_credible_set": credible,
                "k_values": classifier.k_values_,
                "k_posterior": classifier.k_posterior_,
                "beta_mean": classifier.beta_mean_,
                "beta_std": classifier.beta_std_,
                "leave_one_out": asdict(scores),
                "model": output,
            }
        )
        return
    task.tell(notes, show)
    show("\nHow probable each number of neighbors k is:")
    for line in bars(classifier.k_values_, classifier.k_posterior_):
        show(f"  {line}")
    show(
        f"  Most probable: k = {classifier.k_optimal_}. {LEVEL:.0%} credible: {in_words(credible)}."
    )
    show("\nHow good the predictions are, each row predicted from all the others:")
    show(
        f"  accuracy {scores.accuracy:.3f}, macro F-measure {scores.f_measure:.3f}, "
        f"log loss {scores.log_loss:.3f}"
    )
    show(f"\nThe model is in {output}.")
