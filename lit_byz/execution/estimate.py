"""What computing runs would cost: as tracked ones of their kind did, else from timed steps."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lit_byz.config.components import build_model
from lit_byz.config.grid import Point
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.tracked_costs import (
    OVERHEAD,
    Cost,
    evaluations,
    kinds_of,
    load_of,
    median,
    tracked_costs,
)

# Seconds in which kinds of runs are timed: the others are taken to cost as those that were, of the
# same rule or attack if there are any.
PATIENCE = 12.0
# Rows of a step's metrics in SQLite, and the figures and settings of a run, in bytes.
STEP_BYTES = 11 * 150
RUN_BYTES = 250_000
# How many sets of parameters a run of a study keeps; ``auto`` and ``none``: none.
COPIES = {"final": 1, "best": 1, "both": 2}
# The group of all runs.
ANY = ("any",)


@dataclass(frozen=True)
class Estimate:
    """Seconds of one core, bytes in the store, where they come from; of the longest run, too."""

    seconds: float
    bytes: int
    source: str
    longest: float = 0.0


@dataclass
class Prices:
    """What a run of each kind costs, and where that comes from."""

    of_kind: Mapping[str, Cost]
    source: str
    _parameters: dict[str, int] = field(default_factory=dict)

    def of(self, points: Iterable[Point]) -> Estimate:
        """Add up what runs of these kinds cost."""
        seconds, size = [0.0], 0
        for point in points:
            cost = self.of_kind[_kind(point)]
            each = cost.step * point.steps + cost.evaluation * _evaluations(point) + cost.run
            seconds.append(each)
            size += point.steps * STEP_BYTES + RUN_BYTES + self._kept_bytes(point)
        return Estimate(math.fsum(seconds), size, self.source, max(seconds))

    def _kept_bytes(self, point: Point) -> int:
        """The parameters that a run of a study keeps."""
        tracking = point.plain["tracking"]
        copies = COPIES.get(tracking["model"], 0)
        if not copies:
            return 0
        model = str((point.plain["dataset"], point.plain["model"]))
        if model not in self._parameters:
            state = build_model(point.config).state_dict()
            self._parameters[model] = sum(t.numel() * t.element_size() for t in state.values())
        return (copies + bool(tracking["mlflow_model"])) * self._parameters[model]


def estimate(points: Sequence[Point], ledger: Ledger | None = None) -> Estimate:
    """Add up what runs cost; with a ``ledger``, as its tracked runs of the same kind did.

    Runs of a kind differ in seed, partition and settings of training, which do not change what a
    step costs; everything else does.
    """
    return prices(points, ledger).of(points)


def prices(points: Sequence[Point], ledger: Ledger | None = None) -> Prices:
    """What runs of these kinds cost."""
    kinds: dict[str, Point] = {}
    for point in points:
        kinds.setdefault(_kind(point), point)
    known = {} if ledger is None else tracked_costs(ledger, [p.plain for p in kinds.values()])
    of_kind: dict[str, Cost] = {}
    untimed: dict[str, Point] = {}
    for kind, point in kinds.items():
        found = next((known[each] for each in kinds_of(point.plain) if each in known), None)
        if found is not None:
            of_kind[kind] = found
        else:
            untimed[kind] = point
    tracked, timed = len(of_kind), 0
    if untimed:
        from lit_byz.execution.timing import time_kinds  # which imports what it takes to train

        measured = time_kinds(_spread_out(untimed), PATIENCE)
        timed = len(measured)
        of_kind |= {kind: replace(cost, run=OVERHEAD) for kind, cost in measured.items()}
        like: dict[tuple[str, ...], list[Cost]] = defaultdict(list)
        for kind, cost in of_kind.items():
            for group in (*_alike(kinds[kind]), _attack(kinds[kind]), ANY):
                like[group].append(cost)
        for kind, point in untimed.items():
            if kind not in of_kind:
                of_kind[kind] = _like(point, like)
    return Prices(of_kind, _source(tracked, timed, len(untimed) - timed))


def what_costs(points: Iterable[Point]) -> tuple[object, ...]:
    """What decides the cost of runs: other runs with the same cost the same."""
    return tuple((_kind(point), point.steps, _evaluations(point)) for point in points)


def _kind(point: Point) -> str:
    return kinds_of(point.plain)[0]


def _evaluations(point: Point) -> int:
    return evaluations(point.steps, int(point.plain["train"]["eval_every"]))


def _source(tracked: int, timed: int, others: int) -> str:
    """Where the numbers come from, in words."""
    sources = {"from tracked runs": tracked, "from a few timed steps": timed}
    parts = [" and ".join(source for source, count in sources.items() if count)]
    if others:
        parts.append(f"{others} of {tracked + timed + others} kinds of runs taken to be like those")
    return ", ".join(parts)


def _alike(point: Point) -> list[tuple[str, ...]]:
    """What runs have in common that cost about the same: their load and rule, or attack."""
    load = load_of(point.plain)
    return [(load, "rule", str(point.plain["rule"]["name"])), (load, *_attack(point))]


def _attack(point: Point) -> tuple[str, ...]:
    return "attack", str(point.attack)


def _spread_out(kinds: Mapping[str, Point]) -> list[tuple[str, Point]]:
    """One kind for every load with every rule and attack first, in case that time is short."""
    seen: Counter[tuple[str, ...]] = Counter()
    ranked: list[tuple[int, str, Point]] = []
    for kind, point in kinds.items():
        groups = _alike(point)
        seen.update(groups)
        ranked.append((min(seen[group] for group in groups), kind, point))
    ranked.sort(key=lambda entry: entry[0])
    return [(kind, point) for _, kind, point in ranked]


def _like(point: Point, known: Mapping[tuple[str, ...], Sequence[Cost]]) -> Cost:
    """What a run costs that is of no known kind: the median of those that are like it.

    Those of its rule, or of its attack, whichever are dearer; else those of another load.
    """
    found = [median(known[group]) for group in _alike(point) if group in known]
    if found:
        return max(found, key=lambda cost: cost.step)
    return median(known[_attack(point) if _attack(point) in known else ANY])
