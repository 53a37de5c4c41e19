"""What is measured for a claim: for every seed an interval, as attacks may be missing."""

import math
import statistics
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from lit_byz.report.paper.curves import curve_of
from lit_byz.report.paper.survey import Cell, Survey
from lit_byz.report.paper.words import looked_up
from lit_byz.report.strengths import strength_of

Interval = tuple[float, float]
# The parts of a run whose thresholds are compared: its first and its last tenth.
TENTH = 10


@dataclass(frozen=True)
class Measured:
    """A quantity by seed; each seed's value lies in its interval."""

    by_seed: Mapping[int, Interval]
    incomplete: Set[int] = frozenset()
    """Seeds that were begun, and of which an attack has no result."""
    left_out: int = 0
    """Seeds that were begun and are not in ``by_seed``, as others are complete."""

    @property
    def low(self) -> float:
        return statistics.fmean(low for low, _ in self.by_seed.values())

    @property
    def high(self) -> float:
        return statistics.fmean(high for _, high in self.by_seed.values())

    @property
    def exact(self) -> bool:
        return all(low == high for low, high in self.by_seed.values())

    @property
    def std(self) -> float:
        highs = [high for _, high in self.by_seed.values()]
        return statistics.stdev(highs) if len(highs) > 1 else 0.0

    @property
    def seeds(self) -> int:
        return len(self.by_seed)

    @property
    def begun(self) -> int:
        return self.seeds + self.left_out

    def settled(self) -> "Measured":
        """The complete seeds alone, where there are any."""
        kept = {s: limits for s, limits in self.by_seed.items() if s not in self.incomplete}
        return Measured(kept, left_out=self.seeds - len(kept)) if kept else self

    def minus(self, other: "Measured") -> "Measured":
        """The difference, for the seeds that both have; complete where both are."""
        return Measured(
            {
                seed: (low - other.by_seed[seed][1], high - other.by_seed[seed][0])
                for seed, (low, high) in self.by_seed.items()
                if seed in other.by_seed
            },
            self.incomplete | other.incomplete,
        )


def matching(found: Survey, where: Mapping[str, Any]) -> list[Cell]:
    """The cells that have these settings; ``{f: 0}`` means DSGD."""
    chosen = found.baselines if where.get("workers.f") == 0 else found.methods
    return [cell for cell in chosen if all(_same(cell, k, v) for k, v in where.items())]


def _same(cell: Cell, key: str, wanted: Any) -> bool:
    value = looked_up(cell.example.plain, key)
    options = wanted if isinstance(wanted, list) else [wanted]
    return any(value == option for option in options)


def measure(
    found: Survey, where: Mapping[str, Any], quantity: str, attack: str | None, strength: str
) -> Measured | None:
    """A quantity of the cells with these settings: the best of them where there are several.

    ``worst_case``: of all attacks; ``max_accuracy`` and ``last_accuracy``: under ``attack``;
    ``threshold_trend`` and ``threshold_follows``: of C_t under ``attack``.
    """
    each = []
    for cell in matching(found, where):
        one = _of_cell(found, cell, quantity, attack, strength)
        if one is None or not one.by_seed:
            return None
        each.append(one)
    if not each:
        return None
    return each[0] if len(each) == 1 else _best(each)


def _best(each: Sequence[Measured]) -> Measured:
    """The one with the highest mean over the seeds that are complete in all.

    A threshold is chosen once, not for every seed: the maxima by seed are what none of them has.
    """
    incomplete = set[int]().union(*(one.incomplete for one in each))
    seeds = sorted(set.intersection(*(set(one.by_seed) for one in each)))
    # What several have in common at least and at most, where it is not known which is the best.
    found = {
        seed: (max(e.by_seed[seed][0] for e in each), max(e.by_seed[seed][1] for e in each))
        for seed in seeds
    }
    complete = [seed for seed in seeds if seed not in incomplete]
    known = [Measured({seed: one.by_seed[seed] for seed in complete}) for one in each]
    if complete and all(one.exact for one in known):
        found.update(max(known, key=lambda one: one.high).by_seed)
    return Measured(found, incomplete)


def _of_cell(
    found: Survey, cell: Cell, quantity: str, attack: str | None, strength: str
) -> Measured | None:
    if quantity == "worst_case":
        chosen = None if cell.baseline else _strength(found, strength)
        return Measured(cell.begun_at(chosen).bounds, cell.incomplete_at(chosen))
    label = _label(cell, attack, strength)
    if label is None:
        return None
    values = {}
    for run in cell.runs(label):
        outcome = cell.result.outcome(run)
        if outcome is None or not outcome.complete:
            continue
        if quantity in ("max_accuracy", "last_accuracy"):
            key = "test/max_accuracy" if quantity == "max_accuracy" else "test/accuracy"
            value = cell.metric(run, key)
        else:
            threshold = curve_of(found, [run], cell, "clip/threshold")
            norm = curve_of(found, [run], cell, "honest/mean_norm")
            value = trend(threshold) if quantity == "threshold_trend" else follows(threshold, norm)
        if value is not None:
            values[run.seed] = (value, value)
    return Measured(values)


def _strength(found: Survey, strength: str) -> str | None:
    return strength if strength in found.strengths else None


def _label(cell: Cell, attack: str | None, strength: str) -> str | None:
    """The attack of a name at a strength; attacks that do not search have one."""
    if cell.baseline:
        return cell.result.attacks[0]
    for label in cell.result.attacks:
        if label.partition("@")[0] == attack and strength_of(label) in (None, strength):
            return label
    return None


def trend(threshold: Mapping[int, Sequence[float]]) -> float | None:
    """The median threshold of a run's last tenth over that of its first."""
    values = [value[0] for value in threshold.values()]
    count = len(values) // TENTH
    if count < 1:
        return None
    start = statistics.median(values[:count])
    return statistics.median(values[-count:]) / start if start > 0 else None


def follows(
    threshold: Mapping[int, Sequence[float]], norm: Mapping[int, Sequence[float]]
) -> float | None:
    """The correlation over the steps of the logarithms of threshold and norm."""
    both = [
        (math.log(threshold[step][0]), math.log(norm[step][0]))
        for step in threshold.keys() & norm.keys()
        if threshold[step][0] > 0 and norm[step][0] > 0
    ]
    if len(both) < TENTH:
        return None
    try:
        return statistics.correlation(*zip(*both, strict=True))
    except statistics.StatisticsError:  # one of them is constant
        return None
