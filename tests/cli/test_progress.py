"""What is shown while a study goes on: how much is done, and how much may still come."""

import io
from collections.abc import Sequence
from typing import Any, cast

from rich.console import Console

from lit_byz.cli.progress import PlainLines
from lit_byz.execution.board import Strategy
from lit_byz.execution.runner import Memory, Runner
from lit_byz.studies.grid import GridStudy
from lit_byz.studies.tuning import TuningStudy
from tests.studies._simulate import grid_points, outcome_of
from tests.studies.test_tuning_study import THRESHOLDS, ListedTrials, problem


def lines_of(strategy: Strategy) -> Sequence[str]:
    """One for every run, as they end."""
    shown = io.StringIO()
    watcher = PlainLines(Console(file=shown, width=200))
    watcher.begin -= 40  # so many seconds ago: one for every step of the first run
    runner = Runner(cast(Any, None), strategy, cast(Any, None), Memory(None))
    while (proposal := strategy.propose()) is not None:
        outcome = outcome_of(proposal, lambda point: 0.7)
        runner.computed.append(outcome)
        strategy.hear(outcome)
        watcher(runner, outcome)
    return shown.getvalue().splitlines()


def test_a_grid_has_all_its_runs_from_the_beginning() -> None:
    first, *_, last = lines_of(GridStudy(grid_points(attack=["sf", "lf", "foe"])))
    assert first.startswith("1/3 runs done, 0 running  ")
    assert first.endswith("  about 80 s left")
    assert last.startswith("3/3 runs done, 0 running  ")


def test_trials_that_are_not_opened_yet_count() -> None:
    first, *_, last = lines_of(TuningStudy(problem(), ListedTrials(THRESHOLDS)))
    assert first.startswith("1 of at most 36 runs done, 0 running  ")
    assert first.endswith("  at most 23 min left")  # 35 runs of 40 steps
    assert last.startswith("36/36 runs done, 0 running  ")
