"""What computing runs would cost: as tracked ones of their kind did, else from timed steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lit_byz.config.grid import Point
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.tracked_costs import Cost, kinds_of, median, tracked_costs

# Seconds in which kinds of runs are timed: the others are taken to cost as those that were, of the
# same attack if there are any.
PATIENCE = 12.0
# Seconds that a run takes beside its steps and evaluations: its data, its figures, its tables.
OVERHEAD = 1.5
# Rows of a step's metrics in SQLite, and the figures and settings of a run, in bytes.
STEP_BYTES = 11 * 150
RUN_BYTES = 250_000


@dataclass(frozen=True)
class Estimate:
    """Seconds of one core, bytes in the store, and where they come from."""

    seconds: float
    bytes: int
    source: str


def estimate(points: Sequence[Point], ledger: Ledger | None = None) -> Estimate:
    """Add up what runs cost; with a ``ledger``, as its tracked runs of the same kind did.

    Runs of a kind differ in seed, partition and settings of training, which do not change what a
    step costs; everything else does.
    """
    known = {} if ledger is None else tracked_costs(ledger)
    of_kind: dict[str, Cost] = {}
    untimed: dict[str, Point] = {}
    for point in points:
        kind, *rougher = kinds_of(point.plain)
        found = next((known[each] for each in (kind, *rougher) if each in known), None)
        if found is not None:
            of_kind[kind] = found
        else:
            untimed.setdefault(kind, point)
    tracked, timed = len(of_kind), 0
    if untimed:
        from lit_byz.execution.timing import time_kinds  # which imports what it takes to train

        measured = time_kinds(_spread_out(untimed), PATIENCE)
        timed = len(measured)
        of_kind |= {kind: _with_overhead(cost, untimed[kind]) for kind, cost in measured.items()}
        attacks = {kind: _attack(point) for kind, point in untimed.items()}
        attacks |= {kinds_of(p.plain)[0]: _attack(p) for p in points}
        like = dict(of_kind)
        for kind, point in untimed.items():
            if kind not in like:
                of_kind[kind] = _like(_attack(point), like, attacks)
    total, size = 0.0, 0
    for point in points:
        cost = of_kind[kinds_of(point.plain)[0]]
        every = int(point.plain["train"]["eval_every"])
        total += cost.step * point.steps + cost.evaluation * (point.steps / every)
        size += point.steps * STEP_BYTES + RUN_BYTES
    return Estimate(total, size, _source(tracked, timed, len(untimed) - timed))


def _source(tracked: int, timed: int, others: int) -> str:
    """Where the numbers come from, in words."""
    parts = []
    if tracked:
        parts.append("from tracked runs")
    if timed:
        parts.append("from a few timed steps")
    if others:
        parts.append(f"{others} of {tracked + timed + others} kinds of runs taken to be like those")
    return ", ".join(parts)


def _attack(point: Point) -> str:
    return str(point.attack)


def _spread_out(kinds: Mapping[str, Point]) -> list[tuple[str, Point]]:
    """One kind for every attack and model first, in case that time is short."""
    seen: dict[tuple[str, str], int] = {}
    ranked: list[tuple[int, str, Point]] = []
    for kind, point in kinds.items():
        group = (str(point.plain["model"]["name"]), _attack(point))
        seen[group] = seen.get(group, 0) + 1
        ranked.append((seen[group], kind, point))
    ranked.sort(key=lambda entry: entry[0])
    return [(kind, point) for _, kind, point in ranked]


def _with_overhead(cost: Cost, point: Point) -> Cost:
    """What belongs to the run as a whole is added to its evaluations, as tracked runs have it."""
    evaluations = max(1.0, point.steps / int(point.plain["train"]["eval_every"]))
    return Cost(cost.step, cost.evaluation + OVERHEAD / evaluations)


def _like(attack: str, known: Mapping[str, Cost], attacks: Mapping[str, str]) -> Cost:
    """What a run costs that is of no known kind: the median of those that are like it."""
    same = [cost for kind, cost in known.items() if attacks.get(kind) == attack]
    costs = same or list(known.values())
    return median(costs)
