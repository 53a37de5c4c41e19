"""The runner: takes tasks from a strategy to an executor, and outcomes back, for the ledger too.

The strategy proposes a run, an executor computes it below its cell's run, the strategy hears of the
outcome, the ledger writes the cell, and so on until the strategy has nothing left to propose.
"""

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType

from lit_byz.config.grid import Point
from lit_byz.execution.board import Board, Proposal, Strategy
from lit_byz.execution.executor import Executor, Inline
from lit_byz.execution.signals import HEARD, handlers_kept, in_main_thread
from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.names import name_in_study
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import StudyRecord

# How often a run is tried again that could not reach the store from where it was.
RETRIES = 3

Watch = Callable[["Runner", Progress | Outcome | None], None]


@dataclass
class Memory:
    """What the ledger knows of runs that a study asks for.

    Results are taken as they are; failures unless they are to be tried again; a run that was only
    bounded where a bound is enough. What else was seen on the way is kept: runs that were killed,
    and runs of the same settings that other code has computed, or this code with another torch.
    Without a ledger nothing is known.
    """

    ledger: Ledger | None
    retry_failed: bool = False
    bounds_suffice: bool = False
    begun: dict[str, Sequence[str]] = field(default_factory=dict)
    other_code: dict[str, str] = field(default_factory=dict)
    other_torch: dict[str, str] = field(default_factory=dict)

    def __call__(self, points: Sequence[Point]) -> Mapping[str, Outcome]:
        known: dict[str, Outcome] = {}
        if self.ledger is None:
            return known
        for identity, found in self.ledger.look_up(points).items():
            self.begun[identity] = found.begun
            outcome = found.outcome
            if outcome is not None and self._counts(outcome):
                known[identity] = outcome
                if found.other_torch:
                    self.other_torch[identity] = found.other_torch
            elif found.other_code:
                self.other_code[identity] = found.other_code[0]
        return known

    def _counts(self, outcome: Outcome) -> bool:
        if outcome.status == "failed":
            return not self.retry_failed
        return outcome.complete or (outcome.status == "bounded" and self.bounds_suffice)


@dataclass
class Runner:
    """Computes a study."""

    ledger: Ledger
    strategy: Strategy
    record: StudyRecord
    memory: Memory
    running: dict[str, Progress] = field(default_factory=dict)
    computed: list[Outcome] = field(default_factory=list)
    stopping: bool = False
    disk_full: bool = False
    _awaited: set[str] = field(default_factory=set)
    _cut_off: Counter[str] = field(default_factory=Counter)

    @property
    def board(self) -> Board:
        return self.strategy.board

    @property
    def reused(self) -> set[str]:
        """Runs of this study whose results had been computed before."""
        known = self.board.outcomes.values()
        return {outcome.identity for outcome in known if outcome.reused and outcome.accuracy}

    def run(self, executor: Executor, watch: Watch, tell: Callable[[str], None]) -> None:
        """Compute what is missing; the ledger is up to date after every run.

        The first Ctrl-C lets the runs that are on save themselves, the second ends them.
        """
        self.ledger.store.patience.hurried = False  # an earlier study of this process was stopped
        self.ledger.open_study(self.record)
        try:
            with self._interruptible(tell):
                executor.run(
                    self._next, lambda message: self._note(message, watch), lambda: self.stopping
                )
                if isinstance(executor, Inline) and self._interrupted():
                    self.stopping = True  # the run itself took the signal, for all of us
        finally:
            if self.stopping:
                self.ledger.store.patience.hurried = True
            self._conclude()

    def _next(self) -> Task | None:
        if self.stopping or self.ledger.store.patience.over:
            return None  # each would wait for the store, for as long as there is patience
        proposal = self.strategy.propose() or self._look_elsewhere()
        self._write_changed()
        if proposal is None:
            return None
        point = proposal.point
        self.running[point.identity] = Progress(point.identity, 0, point.steps, 0.0)
        above = self._cell_run(point.cell)
        limits = (proposal.stop_above, self.board.judged_on)
        wait = point.identity in self._awaited
        return Task(point.plain, point.code, above, *limits, name_in_study(point), wait)

    def _look_elsewhere(self) -> Proposal | None:
        """A run that another process computes: waited for only when nothing else is left.

        Whatever has a result by now is taken as it is.
        """
        if not self.board.elsewhere:
            return None
        for outcome in self.memory(self.board.elsewhere).values():
            if outcome.complete:
                self.strategy.hear(outcome)
        self._awaited |= {point.identity for point in self.board.bring_back()}
        return self.strategy.propose()

    def _note(self, message: Progress | Outcome, watch: Watch) -> None:
        if isinstance(message, Progress):
            self.running[message.identity] = message
        elif message.status == "elsewhere" or self._was_cut_off(message):
            self.running.pop(message.identity, None)
            self.board.put_aside(message.identity)
            watch(self, None)
            return
        else:
            self.running.pop(message.identity, None)
            if not message.reused:
                self.computed.append(message)
            if message.disk_full:
                self.stopping = self.disk_full = True
            self.strategy.hear(message)
            self._write_changed()
        watch(self, message)

    def _was_cut_off(self, outcome: Outcome) -> bool:
        """Whether a run did not reach the store, which answers here: it is tried again later.

        A store that does not is gone for all of us.
        """
        if not outcome.store_gone or self.stopping:
            return False
        store = self.ledger.store
        if store.patience.over or not store.answers():
            store.patience.hurried = True
            return False
        self._cut_off[outcome.identity] += 1
        return self._cut_off[outcome.identity] <= RETRIES

    def _cell_run(self, cell: str) -> str:
        return self.ledger.open_cell(self.board.record(cell), self.board.cells[cell].points)

    def _write_changed(self) -> None:
        for cell in sorted(self.board.changed):
            self._cell_run(cell)
            self.ledger.write_cell(self.board.record(cell), self.board.outcomes)
        self.board.changed.clear()

    def _write_all(self) -> None:
        cells = self.board.cells
        every = [(self.board.record(name), cell.points) for name, cell in cells.items()]
        self.ledger.write_cells(every, self.board.outcomes)
        self.board.changed.clear()

    def _interrupted(self) -> bool:
        """Whether a run was asked to end; where a store or a disk ended it, it has an error."""
        ended = [o for o in self.board.outcomes.values() if o.status == "interrupted"]
        return any(o.error is None for o in ended)

    def _conclude(self) -> None:
        """Leave nothing in the store that looks as if it went on."""
        if missing := self.board.missing:  # another study may have computed them meanwhile
            self.board.outcomes |= self.memory(missing)
        for identity, point in self.board.dropped.items():
            self.ledger.end_killed(point, self.memory.begun.get(identity, ()))
        self._write_all()
        facts = {**self.record.facts, **self.strategy.facts()}
        self.record = replace(self.record, facts=facts)
        self.ledger.close_study(
            self.record, complete=not self.board.missing, failed=bool(self.board.failed)
        )

    @contextmanager
    def _interruptible(self, tell: Callable[[str], None]) -> Iterator[None]:
        def interrupted(number: int, frame: FrameType | None) -> None:
            if self.stopping:
                raise KeyboardInterrupt
            self.stopping = True
            self.ledger.store.patience.hurried = True  # nobody waits for a store that is away
            tell("stopping: the runs that are on save themselves; Ctrl-C again stops at once")

        with handlers_kept():
            if in_main_thread():
                for number in HEARD:
                    signal.signal(number, interrupted)
            yield
