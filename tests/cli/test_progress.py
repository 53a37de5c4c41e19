"""What is shown while a study goes on: how much is done, and how much may still come."""

import io
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from rich.console import Console

from lit_byz.cli.progress import PlainLines
from lit_byz.execution.board import Strategy
from lit_byz.execution.runner import Memory, Runner
from lit_byz.studies.grid import GridStudy
from lit_byz.studies.tuning import TuningStudy
from tests.studies._simulate import grid_points, outcome_of
from tests.studies.test_tuning_study import THRESHOLDS, ListedTrials, problem


def lines_of(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch, status: str = "finished", **more: Any
) -> Sequence[str]:
    """One for every run, as they end."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    shown = io.StringIO()
    watcher = PlainLines(Console(file=shown, width=200))
    runner = Runner(cast(Any, None), strategy, cast(Any, None), Memory(None))
    while (proposal := strategy.propose()) is not None:
        outcome = replace(outcome_of(proposal, lambda point: 0.7), status=status, **more)
        runner.computed.append(outcome)
        strategy.hear(outcome)
        now[0] += outcome.steps_done  # a second for every step
        watcher(runner, outcome)
    return shown.getvalue().splitlines()


def test_a_grid_has_all_its_runs_from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_, last = lines_of(GridStudy(grid_points(attack=["sf", "lf", "foe"])), monkeypatch)
    assert first.startswith("1/3 runs done, 0 running  ")
    assert first.endswith("  about 80 s left")
    assert last.startswith("3/3 runs done, 0 running  ")


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_what_has_no_result_is_not_done(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says nothing of how long the others take."""
    study = GridStudy(grid_points(attack=["sf", "lf", "foe"]))
    for line in lines_of(study, monkeypatch, status, steps_done=0):
        assert line.startswith("0/3 runs done, 0 running")
        assert status in line
        assert "left" not in line


def test_accuracies_are_those_that_count(monkeypatch: pytest.MonkeyPatch) -> None:
    study = GridStudy(grid_points(attack=["sf"]))
    study.board.judged_on = "val"
    (line,) = lines_of(study, monkeypatch, max_val_accuracy=0.6)
    assert ": 60.0 % held out in " in line
    assert "70.0" not in line


def test_trials_that_are_not_opened_yet_count(monkeypatch: pytest.MonkeyPatch) -> None:
    study = TuningStudy(problem(), ListedTrials(THRESHOLDS))
    first, *_, last = lines_of(study, monkeypatch)
    assert first.startswith("1 of at most 36 runs done, 0 running  ")
    assert first.endswith("  at most 23 min left")  # 35 runs of 40 steps
    assert last.startswith("36/36 runs done, 0 running  ")
