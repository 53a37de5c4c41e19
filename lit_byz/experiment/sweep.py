"""Sweeps: the runs of a grid, each computed once, and the worst case of every cell."""

import hashlib
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lit_byz.experiment.config import to_plain
from lit_byz.experiment.executors import Executor
from lit_byz.experiment.grid import Point
from lit_byz.experiment.tasks import Outcome, Progress, Task
from lit_byz.tracking import Store, open_store
from lit_byz.tracking.store import IDENTITY, KIND, PARENT
from lit_byz.tracking.worst_case import write_worst_case

Watch = Callable[["Sweep", Progress | Outcome | None], None]


@dataclass
class Sweep:
    """The runs of a grid, what is known of each, and what is still to do."""

    points: Sequence[Point]
    store: Store
    experiment_id: str
    worst_case_only: bool = False
    retry_failed: bool = False
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    running: dict[int, Progress] = field(default_factory=dict)
    computed: list[Outcome] = field(default_factory=list)
    stopping: bool = False
    run_id: str | None = None
    _cells: dict[str, str] = field(default_factory=dict)
    _pending: list[int] = field(default_factory=list)

    @property
    def identity(self) -> str:
        """A hash of all of its runs."""
        joined = json.dumps(sorted(point.identity for point in self.points))
        return hashlib.sha256(joined.encode()).hexdigest()

    @property
    def failed(self) -> list[Outcome]:
        return [o for o in self.outcomes.values() if o.status == "failed"]

    @property
    def missing(self) -> list[int]:
        """Runs that have no result yet."""
        settled = ("finished", "diverged", "bounded", "failed")
        return [
            index
            for index in range(len(self.points))
            if index not in self.outcomes or self.outcomes[index].status not in settled
        ]

    def look_up(self) -> None:
        """Find out which runs the store has already."""
        known: dict[str, list[Any]] = defaultdict(list)
        query = f"tags.`{KIND}` = 'run'"
        token = None
        while True:
            page = self.store.client.search_runs(
                [self.experiment_id], query, max_results=1000, page_token=token
            )
            for run in page:
                known[run.data.tags.get(IDENTITY, "")].append(run)
            token = page.token
            if not token:
                break
        for index, point in enumerate(self.points):
            found = _settled(index, known.get(point.identity, []))
            if found is not None and not (found.status == "failed" and self.retry_failed):
                self.outcomes[index] = found
        self._pending = [i for i in range(len(self.points)) if i not in self.outcomes]

    @property
    def pending(self) -> int:
        return len(self._pending)

    def compute(self, executor: Executor, watch: Watch) -> None:
        """Compute what is missing; the store is up to date after every run."""
        self._open_parents()
        try:
            executor.run(
                self._next, lambda message: self._note(message, watch), lambda: self.stopping
            )
        finally:
            for cell in self._cells:
                self._write_cell(cell)
            complete = not self.missing and not self.failed
            self.store.client.set_terminated(
                str(self.run_id), "FINISHED" if complete else "KILLED" if self.missing else "FAILED"
            )

    def results(self) -> dict[str, dict[str, dict[int, Outcome]]]:
        """Outcomes by cell, attack and seed."""
        found: dict[str, dict[str, dict[int, Outcome]]] = {}
        for index, point in enumerate(self.points):
            by_attack = found.setdefault(point.cell, {}).setdefault(point.attack, {})
            if index in self.outcomes:
                by_attack[point.seed] = self.outcomes[index]
        return found

    def steps_saved(self) -> tuple[int, int]:
        """Steps that bounded runs did not have to take, and all steps of the runs computed."""
        total = saved = 0
        for outcome in self.computed:
            steps = int(self.points[outcome.index].config.train.steps)
            if outcome.complete or outcome.status == "bounded":
                total += steps
            if outcome.status == "bounded":
                saved += steps - outcome.steps_done
        return saved, total

    def _next(self) -> Task | None:
        if self.stopping or not self._pending:
            return None
        index = min(self._pending, key=self._urgency) if self.worst_case_only else self._pending[0]
        self._pending.remove(index)
        point = self.points[index]
        self.running[index] = Progress(index, 0, int(point.config.train.steps), 0.0)
        bound = self._bound(point) if self.worst_case_only else None
        return Task(index, to_plain(point.config), self._cells[point.cell], bound)

    def _urgency(self, index: int) -> tuple[int, float, int]:
        """Cells that nobody works on first; within one, the attack that has hurt most so far."""
        point = self.points[index]
        busy = sum(
            self.points[i].cell == point.cell and self.points[i].seed == point.seed
            for i in self.running
        )
        seen = [
            outcome.max_accuracy
            for i, outcome in self.outcomes.items()
            if self.points[i].attack == point.attack and outcome.max_accuracy is not None
        ]
        return busy, sum(seen) / len(seen) if seen else 0.5, index

    def _bound(self, point: Point) -> float | None:
        """The smallest maximal accuracy of the finished runs of a point's cell and seed."""
        found = [
            outcome.max_accuracy
            for index, outcome in self.outcomes.items()
            if outcome.complete
            and outcome.max_accuracy is not None
            and self.points[index].cell == point.cell
            and self.points[index].seed == point.seed
        ]
        return min(found, default=None)

    def _note(self, message: Progress | Outcome, watch: Watch) -> None:
        if isinstance(message, Progress):
            self.running[message.index] = message
        else:
            self.running.pop(message.index, None)
            self.outcomes[message.index] = message
            if not message.reused:
                self.computed.append(message)
            if message.complete:
                self._write_cell(self.points[message.index].cell)
        watch(self, message)

    def _open_parents(self) -> None:
        """The sweep's own run and one per cell, taken up again if they are there."""
        name = f"sweep of {len(self.points)} runs"
        self.run_id = self._parent(self.identity, "sweep", name, {})
        for cell in dict.fromkeys(point.cell for point in self.points):
            key = hashlib.sha256(f"{self.identity} {cell}".encode()).hexdigest()
            self._cells[cell] = self._parent(
                key, "cell", cell or "one cell", {PARENT: str(self.run_id)}
            )
            example = next(point for point in self.points if point.cell == cell)
            self._write_settings(self._cells[cell], example)

    def _parent(self, key: str, kind: str, name: str, tags: dict[str, str]) -> str:
        for run in self.store.find(self.experiment_id, key):
            self.store.client.update_run(run.info.run_id, status="RUNNING")
            return str(run.info.run_id)
        created = self.store.client.create_run(
            self.experiment_id,
            start_time=int(time.time() * 1000),
            tags={IDENTITY: key, KIND: kind, **tags},
            run_name=name,
        )
        return str(created.info.run_id)

    def _write_settings(self, run_id: str, point: Point) -> None:
        """A cell's settings as params, so that the UI can compare cells."""
        from lit_byz.tracking.logger import Tracker

        plain = {k: v for k, v in to_plain(point.config).items() if k not in ("attack", "seed")}
        Tracker(self.store, run_id).log_hyperparams(plain)

    def _write_cell(self, cell: str) -> None:
        results = [
            (point.seed, point.attack, outcome.max_accuracy)
            for index, point in enumerate(self.points)
            if point.cell == cell
            and (outcome := self.outcomes.get(index)) is not None
            and outcome.max_accuracy is not None
            and (outcome.complete or outcome.status == "bounded")
        ]
        if results:
            write_worst_case(self.store, self._cells[cell], results)
        open_runs = [i for i in self.missing if self.points[i].cell == cell]
        if not open_runs:
            self.store.client.set_terminated(self._cells[cell], "FINISHED")


def make_sweep(
    points: Sequence[Point], *, worst_case_only: bool = False, retry_failed: bool = False
) -> Sweep:
    """A sweep over the points of a grid, on the store that their configs name."""
    tracking = points[0].config.tracking
    store = open_store(tracking.uri)
    sweep = Sweep(
        points,
        store,
        store.experiment(tracking.experiment),
        worst_case_only=worst_case_only,
        retry_failed=retry_failed,
    )
    sweep.look_up()
    return sweep


def _settled(index: int, runs: Sequence[Any]) -> Outcome | None:
    """What the store says of a run that need not be computed: finished, or else failed."""
    for status in ("FINISHED", "FAILED"):
        for run in runs:
            if run.info.status != status:
                continue
            best = run.data.metrics.get("test/max_accuracy")
            kind = run.data.tags.get("lit_byz.status", "finished")
            if status == "FAILED":
                kind, best = "failed", None
            elif best is None or not math.isfinite(best):
                continue
            error = run.data.tags.get("lit_byz.error")
            return Outcome(index, kind, best, 0, 0.0, run.info.run_id, error, reused=True)
    return None
