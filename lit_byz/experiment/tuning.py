"""Tuning: a sweep whose cells are trials of an Optuna study.

A trial's value is its worst case, a minimum over attacks, so it is bounded from above as soon as
one attack has finished: a trial that cannot reach the best one any more is pruned, and no result is
lost by it.
"""

import hashlib
import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lit_byz.experiment.executors import Executor
from lit_byz.experiment.search_space import Problem
from lit_byz.experiment.sweep import RUNS as RUNS_TAG
from lit_byz.experiment.sweep import Sweep, Watch
from lit_byz.experiment.tasks import Outcome
from lit_byz.experiment.trial_book import RUN_ID, RUNS, RUNS_PRUNED, TrialBook, open_book
from lit_byz.tracking import open_store

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

# The state of a trial, as a tag of its run.
STATE = "lit_byz.trial_state"


@dataclass
class OpenTrial:
    """A trial that this process works on, and what is known of its runs."""

    number: int
    cell: str
    indexes: list[int]
    runs: dict[str, dict[str, Any]]


@dataclass(kw_only=True)
class Tuning(Sweep):
    """Trials of a problem, as many as it asks for, then what they are compared with.

    A free worker goes on with a trial that no other works on, or begins a new one: within a trial
    one attack comes after the other, the most harmful first, so that pruning saves the most.
    """

    problem: Problem
    book: TrialBook
    _open: dict[int, OpenTrial] = field(default_factory=dict)
    _trial_cells: dict[str, int] = field(default_factory=dict)
    _seen_before: dict[str, list[float]] = field(default_factory=dict)
    _comparing: bool = False

    def compute(self, executor: Executor, watch: Watch) -> None:
        try:
            super().compute(executor, watch)
        finally:
            for trial in list(self._open.values()):
                self.store.client.set_terminated(self.cell_run(trial.cell), "KILLED")
                self.book.release(trial.number)

    def wants_points(self) -> bool:
        busy = {self.points[index].cell for index in self.running}
        return all(self.points[index].cell in busy for index in self._pending)

    def supply(self) -> None:
        """Open trials until one has runs to compute; after the last one, add the comparisons."""
        while self.wants_points() and (trial := self.book.take()) is not None:
            self._begin(trial)
        if self.wants_points() and not self._comparing:
            self._comparing = True
            self.add(self.problem.comparisons())

    def settle(self, outcome: Outcome) -> None:
        for trial in self._open.values():
            if outcome.index in trial.indexes:
                self._record(trial, outcome)
                self.book.note(trial.number, RUNS, trial.runs)
        self._judge_all()

    def kind_of(self, cell: str) -> str:
        return "trial" if cell in self._trial_cells else "cell"

    def _begin(self, taken: "FrozenTrial") -> None:
        self._learn()
        points = self.problem.trial(taken.number, taken.params)
        first = len(self.points)
        self._trial_cells[points[0].cell] = taken.number
        self.add(points)
        known = {k: dict(v) for k, v in taken.user_attrs.get(RUNS, {}).items()}
        indexes = list(range(first, len(self.points)))
        trial = OpenTrial(taken.number, points[0].cell, indexes, known)
        self._open[trial.number] = trial
        self.book.note(trial.number, RUN_ID, self.cell_run(trial.cell))
        for index in indexes:
            if index in self.outcomes:
                self._record(trial, self.outcomes[index])
        self.book.note(trial.number, RUNS, trial.runs)
        self._judge_all()

    def _record(self, trial: OpenTrial, outcome: Outcome) -> None:
        """Keep what a run came to, and add up what it has cost."""
        point = self.points[outcome.index]
        label = f"{point.attack}, seed {point.seed}"
        before = trial.runs.get(label, {})
        trial.runs[label] = {
            "attack": point.attack,
            "seed": point.seed,
            "run_id": outcome.run_id,
            "status": outcome.status,
            "max_accuracy": outcome.max_accuracy,
            "computed": before.get("computed", False) or not outcome.reused,
            "steps": before.get("steps", 0) + outcome.steps_done,
            "seconds": before.get("seconds", 0.0) + outcome.seconds,
        }

    def _judge_all(self) -> None:
        """Decide on every open trial: a new best one may have made others hopeless."""
        for trial in list(self._open.values()):
            self._judge(trial)

    def _judge(self, trial: OpenTrial) -> None:
        found = [self.outcomes[i] for i in trial.indexes if i in self.outcomes]
        known = [o for o in found if o.complete or o.status == "bounded"]
        bound = upper_bound(
            [self.points[index].seed for index in trial.indexes],
            [(self.points[o.index].seed, float(o.max_accuracy or 0.0)) for o in known],
        )
        incumbent = self.book.incumbent
        failed = any(outcome.status == "failed" for outcome in found)
        complete = len(known) == len(trial.indexes)
        hopeless = incumbent is not None and bound < incumbent
        if not (failed or complete or hopeless):
            return
        self.drop(trial.cell)
        if any(index in self.running for index in trial.indexes):
            return  # decided again when it has ended, so that the trial knows all its runs
        del self._open[trial.number]
        self.book.note(trial.number, RUNS_PRUNED, sum(i in self.dropped for i in trial.indexes))
        if complete:
            super()._write_cell(trial.cell)
            self._close(trial, "complete", "FINISHED")
            self.book.complete(trial.number, bound)
        elif hopeless:
            # Not the worst case, which was not computed, but what it is at most.
            run_id = self.cell_run(trial.cell)
            self.store.client.log_metric(run_id, "worst_case/at_most", bound)
            self._close(trial, "pruned", "FINISHED")
            self.book.prune(trial.number, bound)
        else:
            self._close(trial, "failed", "FAILED")
            self.book.fail(trial.number)

    def _close(self, trial: OpenTrial, state: str, status: str) -> None:
        """Say on the trial's own run how it ended: before Optuna, which is asked what is done."""
        run_id = self.cell_run(trial.cell)
        ids = [run["run_id"] for run in trial.runs.values() if run["run_id"] is not None]
        self.store.client.set_tag(run_id, RUNS_TAG, json.dumps(ids))
        self.store.client.set_tag(run_id, STATE, state)
        self.store.client.set_terminated(run_id, status)

    def _write_cell(self, cell: str) -> None:
        if cell not in self._trial_cells:
            super()._write_cell(cell)

    def _urgency(self, index: int) -> tuple[float, ...]:
        """Trials that nobody works on first, older ones before; within one, the worst attack."""
        point = self.points[index]
        busy = sum(self.points[i].cell == point.cell for i in self.running)
        first = next(i for i, other in enumerate(self.points) if other.cell == point.cell)
        return busy, first, self._harm(point.attack), index

    def _harm(self, attack: str) -> float:
        """The mean maximal accuracy under an attack, here and in the study's other trials."""
        seen = list(self._seen_before.get(attack, []))
        for index, outcome in self.outcomes.items():
            if self.points[index].attack == attack and outcome.max_accuracy is not None:
                seen.append(outcome.max_accuracy)
        return statistics.fmean(seen) if seen else 0.5

    def _learn(self) -> None:
        """Look up what the attacks did in trials that this process has not opened."""
        seen: dict[str, list[float]] = defaultdict(list)
        for trial in self.book.trials():
            if trial.number not in self._trial_cells.values():
                for run in trial.user_attrs.get(RUNS, {}).values():
                    if run["max_accuracy"] is not None:
                        seen[run["attack"]].append(run["max_accuracy"])
        self._seen_before = dict(seen)


def upper_bound(seeds: Sequence[int], found: Sequence[tuple[int, float]]) -> float:
    """The largest that a mean over seeds of minima over attacks can still become.

    >>> upper_bound([1, 2], [(1, 0.9), (1, 0.5)])
    0.75
    """
    smallest = dict.fromkeys(seeds, 1.0)
    for seed, accuracy in found:
        smallest[seed] = min(smallest[seed], accuracy)
    return statistics.fmean(smallest.values())


def make_tuning(
    problem: Problem, *, name: str | None, url: str | None, retry_failed: bool = False
) -> Tuning:
    """The study of a problem, on the store that its configs name."""
    tracking = problem.reference()[0].config.tracking
    store = open_store(tracking.uri)
    book = open_book(problem, store.folder, name=name, url=url, retry_failed=retry_failed)
    return Tuning(
        store=store,
        experiment_id=store.experiment(tracking.experiment),
        key=hashlib.sha256(f"{problem.identity} {book.study.study_name}".encode()).hexdigest(),
        name=f"study {book.study.study_name}",
        worst_case_only=True,
        retry_failed=retry_failed,
        kind="study",
        cell_kind="trial",
        problem=problem,
        book=book,
    )
