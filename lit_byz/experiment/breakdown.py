"""Breakdown points: the smallest f at which the worst case falls below a threshold.

The search is a bisection over f, which assumes that an arm that breaks at some f breaks at every
larger one. Its runs are those of the full grid over f, a few of them: each probe of an arm (a way
of clipping, say) at an f is a cell of a sweep, and ends as soon as its runs decide it.
"""

import hashlib
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lit_byz.errors import BadRequest
from lit_byz.experiment.grid import Grid, Point, points
from lit_byz.experiment.sweep import Sweep
from lit_byz.experiment.tasks import Outcome
from lit_byz.report.breakdown import ArmResult, FullAnswer, Level
from lit_byz.report.worst_case_table import Accuracy
from lit_byz.tracking import open_store

REAL = "workers.f"
# A metric of the study's own run.
USED = "breakdown/runs_used"

# Seed to what is known of each attack's run; None where nothing is.
Known = Mapping[int, Sequence[Accuracy | None]]


@dataclass
class Bisection:
    """The smallest f in 1 … ``most`` that breaks, where all larger ones break too.

    >>> search = Bisection(most=9)
    >>> while (f := search.next) is not None:
    ...     search.note(f, broken=f >= 4)
    >>> search.answer
    4
    """

    most: int
    holds: int = 0
    breaks: int | None = None

    @property
    def _above(self) -> int:
        return self.most + 1 if self.breaks is None else self.breaks

    @property
    def next(self) -> int | None:
        """The f to look at, or None if the answer is known."""
        return None if self._above - self.holds == 1 else (self.holds + self._above) // 2

    def note(self, f: int, broken: bool) -> None:
        if broken:
            self.breaks = f
        else:
            self.holds = f

    @property
    def answer(self) -> int | None:
        """The smallest f that breaks; None if all hold, or as long as ``next`` has one to ask."""
        return self.breaks if self.next is None else None


def _smallest(found: Iterable[Accuracy], default: float) -> float:
    return min((accuracy.value for accuracy in found), default=default)


def upper_bound(known: Known) -> float:
    """What the mean over seeds of the worst case is at most: 1 for a seed with nothing yet."""
    return statistics.fmean(
        _smallest([a for a in runs if a is not None and not a.lower_bound], 1.0)
        for runs in known.values()
    )


def lower_bound(known: Known) -> float:
    """What the mean over seeds of the worst case is at least: 0 for a seed with a run missing."""
    return statistics.fmean(
        0.0 if any(a is None for a in runs) else _smallest([a for a in runs if a is not None], 0.0)
        for runs in known.values()
    )


def is_broken(known: Known, threshold: float) -> bool | None:
    """Whether the mean worst case is below the threshold; None while runs leave it open."""
    if upper_bound(known) < threshold:
        return True
    return False if lower_bound(known) >= threshold else None


def level(known: Known, threshold: float) -> Level:
    """The worst case as far as it is known: from the side that decides, where runs are missing."""
    upper, lower = upper_bound(known), lower_bound(known)
    if upper > lower:
        return Level(lower, kind="at least") if lower >= threshold else Level(upper, kind="at most")
    smallest = [_smallest([a for a in runs if a is not None], 0.0) for runs in known.values()]
    spread = statistics.stdev(smallest) if len(smallest) > 1 else 0.0
    return Level(statistics.fmean(smallest), spread, len(smallest))


@dataclass
class Arm:
    """One arm of a study: its runs at every f, how far its search is, and the f being probed."""

    by_f: dict[int, list[Point]]
    search: Bisection
    probed: list[int] = field(default_factory=list)
    open: int | None = None


@dataclass
class Breakdown(Sweep):
    """A sweep whose arms each look for their breakdown point, independently of each other.

    A probe is decided as soon as the upper bound of its mean worst case is below the threshold:
    runs that have not begun are then dropped. With ``decide_only`` runs also stop where they
    cannot change an answer: with one seed at the threshold, with several where they cannot lower
    the worst case of their own seed (the mean may still need its exact value).
    """

    arms: dict[str, Arm] = field(default_factory=dict)
    threshold: float = 0.5
    decide_only: bool = False

    def supply(self) -> None:
        for arm in self.arms.values():
            self._advance(arm)

    def settle(self, outcome: Outcome) -> None:
        for arm in self.arms.values():
            self._judge(arm)
            self._advance(arm)

    def _advance(self, arm: Arm) -> None:
        """Begin an arm's next probe; what the store knows already may decide it."""
        while arm.open is None and (f := arm.search.next) is not None:
            arm.open = f
            arm.probed.append(f)
            self.add(arm.by_f[f])
            self._judge(arm)

    def _judge(self, arm: Arm) -> None:
        if arm.open is None:
            return
        seen = known(self, arm.by_f[arm.open])
        broken = is_broken(seen, self.threshold)
        if broken is None:
            return
        if not broken and not self.decide_only and any(None in runs for runs in seen.values()):
            return  # decided, but what holds is shown with its exact worst case
        arm.search.note(arm.open, broken)
        self.drop(arm.by_f[arm.open][0].cell)
        arm.open = None

    def _bound(self, point: Point) -> float | None:
        if not self.decide_only:
            return None
        arm = self.arms[arm_of(point)]
        seeds = {other.seed for other in arm.by_f[int(point.config.workers.f)]}
        return self.threshold if len(seeds) == 1 else super()._bound(point)

    @property
    def most(self) -> int:
        return max(arm.search.most for arm in self.arms.values())

    def count_runs(self) -> int:
        """The runs that the search has needed so far, reused ones included.

        Once it is decided, as many as it took when it was decided first, which is recorded: later
        calls may find runs in the store that it did without.
        """
        used = sum(o.complete or o.status == "bounded" for o in self.outcomes.values())
        if self.run_id is None or any(arm.search.next for arm in self.arms.values()):
            return used
        stored = self.store.client.get_run(self.run_id).data.metrics.get(USED)
        if stored is None:
            self.store.client.log_metric(self.run_id, USED, used)
            return used
        return int(stored)

    @property
    def grid_points(self) -> list[Point]:
        """The runs of the full grid."""
        return [p for arm in self.arms.values() for at_f in arm.by_f.values() for p in at_f]

    def most_runs(self) -> int:
        """The runs of a search in which no probe is decided early."""
        return sum(
            arm.search.most.bit_length() * max(len(at_f) for at_f in arm.by_f.values())
            for arm in self.arms.values()
        )

    def answers(self, full: Sweep | None = None) -> dict[str, ArmResult]:
        """What was found for each arm, beside the full grid's answer if there is one."""
        return {
            name: ArmResult(
                {f: level(known(self, arm.by_f[f]), self.threshold) for f in arm.probed},
                arm.search.answer,
                arm.search.next is None,
                None if full is None else scan(full, arm, self.threshold),
            )
            for name, arm in self.arms.items()
        }


