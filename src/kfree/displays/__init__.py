"""Pictures. matplotlib is imported when something is drawn, never by ``import kfree``.

All of them read the same in black and white and to the color-blind: shades run from dark to light
without a turn, and what differs in shade also differs in marker, fill or line style.
"""

from kfree.displays.decision_map import DecisionMap, DecisionMapDisplay, decision_map
from kfree.displays.field import BlockWeightsDisplay, ContributionsDisplay
from kfree.displays.k_posterior import KPosteriorDisplay, credible_set
from kfree.displays.posterior import PosteriorDisplay
from kfree.displays.ranges import beta_grid, k_range
from kfree.displays.reliability import Reliability, ReliabilityDisplay, reliability
from kfree.displays.trace import TraceDisplay

__all__ = [
    "BlockWeightsDisplay",
    "ContributionsDisplay",
    "DecisionMap",
    "DecisionMapDisplay",
    "KPosteriorDisplay",
    "PosteriorDisplay",
    "Reliability",
    "ReliabilityDisplay",
    "TraceDisplay",
    "beta_grid",
    "credible_set",
    "decision_map",
    "k_range",
    "reliability",
]
