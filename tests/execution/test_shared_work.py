"""Studies that work on the same runs: each computes what no other does, and waits at last."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lit_byz.config.grid import Point
from lit_byz.execution.executor import Executor, Inline, NextTask, Report, Stopping
from lit_byz.execution.runner import RETRIES, Memory, Runner
from lit_byz.execution.task_run import compute
from lit_byz.execution.tasks import Task
from lit_byz.studies.grid import GridStudy, WorstCaseStudy
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.patience import Patience, told_to
from lit_byz.tracking.store import Store, claim_on
from tests.tracking._ledgers import STUDY, end, make_ledger, some_points

DEADLINE = 120.0  # seconds: only a test that fails waits for so long


def study(
    folder: Path, points: Sequence[Point], kind: type[GridStudy] = GridStudy
) -> tuple[Runner, Ledger]:
    ledger = make_ledger(folder)
    memory = Memory(ledger)
    return Runner(ledger, kind(points, memory), STUDY, memory), ledger


def run(runner: Runner, executor: Executor) -> None:
    runner.run(executor, lambda *_: None, lambda _: None)


@dataclass
class Answers:
    """An executor that has every outcome at once; some runs are said to be on elsewhere."""

    answer: Callable[[Task], Outcome]
    asked: list[Task] = field(default_factory=list)

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        while not stopping() and (task := next_task()) is not None:
            self.asked.append(task)
            report(self.answer(task))


def finished(task: Task) -> Outcome:
    return Outcome(task.identity, "finished", max_accuracy=0.5, steps_done=5)


@pytest.mark.parametrize("kind", [GridStudy, WorstCaseStudy])
def test_runs_of_others_come_last(tmp_path: Path, kind: type[GridStudy]) -> None:
    points = some_points(tmp_path, ["sf", "foe", "lf", "alie"])
    theirs = {point.identity for point in points[:2]}

    def answer(task: Task) -> Outcome:
        if task.identity in theirs and not task.wait:
            return Outcome(task.identity, "elsewhere")
        return finished(task)

    runner, _ = study(tmp_path, points, kind)
    executor = Answers(answer)
    run(runner, executor)
    awaited = [task.identity for task in executor.asked if task.wait]
    assert sorted(awaited) == sorted(theirs)
    assert all(task.wait for task in executor.asked[-2:]), "when nothing else was left"
    assert len(executor.asked) == 4 + 2
    assert len(runner.computed) == 4
    assert not runner.board.missing
    assert not runner.running


def test_what_another_has_computed_meanwhile_is_no_task(tmp_path: Path) -> None:
    points = some_points(tmp_path, ["sf", "foe"])

    def answer(task: Task) -> Outcome:
        if task.identity == points[0].identity:
            assert not task.wait
            end(points[0], "finished", 0.25)  # by the other process, which has the claim
            return Outcome(task.identity, "elsewhere")
        return finished(task)

    runner, _ = study(tmp_path, points)
    executor = Answers(answer)
    run(runner, executor)
    assert len(executor.asked) == 2
    assert runner.board.outcomes[points[0].identity].max_accuracy == 0.25
    assert runner.reused == {points[0].identity}


def test_one_that_is_on_elsewhere_for_long_is_asked_for_again(tmp_path: Path) -> None:
    points = some_points(tmp_path, ["sf", "foe"])
    seen: list[str] = []

    def answer(task: Task) -> Outcome:
        seen.append(task.identity)
        if task.identity == points[0].identity and seen.count(task.identity) < 4:
            return Outcome(task.identity, "elsewhere")
        return finished(task)

    runner, _ = study(tmp_path, points)
    run(runner, Answers(answer))
    assert not runner.board.missing


@pytest.mark.slow
def test_a_sweep_goes_on_while_another_has_one_of_its_runs(tmp_path: Path) -> None:
    """For real: the claim on the first run is held here, the others are trained meanwhile."""
    points = some_points(tmp_path, ["sf", "lf", "foe"])
    runner, ledger = study(tmp_path, points)
    claim = ledger.store.claims.take(claim_on(points[0].identity))
    assert claim is not None
    assert compute(task_of(points[0], wait=False), lambda _: None).status == "elsewhere"
    thread = threading.Thread(target=run, args=(runner, Inline()), daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + DEADLINE
        while len(runner.computed) < 2:
            assert time.monotonic() < deadline, "it waits for the run of the other"
            time.sleep(0.05)
        assert points[0].identity not in {outcome.identity for outcome in runner.computed}
    finally:
        claim.give_back()
    thread.join(DEADLINE)
    assert not thread.is_alive()
    assert {outcome.status for outcome in runner.board.outcomes.values()} == {"finished"}
    assert len(runner.computed) == 3


def task_of(point: Point, **more: Any) -> Task:
    return Task(point.plain, point.code, **more)


def gone(task: Task) -> Outcome:
    return Outcome(task.identity, "interrupted", error="away", store_gone=True)


def test_a_node_that_is_cut_off_does_not_end_the_sweep(tmp_path: Path) -> None:
    """The store answers here: its runs are tried again, at the end, and nobody is hurried."""
    points = some_points(tmp_path, ["sf", "foe", "lf"])
    seen: list[str] = []

    def answer(task: Task) -> Outcome:
        seen.append(task.identity)
        return gone(task) if seen.count(task.identity) == 1 else finished(task)

    runner, ledger = study(tmp_path, points)
    run(runner, Answers(answer))
    assert not runner.board.missing
    assert len(seen) == 6
    assert not ledger.store.patience.hurried


def test_one_that_never_gets_through_is_given_up(tmp_path: Path) -> None:
    points = some_points(tmp_path, ["sf"])
    runner, _ = study(tmp_path, points)
    executor = Answers(gone)
    run(runner, executor)
    assert len(executor.asked) == 1 + RETRIES
    assert [point.identity for point in runner.board.missing] == [points[0].identity]


def test_a_store_that_is_gone_for_all_ends_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No further task is handed out: each would wait for as long as there is patience."""

    def away(store: Store) -> bool:
        store.patience.note(ConnectionRefusedError())
        return False

    monkeypatch.setattr(Store, "answers", away)
    runner, ledger = study(tmp_path, some_points(tmp_path, ["sf", "foe", "lf"]))
    monkeypatch.setattr(ledger.store.patience, "tell", lambda text: None)
    executor = Answers(gone)
    run(runner, executor)
    assert len(executor.asked) == 1


def test_every_task_has_all_of_the_patience() -> None:
    patience = Patience("http://127.0.0.1:9", 5.0, lambda text: None)
    patience.note(ConnectionRefusedError())
    patience._since = (time.monotonic() - 1000, "00:00:00")  # what an earlier task has seen
    assert patience.over
    with told_to(lambda text: None, patience):
        assert not patience.over
        patience.note(ConnectionRefusedError())
        assert patience.away
        assert not patience.over
