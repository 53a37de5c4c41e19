"""Breakdown points: the smallest f at which the worst case falls below a threshold.

The search is a bisection over f, which assumes that an arm that breaks at some f breaks at every
larger one. Its runs are those of the full grid over f, a few of them: each probe of an arm (a way
of clipping, say) at an f is a cell, and ends as soon as its runs decide it.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lit_byz.config.grid import MOST_POINTS, Grid, Point, points
from lit_byz.errors import BadRequest
from lit_byz.execution.board import Board, Proposal, Recall, nothing_known
from lit_byz.studies.grid import GridStudy
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.worst_case import WorstCase

REAL = "workers.f"


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
    def above(self) -> int:
        """The smallest f that is known to break, or the one after the last."""
        return self.most + 1 if self.breaks is None else self.breaks

    @property
    def next(self) -> int | None:
        """The f to look at, or None if the answer is known."""
        return None if self.above - self.holds == 1 else (self.holds + self.above) // 2

    def note(self, f: int, broken: bool) -> None:
        if broken:
            self.breaks = f
        else:
            self.holds = f

    @property
    def answer(self) -> int | None:
        """The smallest f that breaks; None if all hold, or as long as ``next`` has one to ask."""
        return self.breaks if self.next is None else None


def is_broken(found: WorstCase, threshold: float) -> bool | None:
    """Whether the mean worst case is below the threshold; None while runs leave it open."""
    if found.at_most < threshold:
        return True
    return False if found.at_least >= threshold else None


@dataclass
class Arm:
    """One arm of a study: its runs at every f, how far its search is, and the f being probed."""

    by_f: dict[int, list[Point]]
    search: Bisection
    probed: list[int] = field(default_factory=list)
    open: int | None = None


@dataclass
class BreakdownStudy:
    """Arms that each look for their breakdown point, independently of each other.

    A probe is decided as soon as the upper bound of its mean worst case is below the threshold:
    runs that have not begun are then dropped. With ``decide_only`` runs also stop where they
    cannot change an answer: with one seed at the threshold, with several where they cannot lower
    the worst case of their own seed (the mean may still need its exact value).
    """

    arms: dict[str, Arm]
    threshold: float = 0.5
    decide_only: bool = False
    board: Board = field(default_factory=Board)
    used_before: int | None = None
    """The runs that it took when it was decided first: later it may find runs it did without."""

    def propose(self) -> Proposal | None:
        self.begin()
        point = self.board.most_urgent()
        return None if point is None else Proposal(self.board.start(point), self._bound(point))

    def begin(self) -> None:
        """Put the runs of the next probes on the board; what is known already may decide some."""
        if not self.board.waiting:
            for name in self.arms:
                self._advance(name)
        if not self.board.waiting:
            self._look_closer()

    def later(self, known: Container[str] = ()) -> list[Point]:
        """The runs that are not on the board yet and may come at most, without the ``known``."""
        found: dict[str, Point] = {}
        for arm in self.arms.values():
            sides = [(arm.search.holds, arm.search.above)]
            if arm.open is not None:
                (low, high), f = sides[0], arm.open
                sides = [(low, f), (f, high)] if self._goes_on(arm.by_f[f]) else []
            ways = (_longest(arm, *side, known) for side in sides)
            found |= {point.identity: point for point in max(ways, key=len, default=[])}
        there = {point.identity for point in self.board.points}
        return [point for identity, point in found.items() if identity not in there]

    def most_to_come(self) -> tuple[int, int]:
        """How many runs may be added to the board at most, and their steps."""
        later = self.later()
        return len(later), sum(point.steps for point in later)

    def _goes_on(self, probed: Sequence[Point]) -> bool:
        """Whether runs of a probe are on or wait: one that failed may leave it undecided."""
        board = self.board
        at_it = {p.identity for p in (*board.waiting, *board.elsewhere)} | board.running.keys()
        return any(point.identity in at_it for point in probed)

    def hear(self, outcome: Outcome) -> None:
        self.board.end(outcome)
        for name in self.arms:
            self._judge(name)
            self._advance(name)

    def _advance(self, name: str) -> None:
        """Begin an arm's next probe; what is known already may decide it."""
        arm = self.arms[name]
        while arm.open is None and (f := arm.search.next) is not None:
            arm.open = f
            arm.probed.append(f)
            self.board.add(arm.by_f[f], arm=name, f=f, decided=False)
            self._judge(name)

    def _look_closer(self) -> None:
        """Go on with runs that were stopped before, where their bounds leave an arm undecided.

        They were enough for a study of another threshold, or with fewer seeds.
        """
        for arm in self.arms.values():
            probed = [] if arm.open is None else arm.by_f[arm.open]
            if probed and not self.board.busy(probed[0].cell):
                self.board.reconsider(probed, self._bound)

    def _judge(self, name: str) -> None:
        arm = self.arms[name]
        if arm.open is None:
            return
        cell = arm.by_f[arm.open][0].cell
        found = self.board.worst_case(cell)
        broken = is_broken(found, self.threshold)
        if broken is None:
            return
        if not broken and not self.decide_only and found.missing:
            return  # decided, but what holds is shown with its exact worst case
        arm.search.note(arm.open, broken)
        self.board.drop(cell)
        self.board.say(cell, decided=True)
        arm.open = None

    def _bound(self, point: Point) -> float | None:
        if not self.decide_only:
            return None
        seeds = {other.seed for other in self.board.cells[point.cell].points}
        return self.threshold if len(seeds) == 1 else self.board.smallest(point)

    @property
    def most(self) -> int:
        return max(arm.search.most for arm in self.arms.values())

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

    def facts(self) -> Mapping[str, Any]:
        used = sum(o.accuracy is not None for o in self.board.outcomes.values())
        if self.used_before is not None:
            used = self.used_before
        return {
            "threshold": self.threshold,
            "most": self.most,
            "runs_used": used,
            "runs_full_grid": len(self.grid_points),
            "arms": {
                name: {"breakdown": arm.search.answer, "decided": arm.search.next is None}
                for name, arm in self.arms.items()
            },
        }


