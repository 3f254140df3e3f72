"""The figures printed in the paper."""

from __future__ import annotations

from dataclasses import dataclass

DATA = ("crabs", "fglass", "meat", "oliveoil", "wine", "iris")
STRUCTURES = ("asymmetric", "boltzmann", "boltzmann2")
METHODS = ("KNN", "PKNN", "KOREA average", "KOREA optimal")


@dataclass(frozen=True)
class Figure:
    """A mean and a deviation."""

    mean: float
    std: float


@dataclass(frozen=True)
class Seconds:
    """A row of the table of times."""

    knn: float
    pknn: float
    mcmc: float
    korea: float

    @property
    def ratio(self) -> float:
        return self.mcmc / self.korea


# Rows by method, then by data set; in a row the three structures.
_F_MEASURES = {
    "KNN": (
        ((0.72, 0.08), (0.74, 0.08), (0.74, 0.08)),
        ((0.64, 0.06), (0.67, 0.05), (0.67, 0.05)),
        ((0.68, 0.07), (0.70, 0.07), (0.70, 0.07)),
        ((0.74, 0.12), (0.71, 0.10), (0.71, 0.10)),
        ((0.97, 0.01), (0.97, 0.01), (0.97, 0.01)),
        ((0.57, 0.10), (0.55, 0.10), (0.55, 0.10)),
    ),
    "PKNN": (
        ((0.75, 0.09), (0.75, 0.09), (0.75, 0.08)),
        ((0.73, 0.06), (0.74, 0.06), (0.69, 0.06)),
        ((0.70, 0.07), (0.71, 0.07), (0.70, 0.06)),
        ((0.72, 0.11), (0.73, 0.11), (0.70, 0.11)),
        ((0.98, 0.01), (0.98, 0.01), (0.98, 0.02)),
        ((0.57, 0.12), (0.57, 0.12), (0.53, 0.10)),
    ),
    "KOREA average": (
        ((0.86, 0.11), (0.89, 0.11), (0.87, 0.09)),
        ((0.76, 0.09), (0.77, 0.07), (0.81, 0.08)),
        ((0.68, 0.12), (0.75, 0.06), (0.71, 0.06)),
        ((0.82, 0.17), (0.76, 0.19), (0.73, 0.20)),
        ((0.99, 0.12), (0.99, 0.02), (0.98, 0.02)),
        ((0.62, 0.15), (0.58, 0.17), (0.56, 0.03)),
    ),
    "KOREA optimal": (
        ((0.86, 0.13), (0.89, 0.11), (0.87, 0.09)),
        ((0.79, 0.04), (0.76, 0.08), (0.79, 0.07)),
        ((0.70, 0.11), (0.73, 0.07), (0.69, 0.13)),
        ((0.80, 0.17), (0.78, 0.17), (0.76, 0.19)),
        ((0.99, 0.02), (0.99, 0.02), (0.98, 0.02)),
        ((0.57, 0.17), (0.56, 0.19), (0.48, 0.16)),
    ),
}

F_MEASURE = {
    (method, data, structure): Figure(*pair)
    for method, rows in _F_MEASURES.items()
    for data, row in zip(DATA, rows, strict=True)
    for structure, pair in zip(STRUCTURES, row, strict=True)
}

SECONDS = {
    "crabs": Seconds(0.10, 0.46, 168.76, 9.77),
    "fglass": Seconds(0.11, 0.52, 200.59, 10.61),
    "meat": Seconds(0.12, 0.92, 270.46, 15.66),
    "oliveoil": Seconds(0.02, 0.13, 34.58, 1.90),
    "wine": Seconds(0.08, 0.30, 129.03, 6.25),
    "iris": Seconds(0.07, 0.26, 95.47, 5.14),
}