def known(sweep: Sweep, wanted: Sequence[Point]) -> dict[int, list[Accuracy | None]]:
    """What a sweep knows of some runs, by seed."""
    by_identity = {sweep.points[index].identity: o for index, o in sweep.outcomes.items()}
    found: dict[int, list[Accuracy | None]] = defaultdict(list)
    for point in wanted:
        outcome = by_identity.get(point.identity)
        accuracy = None
        if outcome is not None and outcome.max_accuracy is not None:
            bounded = outcome.status == "bounded"
            if outcome.complete or bounded:
                accuracy = Accuracy(outcome.max_accuracy, bounded)
        found[point.seed].append(accuracy)
    return found


def scan(full: Sweep, arm: Arm, threshold: float) -> FullAnswer | None:
    """The answer of the full grid: the smallest f below the threshold; None if runs are missing."""
    seen = {f: known(full, at_f) for f, at_f in arm.by_f.items()}
    if any(None in runs for by_seed in seen.values() for runs in by_seed.values()):
        return None
    levels = {f: level(by_seed, threshold) for f, by_seed in seen.items()}
    below = [f for f, found in sorted(levels.items()) if found.mean < threshold]
    first = below[0] if below else None
    monotone = first is None or below == list(range(first, arm.search.most + 1))
    return FullAnswer(first, monotone, levels)


def arm_of(point: Point) -> str:
    """What a run's arm is called: its cell without f."""
    rest = {key: value for key, value in point.values.items() if key != REAL}
    return replace(point, values=rest).cell


def make_breakdown(
    grid: Grid,
    *,
    threshold: float,
    max_f: int | None = None,
    decide_only: bool = False,
    retry_failed: bool = False,
) -> Breakdown:
    """A study over the arms of a grid, with every run of the full grid over f composed."""
    if not 0 < threshold <= 1:
        raise BadRequest(f"--threshold {threshold:g}: must be above 0 and at most 1")
    axes = {key for group in (grid.axes, *grid.zip) for key in group}
    for key in (REAL, "workers.honest"):
        if key in axes:
            raise BadRequest(f"{key}: must not be an axis here; f goes from 1 to --max-f")
    most = _largest_f(grid, max_f)
    runs = points(replace(grid, axes={**grid.axes, REAL: list(range(1, most + 1))}))
    arms: dict[str, Arm] = {}
    for point in runs:
        arm = arms.setdefault(arm_of(point), Arm({}, Bisection(most)))
        arm.by_f.setdefault(int(point.config.workers.f), []).append(point)
    tracking = runs[0].config.tracking
    store = open_store(tracking.uri)
    joined = json.dumps(["breakdown", threshold, sorted(point.identity for point in runs)])
    return Breakdown(
        store,
        store.experiment(tracking.experiment),
        key=hashlib.sha256(joined.encode()).hexdigest(),
        name=f"breakdown points of {len(arms)} arms",
        worst_case_only=True,  # the order: an attack that has hurt most so far comes first
        retry_failed=retry_failed,
        kind="breakdown",
        arms=arms,
        threshold=threshold,
        decide_only=decide_only,
    )


def _largest_f(grid: Grid, max_f: int | None) -> int:
    """``max_f``, or the largest f with 2 f < n, n = honest + f."""
    if grid.also:
        raise BadRequest("grid.also: a breakdown study takes axes only")
    first = {**next(grid.values()), REAL: 1}
    honest = int(points(Grid(grid.base, also=[first]))[0].config.workers.honest)
    if honest < 2:
        raise BadRequest(f"workers.honest = {honest}: must be at least 2 for any f with 2 f < n")
    if max_f is None:
        return honest - 1
    if not 1 <= max_f < honest:
        raise BadRequest(
            f"--max-f {max_f}: must be from 1 to {honest - 1}, so that 2 f < n "
            f"with workers.honest = {honest}"
        )
    return max_f
