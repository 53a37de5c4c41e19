"""Worst-case maximal accuracy: per seed the smallest over the attacks, then mean ± std.

This is the one definition that tables, MLflow, tuning, bisection and reports use. Where runs are
missing, have failed or were stopped early, what is known of the minimum is an interval: a minimum
over the attacks that happened to work would flatter the defence.

>>> both = {1: {"sf": Accuracy(0.9), "foe": Accuracy(0.5)}, 2: {"sf": Accuracy(0.8), "foe": None}}
>>> found = worst_case(both)
>>> found.kind, found.at_least, round(found.at_most, 3)
('at most', 0.25, 0.65)
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Accuracy:
    """A maximal accuracy; a lower bound of one where the run was stopped early."""

    value: float
    lower_bound: bool = False


# Seed to attack to what is known of that run; None where nothing is.
Known = Mapping[int, Mapping[str, Accuracy | None]]


@dataclass(frozen=True)
class WorstCase:
    """What is known of a cell's worst case: an interval for each seed."""

    bounds: dict[int, tuple[float, float]]
    missing: int = 0
    """Runs without a result, failed ones included."""
    known: int = 0
    """Runs with one."""

    @cached_property
    def kind(self) -> str:
        """exact, at least, at most, or unknown where no run has a result."""
        if not self.known:
            return "unknown"
        if all(low == high for low, high in self.bounds.values()):
            return "exact"
        return "at most" if self.missing else "at least"

    @property
    def lower_bound(self) -> bool:
        """Whether it is at least what is said; an upper bound is none."""
        return self.kind == "at least"

    @cached_property
    def at_least(self) -> float:
        return statistics.fmean(low for low, _ in self.bounds.values())

    @cached_property
    def at_most(self) -> float:
        return statistics.fmean(high for _, high in self.bounds.values())

    @property
    def exact(self) -> bool:
        return self.kind == "exact"

    @property
    def mean(self) -> float:
        """Mean over the seeds: the value itself, or the bound that ``kind`` says."""
        return self.at_least if self.kind == "at least" else self.at_most

    @cached_property
    def std(self) -> float | None:
        """The sample's standard deviation over the seeds; None for one, and for a bound."""
        if not self.exact or self.seeds < 2:
            return None
        return statistics.stdev(low for low, _ in self.bounds.values())

    @property
    def seeds(self) -> int:
        return len(self.bounds)


def worst_case(known: Known) -> WorstCase:
    """The worst case of a cell, from what is known of all the runs that it should have."""
    bounds = {}
    for seed, runs in known.items():
        found = [accuracy for accuracy in runs.values() if accuracy is not None]
        high = min((a.value for a in found if not a.lower_bound), default=1.0)
        low = min(a.value for a in found) if len(found) == len(runs) and found else 0.0
        bounds[seed] = (low, high)
    every = [accuracy for runs in known.values() for accuracy in runs.values()]
    missing = sum(accuracy is None for accuracy in every)
    return WorstCase(dict(sorted(bounds.items())), missing, len(every) - missing)