def _longest(arm: Arm, holds: int, above: int, known: Container[str]) -> list[Point]:
    """The runs of the search between two f that needs the most of them."""
    f = Bisection(above - 1, holds).next
    if f is None:
        return []
    here = [point for point in arm.by_f[f] if point.identity not in known]
    ways = (_longest(arm, *side, known) for side in ((holds, f), (f, above)))
    return here + max(ways, key=len)


def arm_of(point: Point) -> str:
    """What a run's arm is called: its cell without f."""
    return point.without((REAL,)).cell


class FullGrid(GridStudy):
    """The full grid over f, its cells marked as the search marks its own."""

    def __init__(self, points: Sequence[Point], recall: Recall = nothing_known) -> None:
        super().__init__(points, recall)
        for cell in self.board.cells.values():
            point = cell.points[0]
            cell.facts.update(arm=arm_of(point), f=int(point.plain["workers"]["f"]))


def make_arms(grid: Grid, max_f: int | None = None) -> dict[str, Arm]:
    """The arms of a grid, with every run of the full grid over f composed."""
    for key in (REAL, "workers.honest"):
        if key in grid.keys:
            raise BadRequest(f"{key}: must not be an axis here; f goes from 1 to --max-f")
    most = _largest_f(grid, max_f)
    arms: dict[str, Arm] = {}
    for point in points(replace(grid, axes={**grid.axes, REAL: list(range(1, most + 1))})):
        arm = arms.setdefault(arm_of(point), Arm({}, Bisection(most)))
        arm.by_f.setdefault(int(point.plain["workers"]["f"]), []).append(point)
    return arms


def make_breakdown(
    arms: dict[str, Arm], threshold: float, decide_only: bool, recall: Recall = nothing_known
) -> BreakdownStudy:
    """The search over these arms, with its threshold checked."""
    if not 0 < threshold <= 1:
        raise BadRequest(f"--threshold {threshold:g}: must be above 0 and at most 1")
    return BreakdownStudy(arms, threshold, decide_only, Board(recall))


def _largest_f(grid: Grid, max_f: int | None) -> int:
    """``max_f``, or the largest f with 2 f < n, n = honest + f."""
    if grid.also:
        raise BadRequest("grid.also: a breakdown study takes axes only")
    first = {**grid.values()[0], REAL: 1}
    honest = int(points(Grid(grid.base, also=[first]))[0].plain["workers"]["honest"])
    if honest < 2:
        raise BadRequest(f"workers.honest = {honest}: must be at least 2 for any f with 2 f < n")
    if max_f is None and honest <= MOST_POINTS:
        return honest - 1
    if max_f is None:
        raise BadRequest(f"workers.honest = {honest}: needs --max-f, there are too many f to try")
    if not 1 <= max_f < honest:
        raise BadRequest(
            f"--max-f {max_f}: must be from 1 to {honest - 1}, so that 2 f < n "
            f"with workers.honest = {honest}"
        )
    return max_f
