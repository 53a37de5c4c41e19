"""Tuning: trials, each a cell, that are judged by their worst case.

A trial's value is a minimum over attacks, so it is bounded from above as soon as one attack has
finished: a trial that cannot reach the best one any more is pruned, and no result is lost by it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from lit_byz.config.grid import Point, Values
from lit_byz.config.ranges import Range
from lit_byz.config.search_space import Problem
from lit_byz.execution.board import UNKNOWN_HARM, Board, Proposal
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.trials import Trial


class TrialSource(Protocol):
    """Where trials come from and where they are told of, by every process that works on them."""

    @property
    def incumbent(self) -> float | None:
        """The best value of a complete trial, whoever computed it."""
        ...

    def trials(self) -> Sequence[Trial]: ...

    def take(self) -> Trial | None:
        """A trial to work on: one that was left behind, one to be tried again, or a new one."""
        ...

    def note(self, number: int, runs: Mapping[str, Any]) -> None: ...

    def complete(self, number: int, value: float, pruned_runs: int) -> None: ...

    def prune(self, number: int, upper_bound: float, pruned_runs: int) -> None: ...

    def fail(self, number: int, pruned_runs: int) -> None: ...

    def release(self, number: int) -> None: ...


def alone() -> bool:
    """Nobody else works on the trials."""
    return False


@dataclass
class TuningStudy:
    """Trials of a problem, as many as it asks for, then what they are compared with.

    A free worker goes on with a trial that no other works on, or begins a new one: within a trial
    one attack comes after the other, the most harmful first, so that pruning saves the most. Once
    nothing else is left, trials that other processes have begun are waited for: ``wait`` says
    whether there are some, after a moment. They end, or are left behind and taken up here.
    """

    problem: Problem
    source: TrialSource
    board: Board = field(default_factory=Board)
    wait: Callable[[], bool] = alone
    _open: dict[int, str] = field(default_factory=dict)
    _runs: dict[int, dict[str, dict[str, Any]]] = field(default_factory=dict)
    _comparing: bool = False

    def propose(self) -> Proposal | None:
        board = self.board
        self._supply()
        waited = False
        while not board.busy_or_waiting and self.wait():
            waited = True
            self._supply()
        if waited and board.judged_on != "test" and not board.busy_or_waiting:
            self._complete_best(self.problem.comparisons())  # it may be another one by now
        if not board.waiting:
            return None
        harm, cells = board.harm(), list(board.cells)

        def urgency(place: int) -> tuple[float, ...]:
            """Trials that nobody works on first, older ones before; then the worst attack."""
            point = board.waiting[place]
            known = harm.get(point.attack, UNKNOWN_HARM)
            return board.busy(point.cell), cells.index(point.cell), known, place

        point = board.waiting[min(range(len(board.waiting)), key=urgency)]
        # What was chosen on images held out is judged on the test images: by complete runs only.
        to_the_end = self._comparing and board.judged_on != "test"
        return Proposal(board.start(point), None if to_the_end else board.smallest(point))

    def _all_busy(self) -> bool:
        return all(self.board.busy(point.cell) for point in self.board.waiting)

    def _supply(self) -> None:
        """Open trials until one has runs to compute; after the last one, add the comparisons."""
        while self._all_busy():
            self._look_at_others()
            if (taken := self.source.take()) is None:
                break
            self._begin(taken)
        if self._all_busy() and not self._comparing:
            self._comparing = True
            others = self.problem.comparisons()
            self.board.add(others)
            self.board.reconsider(others)
            for cell in {point.cell for point in others}:
                self.board.say(cell, comparison=cell)
            if self.board.judged_on != "test":
                self._complete_best(others)

    def _complete_best(self, others: Sequence[Point]) -> None:
        """Let the runs of the best trial, and of what it is compared with, go on to their ends."""
        done = [trial for trial in self.source.trials() if trial.state == "complete"]
        points = list(others)
        if done:
            best = max(done, key=lambda trial: trial.value or 0.0)
            points += self.problem.trial(best.number, best.params)
        for point in points:
            found = self.board.outcomes.get(point.identity)
            if found is not None and found.status == "bounded":
                del self.board.outcomes[point.identity]
                self.board.waiting.append(point)

    def _look_at_others(self) -> None:
        """Take in the trials that have ended, here or in other processes."""
        for trial in self.source.trials():
            known = any(c.facts.get("trial") == trial.number for c in self.board.cells.values())
            if trial.state != "running" and not known:
                points = self._add(trial)
                self._runs[trial.number] = {k: dict(v) for k, v in trial.runs.items()}
                self.board.drop(points[0].cell)
                pruned = trial.pruned_runs
                self._close(trial.number, points[0].cell, trial.state, trial.value, pruned)

    def _add(self, trial: Trial) -> list[Point]:
        points = self.problem.trial(trial.number, trial.params)
        self.board.add(points, "trial", trial=trial.number, params=dict(trial.params))
        return points

    def _begin(self, taken: Trial) -> None:
        points = self.problem.trial(taken.number, taken.params)
        if points[0].cell not in self.board.cells:  # else it was lost, and nobody else took it
            self._add(taken)
        self.board.reconsider(points)
        cell = points[0].cell
        self._open[taken.number] = cell
        runs = self._runs[taken.number] = {k: dict(v) for k, v in taken.runs.items()}
        for point in points:
            if point.identity in self.board.outcomes:
                self._record(runs, point, self.board.outcomes[point.identity])
        self.source.note(taken.number, runs)
        self._judge_all()

    def hear(self, outcome: Outcome) -> None:
        self.board.end(outcome)
        for number, cell in self._open.items():
            for point in self.board.cells[cell].points:
                if point.identity == outcome.identity:
                    self._record(self._runs[number], point, outcome)
                    self.source.note(number, self._runs[number])
        self._judge_all()

    def _judge_all(self) -> None:
        """Decide on every open trial: a new best one may have made others hopeless."""
        for number in list(self._open):
            self._judge(number)

    def _judge(self, number: int) -> None:
        board, cell = self.board, self._open[number]
        found = board.result(cell)
        worst, incumbent = found.worst_case, self.source.incumbent
        # A bounded run counts by what it has reached: it was stopped above another one of its seed.
        complete = not worst.missing
        bound = worst.mean if complete else worst.at_most
        hopeless = incumbent is not None and bound < incumbent
        if not (found.failed or complete or hopeless):
            return
        board.drop(cell)
        if board.busy(cell):
            return  # decided again when it has ended, so that the trial knows all its runs
        del self._open[number]
        pruned = sum(point.identity in board.dropped for point in board.cells[cell].points)
        if complete:
            self.source.complete(number, bound, pruned)
            self._close(number, cell, "complete", bound, pruned)
        elif hopeless:
            self.source.prune(number, bound, pruned)
            self._close(number, cell, "pruned", bound, pruned)
        else:
            self.source.fail(number, pruned)
            self._close(number, cell, "failed", None, pruned)

    def _close(self, number: int, cell: str, state: str, value: float | None, pruned: int) -> None:
        self.board.say(
            cell,
            decided=state in ("complete", "pruned"),
            state=state,
            value=value,
            cost=_cost(self._runs[number], pruned, self.board.cells[cell].points[0].steps),
        )

    def most_to_come(self) -> tuple[int, int]:
        """How many runs may be added to the board at most, and their steps.

        Trials that failed may be tried again, and those of other processes be left behind.
        """
        if self._comparing:
            return 0, 0
        trials = [c.facts for c in self.board.cells.values() if "trial" in c.facts]
        begun = sum(facts.get("state") != "failed" for facts in trials)
        left, (runs, steps) = max(0, self.problem.trials - begun), self._trial_size
        others, more = self._comparison_size
        return left * runs + others, left * steps + more

    @cached_property
    def _trial_size(self) -> tuple[int, int]:
        """The runs of a trial, and the steps of the longest."""
        runs = len(self.problem.reference())
        return runs, runs * max(point.steps for point in self.problem.at_ends())

    @cached_property
    def _comparison_size(self) -> tuple[int, int]:
        others = self.problem.comparisons()
        return len(others), sum(point.steps for point in others)

    def release(self) -> None:
        """Leave the trials that are open to the next process."""
        for number in self._open:
            self.source.release(number)

    def facts(self) -> Mapping[str, Any]:
        example = self.problem.reference()
        space = self.problem.space
        return {
            "keys": list(space),
            "log": [k for k, part in space.items() if isinstance(part, Range) and part.log],
            "attacks": list(dict.fromkeys(point.attack for point in example)),
            "judged_on": self.board.judged_on,
            "runs_per_trial": len(example),
            "steps_per_trial": sum(point.steps for point in example),
        }

    def _record(self, runs: dict[str, dict[str, Any]], point: Point, outcome: Outcome) -> None:
        """Keep what a run came to, and add up what it has cost."""
        label = f"{point.attack}, seed {point.seed}"
        before: Values = runs.get(label, {})
        runs[label] = {
            "attack": point.attack,
            "seed": point.seed,
            "run_id": outcome.run_id,
            "status": outcome.status,
            "max_accuracy": self.board.accuracy_of(outcome),
            "computed": before.get("computed", False) or not outcome.reused,
            "steps": before.get("steps", 0) + outcome.steps_done,
            "seconds": before.get("seconds", 0.0) + outcome.seconds,
        }


def _cost(runs: Mapping[str, Mapping[str, Any]], pruned: int, steps: int) -> dict[str, float]:
    """What a trial took in all processes; runs of so many ``steps`` that were not needed count."""
    done = [run for run in runs.values() if run["status"] != "interrupted"]
    bounded = [run for run in done if run["status"] == "bounded"]
    return {
        "computed": sum(run["computed"] for run in done),
        "found": sum(not run["computed"] for run in done),
        "bounded": len(bounded),
        "pruned": pruned,
        "steps_saved": pruned * steps + sum(max(0, steps - run["steps"]) for run in bounded),
        "seconds": sum(run["seconds"] for run in runs.values()),
    }
