"""Why a row was classified so: what each block of weights adds to each class's logit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kfree.field.design import Block, Design, Weights


@dataclass(frozen=True)
class Contributions:
    """What each block adds to the logit of each class; they sum to it.

    Attributes
    ----------
    blocks : tuple of str
        The names of the blocks.
    classes : ndarray of shape (n_classes,)
    values : ndarray of shape (n_samples, n_blocks, n_classes)
    """

    blocks: tuple[str, ...]
    classes: np.ndarray
    values: np.ndarray

    @property
    def logits(self) -> np.ndarray:
        """The sum over the blocks: (n_samples, n_classes)."""
        return self.values.sum(axis=1)


def contributions_of(design: Design, weights: Weights, blocks: list[Block]) -> np.ndarray:
    """(n_rows, n_blocks + 1, n_classes), the offset last."""
    out = np.zeros((design.n_rows, len(blocks) + 1, design.n_classes))
    for number, block in enumerate(blocks):
        columns = block.columns
        if block.part == "linear":
            out[:, number, :] = design.linear[:, columns] @ weights.linear[:, columns].T
        else:
            added = design.values[:, columns] @ weights.shared[columns]
            out[design.row, number, design.label] = added
    out[:, -1, :] = weights.offset
    return out
