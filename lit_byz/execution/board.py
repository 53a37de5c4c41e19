"""What a study knows of its runs: which there are, by cell, which wait, are on, or have ended."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lit_byz.config.grid import Point
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import CellRecord, CellResult, PlannedRun
from lit_byz.tracking.worst_case import WorstCase

# What an attack is taken to leave of the accuracy before anything is known of it.
UNKNOWN_HARM = 0.5


@dataclass(frozen=True)
class Proposal:
    """A run to compute; ``stop_above`` is the accuracy beyond which it cannot matter any more."""

    point: Point
    stop_above: float | None = None


@dataclass
class Cell:
    """Everything but attack and seed: its runs, and where it stands in its study."""

    points: list[Point]
    kind: str = "cell"
    facts: dict[str, Any] = field(default_factory=dict)


# What is known already of some runs, by identity.
Recall = Callable[[Sequence[Point]], Mapping[str, Outcome]]
# The accuracy beyond which a run cannot matter any more; None where there is none.
Bound = Callable[[Point], float | None]


def nothing_known(points: Sequence[Point]) -> Mapping[str, Outcome]:
    """No run has been computed before."""
    return {}


@dataclass
class Board:
    """The runs of a study and what is known of them. Bookkeeping: no store, no process, no clock.

    ``changed`` are the cells of which more is known, or that stand differently, than was written;
    what was known when a run was added can wait until the end. ``elsewhere`` are runs that another
    process computes: they are put aside until nothing else is left. ``judged_on`` names the images
    whose accuracy counts: ``test``, or ``val`` for those held out.
    """

    recall: Recall = nothing_known
    cells: dict[str, Cell] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    running: dict[str, Point] = field(default_factory=dict)
    waiting: list[Point] = field(default_factory=list)
    elsewhere: list[Point] = field(default_factory=list)
    dropped: dict[str, Point] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    judged_on: str = "test"
    # The cells that a run belongs to, by identity.
    _holders: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, points: Sequence[Point], kind: str = "cell", **facts: Any) -> None:
        """Take in more runs; they wait unless they are known already."""
        new = [point for point in points if point.identity not in self.outcomes]
        self.outcomes |= self.recall(new)
        for point in points:
            if point.cell not in self.cells:
                place: dict[str, Any] = {"place": len(self.cells)}
                if self.judged_on != "test":
                    place["judged_on"] = self.judged_on
                self.cells[point.cell] = Cell([], kind, {**place, **facts})
            self.cells[point.cell].points.append(point)
            self._holders[point.identity].add(point.cell)
            known = self.outcomes.get(point.identity)
            if known is None or not known.settled:
                self.dropped.pop(point.identity, None)
                self.waiting.append(point)

    def reconsider(self, points: Sequence[Point], bound_of: Bound | None = None) -> None:
        """Let runs that an earlier study stopped wait again, unless they are above their bound."""
        for point in points:
            found = self.outcomes.get(point.identity)
            if found is not None and found.status == "bounded":
                bound = (bound_of or self.smallest)(point)
                if bound is None or (self.accuracy_of(found) or 0.0) < bound:
                    del self.outcomes[point.identity]
                    self.waiting.append(point)

    def accuracy_of(self, outcome: Outcome) -> float | None:
        """The maximal accuracy that counts here."""
        return outcome.judged_on(self.judged_on).max_accuracy

    def say(self, cell: str, **facts: Any) -> None:
        """Note facts of a cell."""
        self.cells[cell].facts.update(facts)
        self.changed.add(cell)

    def start(self, point: Point) -> Point:
        self.waiting.remove(point)
        self.running[point.identity] = point
        return point

    def end(self, outcome: Outcome) -> None:
        self.running.pop(outcome.identity, None)
        self.outcomes[outcome.identity] = outcome
        if outcome.settled:
            # The same run may wait in another cell too.
            self.waiting = [p for p in self.waiting if p.identity != outcome.identity]
            self.elsewhere = [p for p in self.elsewhere if p.identity != outcome.identity]
            self.changed |= self._holders[outcome.identity]

    def put_aside(self, identity: str) -> None:
        """A run that was started turned out to be computed by another process."""
        point = self.running.pop(identity, None)
        if point is not None and not self._is_settled(identity):
            self.elsewhere.append(point)

    def bring_back(self) -> list[Point]:
        """Let the runs wait again that were put aside."""
        brought, self.elsewhere = self.elsewhere, []
        self.waiting += brought
        return brought

    @property
    def busy_or_waiting(self) -> bool:
        """Whether runs are on, here or elsewhere, or wait."""
        return bool(self.running or self.waiting or self.elsewhere)

    def drop(self, cell: str) -> None:
        """Compute no more runs of a cell; those that are on go on."""
        for runs in (self.waiting, self.elsewhere):
            for point in [point for point in runs if point.cell == cell]:
                runs.remove(point)
                self.dropped[point.identity] = point

    def record(self, name: str) -> CellRecord:
        cell = self.cells[name]
        runs = [PlannedRun(p.attack, p.seed, p.identity, p.steps) for p in cell.points]
        return CellRecord(name, runs, cell.kind, cell.facts)

    def result(self, name: str) -> CellResult:
        return CellResult(self.record(name), self.outcomes)

    def worst_case(self, name: str) -> WorstCase:
        return self.result(name).worst_case

    @property
    def points(self) -> list[Point]:
        """Every run once."""
        every = {p.identity: p for cell in self.cells.values() for p in cell.points}
        return list(every.values())

    @property
    def missing(self) -> list[Point]:
        """Runs that are needed and have no result."""
        return [
            point
            for point in self.points
            if point.identity not in self.dropped and not self._is_settled(point.identity)
        ]

    def _is_settled(self, identity: str) -> bool:
        found = self.outcomes.get(identity)
        return found is not None and found.settled

    @property
    def failed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes.values() if outcome.status == "failed"]

    def busy(self, cell: str, seed: int | None = None) -> int:
        """How many runs of a cell (and seed) are on."""
        return sum(p.cell == cell and seed in (None, p.seed) for p in self.running.values())

    def harm(self) -> dict[str, float]:
        """The mean of the maximal accuracies that are known under each attack."""
        seen: dict[str, list[float]] = defaultdict(list)
        for point in self.points:
            found = self.outcomes.get(point.identity)
            reached = None if found is None else self.accuracy_of(found)
            if reached is not None:
                seen[point.attack].append(reached)
        return {attack: statistics.fmean(values) for attack, values in seen.items()}

    @property
    def ready(self) -> Iterator[Point]:
        """The runs that wait, without those that are on for another cell's sake."""
        return (point for point in self.waiting if point.identity not in self.running)

    def most_urgent(self) -> Point | None:
        """The run to do next: where nobody is at work, under the attack that has hurt most."""
        harm = self.harm()

        def urgency(point: Point) -> tuple[float, float]:
            return self.busy(point.cell, point.seed), harm.get(point.attack, UNKNOWN_HARM)

        return min(self.ready, key=urgency, default=None)

    def smallest(self, point: Point) -> float | None:
        """The accuracy above which a run cannot lower the worst case of its seed any more.

        That is the smallest maximal accuracy of the complete runs of its cell, or the largest of
        these where it belongs to several.
        """
        bounds = [self._smallest(cell, point.seed) for cell in self._holders[point.identity]]
        known = [bound for bound in bounds if bound is not None]
        return max(known) if len(known) == len(bounds) > 0 else None

    def _smallest(self, cell: str, seed: int) -> float | None:
        found = [
            reached
            for other in self.cells[cell].points
            if other.seed == seed
            and (outcome := self.outcomes.get(other.identity)) is not None
            and outcome.complete
            and (reached := self.accuracy_of(outcome)) is not None
        ]
        return min(found, default=None)


class Strategy(Protocol):
    """What to compute next, decided from outcomes alone."""

    board: Board

    def propose(self) -> Proposal | None:
        """A run to compute now; None if there is none at the moment."""
        ...

    def hear(self, outcome: Outcome) -> None:
        """Take note of how a run ended."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """What the study has found out, for its record."""
        ...
