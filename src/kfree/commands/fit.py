"""The command ``kfree fit``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
import typer

from kfree.classifier import KFreeClassifier
from kfree.commands import options
from kfree.commands.files import check_output
from kfree.commands.k_bars import LEVEL, bars, credible_k, in_words
from kfree.commands.learning import (
    Task,
    fit_model,
    leave_one_out,
    make_model,
    preparation,
    read_task,
)
from kfree.commands.telling import show, show_json
from kfree.evaluation.scores import Scores
from kfree.field.estimator import FieldClassifier
from kfree.field.leave_one_out import FEW_ROWS
from kfree.persistence import save
from kfree.plain_text import shown

# With fewer rows to a class, on average, leave-one-out by the field was seen to be too hopeful,
# unless rows are so few that it refits.
FEW = 5


def fit(
    data: options.Data,
    target: options.Target,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The model's file, *.kfree.")
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
    """Learn from a table to predict one of its columns, and save the model.

    Says what was done with each column, how good the predictions are, each row predicted from all
    the others, and with --model k how probable each number of neighbors k is.

    Example: `kfree fit iris.csv --target species --output iris.kfree`
    """
    if output == options.STANDARD:
        raise typer.BadParameter("A model is saved in a file; --output - is not offered.")
    check_output(output, [data])
    prepare = preparation(target, drop, keep, categorical, decimal, thousands)
    task = read_task(data, target)
    fitted = fit_model(make_model(prepare, task, model, structure, jobs), task)
    scores = leave_one_out(fitted, task)[1]
    save(fitted, output)
    notes, classifier = [*task.notes, *fitted[0].notes_], fitted[-1]
    if as_json:
        show_json(
            {
                **task.for_machines(notes),
                **_about_k_for_machines(classifier),
                "leave_one_out": asdict(scores),
                "classifier": type(classifier).__name__,
                "model": output,
            }
        )
        return
    task.tell(notes, show)
    _tell_about_k(classifier)
    show("\nHow good the predictions are, each row predicted from all the others:")
    show(
        f"  accuracy {scores.accuracy:.3f}, macro F-measure {scores.f_measure:.3f}, "
        f"log loss {scores.log_loss:.3f}"
    )
    _tell_beside_shares(task, scores)
    few = FEW_ROWS < len(task.labels) < FEW * len(task.class_counts)
    if isinstance(classifier, FieldClassifier) and few:
        show(
            f"  With fewer than {FEW} rows to a class this is too hopeful; kfree evaluate predicts "
            "rows that the model has not seen."
        )
    show(f"\nThe model is in {output}.")


def _tell_beside_shares(task: Task, scores: Scores) -> None:
    """What the shares of the classes alone achieve, where the model names no more rows correctly.

    Of labels that nothing tells, each row is predicted wrongly more often than by chance: without
    it, its own class is a little rarer.
    """
    counts = task.class_counts
    most = max(counts, key=counts.__getitem__)
    shares = np.array(list(counts.values())) / len(task.labels)
    if scores.accuracy > shares.max():
        return
    loss = -float((shares * np.log(shares)).sum())
    verdict = (
        "the columns tell next to nothing of the labels"
        if scores.log_loss >= loss
        else "judge the model by its probabilities"
    )
    show(
        f"  The shares of the classes alone, {shown(most)} for every row, have an accuracy of "
        f"{shares.max():.3f} and a log loss of {loss:.3f}: {verdict}."
    )


def _tell_about_k(classifier: Any) -> None:
    """The posterior of k, of a model that has one."""
    if not isinstance(classifier, KFreeClassifier):
        return
    show("\nHow probable each number of neighbors k is:")
    for line in bars(classifier.k_values_, classifier.k_posterior_):
        show(f"  {line}")
    inside = credible_k(classifier.k_values_, classifier.k_posterior_)
    credible = in_words(inside, classifier.k_values_)
    show(f"  Most probable: k = {classifier.k_optimal_}. {LEVEL:.0%} credible: {credible}.")


def _about_k_for_machines(classifier: Any) -> dict[str, Any]:
    if not isinstance(classifier, KFreeClassifier):
        return {}
    return {
        "k_optimal": classifier.k_optimal_,
        "k_credible_set": credible_k(classifier.k_values_, classifier.k_posterior_),
        "k_values": classifier.k_values_,
        "k_posterior": classifier.k_posterior_,
        "beta_mean": classifier.beta_mean_,
        "beta_std": classifier.beta_std_,
    }
