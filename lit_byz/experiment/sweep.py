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
from lit_byz.tracking.store import IDENTITY, KIND, PARENT, claim_on
from lit_byz.tracking.worst_case import write_worst_case

# A tag of a cell: the ids of its runs.
RUNS = "lit_byz.runs"
# More points than these are looked up in one reading of the whole store.
MANY = 20

Watch = Callable[["Sweep", Progress | Outcome | None], None]


@dataclass
class Sweep:
    """Runs, what is known of each, and what is still to do.

    A study that decides as it goes derives from this class: :meth:`supply` adds points, when none
    wait, and :meth:`settle` hears of every outcome and may :meth:`drop` what is no longer needed.
    """

    store: Store
    experiment_id: str
    key: str
    name: str
    worst_case_only: bool = False
    retry_failed: bool = False
    kind: str = "sweep"
    cell_kind: str = "cell"
    points: list[Point] = field(default_factory=list)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    running: dict[int, Progress] = field(default_factory=dict)
    computed: list[Outcome] = field(default_factory=list)
    stopping: bool = False
    run_id: str | None = None
    dropped: set[int] = field(default_factory=set)
    _cells: dict[str, str] = field(default_factory=dict)
    _pending: list[int] = field(default_factory=list)
    _begun: dict[int, list[str]] = field(default_factory=dict)

    @property
    def failed(self) -> list[Outcome]:
        return [o for o in self.outcomes.values() if o.status == "failed"]

    @property
    def interrupted(self) -> list[Outcome]:
        return [o for o in self.outcomes.values() if o.status == "interrupted"]

    @property
    def missing(self) -> list[int]:
        """Runs that have no result yet."""
        settled = ("finished", "diverged", "bounded", "failed")
        return [
            index
            for index in range(len(self.points))
            if index not in self.dropped
            and (index not in self.outcomes or self.outcomes[index].status not in settled)
        ]

    @property
    def cells(self) -> list[str]:
        """The names of the cells, in the order of their points."""
        return list(dict.fromkeys(point.cell for point in self.points))

    def add(self, points: Sequence[Point]) -> None:
        """Take in more points; those that the store has already need not be computed."""
        known = self._known() if len(points) > MANY else None
        for point in points:
            index = len(self.points)
            self.points.append(point)
            if known is None:
                runs = self.store.find(self.experiment_id, point.identity)
            else:
                runs = known.get(point.identity, [])
            found = _settled(index, runs)
            if found is None or (found.status == "failed" and self.retry_failed):
                self._pending.append(index)
                self._begun[index] = [r.info.run_id for r in runs if r.info.status == "RUNNING"]
            else:
                self.outcomes[index] = found

    def drop(self, cell: str) -> None:
        """Compute no more runs of a cell; those that are on go on."""
        needless = [index for index in self._pending if self.points[index].cell == cell]
        self._pending = [index for index in self._pending if index not in needless]
        self.dropped.update(needless)
        for index in needless:
            self._close_begun(index)

    def _close_begun(self, index: int) -> None:
        """End the runs of a point that were killed and will not be gone on with."""
        run_ids = self._begun.pop(index)
        if not run_ids:
            return
        give_back = self.store.claim(claim_on(self.points[index].identity))
        if give_back is None:
            return  # another process is at it
        try:
            for run_id in run_ids:
                if self.store.client.get_run(run_id).info.status == "RUNNING":
                    self.store.client.set_terminated(run_id, "KILLED")
        finally:
            give_back()

    def wants_points(self) -> bool:
        """Whether a free worker asks :meth:`supply` first: where no run waits for it."""
        return not self._pending

    def supply(self) -> None:
        """Add points, now that none wait; a grid has no more."""

    def settle(self, outcome: Outcome) -> None:
        """Hear of an outcome; a grid has nothing to decide."""

    def _known(self) -> dict[str, list[Any]]:
        """All runs of the store by identity."""
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
                return known

    @property
    def pending(self) -> int:
        return len(self._pending)

    def compute(self, executor: Executor, watch: Watch) -> None:
        """Compute what is missing; the store is up to date after every run."""
        self.run_id = self._parent(self.key, self.kind, self.name, {})
        for cell in self.cells:
            self.cell_run(cell)
        try:
            executor.run(
                self._next, lambda message: self._note(message, watch), lambda: self.stopping
            )
        finally:
            for cell in self.cells:
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
        if self.stopping:
            return None
        if self.wants_points():
            self.supply()
        if not self._pending:
            return None
        index = min(self._pending, key=self._urgency) if self.worst_case_only else self._pending[0]
        self._pending.remove(index)
        point = self.points[index]
        self.running[index] = Progress(index, 0, int(point.config.train.steps), 0.0)
        bound = self._bound(point) if self.worst_case_only else None
        return Task(index, to_plain(point.config), self.cell_run(point.cell), bound)

    def _urgency(self, index: int) -> tuple[float, ...]:
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
            self.settle(message)
        watch(self, message)

    def cell_run(self, cell: str) -> str:
        """The id of a cell's own run, taken up again if it is there."""
        if cell not in self._cells:
            key = hashlib.sha256(f"{self.key} {cell}".encode()).hexdigest()
            above = {PARENT: str(self.run_id)}
            example = next(point for point in self.points if point.cell == cell)
            name = cell or "one cell"
            self._cells[cell] = self._parent(key, self.kind_of(cell), name, above, example)
        return self._cells[cell]

    def kind_of(self, cell: str) -> str:
        """What the tag of a cell's own run says that it is."""
        return self.cell_kind

    def _parent(
        self, key: str, kind: str, name: str, tags: dict[str, str], example: Point | None = None
    ) -> str:
        """The run that others lie below: the one that is there, else a new one.

        With an ``example`` of a cell's points it gets the cell's settings.
        """
        with self.store.alone(
            claim_on(key)
        ):  # a sweep that starts at the same moment makes no second
            known = self.store.find(self.experiment_id, key)
            if known:
                run_id = str(known[0].info.run_id)
                self.store.client.update_run(run_id, status="RUNNING")
            else:
                created = self.store.client.create_run(
                    self.experiment_id,
                    start_time=int(time.time() * 1000),
                    tags={IDENTITY: key, KIND: kind, **tags},
                    run_name=name,
                )
                run_id = str(created.info.run_id)
            if example is not None:
                self._write_settings(run_id, example)
            return run_id

    def _write_settings(self, run_id: str, point: Point) -> None:
        """A cell's settings as params, so that the UI can compare cells."""
        plain = {k: v for k, v in to_plain(point.config).items() if k not in ("attack", "seed")}
        self.store.write_params(run_id, plain)

    def _write_cell(self, cell: str) -> None:
        run_id = self.cell_run(cell)
        results = []
        run_ids = []
        for index, point in enumerate(self.points):
            outcome = self.outcomes.get(index)
            if point.cell != cell or outcome is None or outcome.max_accuracy is None:
                continue
            if outcome.complete or outcome.status == "bounded":
                results.append((point.seed, point.attack, outcome.max_accuracy))
                run_ids.append(str(outcome.run_id))
        if results:
            write_worst_case(self.store, run_id, results)
            # A run found in the store stays below the cell that computed it first.
            self.store.client.set_tag(run_id, RUNS, json.dumps(run_ids))
        if not any(self.points[index].cell == cell for index in self.missing):
            self.store.client.set_terminated(run_id, "FINISHED")


def make_sweep(
    points: Sequence[Point], *, worst_case_only: bool = False, retry_failed: bool = False
) -> Sweep:
    """A sweep over the points of a grid, on the store that their configs name."""
    tracking = points[0].config.tracking
    store = open_store(tracking.uri)
    joined = json.dumps(sorted(point.identity for point in points))
    sweep = Sweep(
        store,
        store.experiment(tracking.experiment),
        key=hashlib.sha256(joined.encode()).hexdigest(),
        name=f"sweep of {len(points)} runs",
        worst_case_only=worst_case_only,
        retry_failed=retry_failed,
    )
    sweep.add(points)
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
