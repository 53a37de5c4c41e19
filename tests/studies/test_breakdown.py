"""Breakdown points: the bisection finds what a scan of the full grid finds, with fewer runs."""

import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lit_byz.errors import BadRequest
from lit_byz.experiment.breakdown import (
    Bisection,
    Breakdown,
    is_broken,
    level,
    lower_bound,
    make_breakdown,
    upper_bound,
)
from lit_byz.experiment.declared import declared_points
from lit_byz.experiment.executors import NextTask, Report, Stopping
from lit_byz.experiment.grid import Grid, Point, read_grid
from lit_byz.execution.tasks import Outcome
from lit_byz.report.worst_case_table import Accuracy
from tests.experiment import _studies
from tests.tracking._stores import new_store

BASE: dict[str, Any] = {
    "dataset": "digits",
    "model": "logreg",
    "workers": {"honest": 6, "batch_size": 8},
    "train": {"steps": 40, "eval_every": 10, "checkpoint_every": 5},
}
AXES = {"clip": ["none", "arc"], "attack": ["sf", "lf"]}
GRID = {**BASE, "grid": {"axes": AXES}}
PIPELINE = "breakdown"


@given(st.integers(1, 60), st.data())
def test_bisection_is_a_scan_with_few_probes(most: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, most + 1))  # most + 1: never breaks
    search, probes = Bisection(most), 0
    while (f := search.next) is not None:
        assert 1 <= f <= most
        assert search.answer is None
        search.note(f, broken=f >= first)
        probes += 1
    assert search.answer == (first if first <= most else None)
    assert probes <= math.ceil(math.log2(most + 1))


accuracies = st.floats(0, 1)


@given(st.lists(st.lists(accuracies, min_size=3, max_size=3), min_size=1, max_size=4), st.data())
def test_early_decisions_are_never_taken_back(rows: list[list[float]], data: st.DataObject) -> None:
    """Whatever part of the runs is known, exactly or from below: bounds hold, verdicts stay."""
    truth = statistics.fmean(min(row) for row in rows)
    threshold = data.draw(accuracies)
    known: dict[int, list[Accuracy | None]] = {}
    for seed, row in enumerate(rows):
        known[seed] = []
        for value in row:
            state = data.draw(st.sampled_from(["exact", "bounded", "unknown"]))
            seen = value * data.draw(accuracies) if state == "bounded" else value
            known[seed].append(None if state == "unknown" else Accuracy(seen, state == "bounded"))
    assert lower_bound(known) <= truth <= upper_bound(known)
    verdict = is_broken(known, threshold)
    assert verdict in (None, truth < threshold)
    shown = level(known, threshold)
    assert shown.mean <= truth if shown.kind == "at least" else shown.mean >= truth
    whole = {s: [Accuracy(value) for value in row] for s, row in enumerate(rows)}
    assert is_broken(whole, threshold) is (truth < threshold)
    assert level(whole, threshold).kind == "exact"


class FromTable:
    """An executor that looks results up, several tasks at a time, the first one last."""

    def __init__(self, study: Breakdown, accuracy: Callable[[Point], float], width: int) -> None:
        self.study, self.accuracy, self.width = study, accuracy, width
        self.asked: list[Point] = []

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        on = []
        while True:
            while len(on) < self.width and (task := next_task()) is not None:
                on.append(task)
            if not on:
                return
            task = on.pop()
            point = self.study.points[task.index]
            self.asked.append(point)
            value = self.accuracy(point)
            bounded = task.stop_above is not None and value >= task.stop_above
            status = "bounded" if bounded else "finished"
            report(Outcome(task.index, status, task.stop_above if bounded else value, 40))


@pytest.mark.parametrize("decide_only", [False, True])
@pytest.mark.parametrize("seeds", [[1], [1, 2, 3]])
def test_arms_advance_by_themselves(tmp_path: Path, seeds: list[int], decide_only: bool) -> None:
    breaks = {"none": 2, "arc": 5}
    hurt = {"sf": 0.3, "lf": 0.0, "mimic": 0.1}

    def accuracy(point: Point) -> float:
        margin = breaks[str(point.config.clip.name)] - int(point.config.workers.f) - 0.5
        return 0.6 + 0.1 * margin - hurt[point.attack] + 0.01 * point.seed

    # The worst attack's accuracy crosses 0.3 + 0.01 · mean(seed) between breaks − 1 and breaks.
    threshold = 0.3 + 0.01 * statistics.fmean(seeds)
    axes = {"clip": ["none", "arc"], "attack": ["mimic", "lf", "sf"], "seed": seeds}
    base = {**BASE, "tracking": {"uri": new_store(tmp_path)}}
    study = make_breakdown(Grid(base, axes=axes), threshold=threshold, decide_only=decide_only)
    executor = FromTable(study, accuracy, width=3)
    study.compute(executor, lambda sweep, message: None)
    answers = study.answers()
    assert {name: (arm.breakdown, arm.decided) for name, arm in answers.items()} == {
        f"clip={name}": (first, True) for name, first in breaks.items()
    }
    assert study.count_runs() == len(executor.asked) < study.most_runs() <= len(study.grid_points)
    for name, first in breaks.items():
        for f, found in answers[f"clip={name}"].levels.items():
            kinds = {"exact", "at most"} if f >= first else {"exact"}
            if f < first and decide_only:
                kinds = {"at least"} if len(seeds) == 1 else {"exact", "at least"}
            assert found.kind in kinds
            assert (found.mean < threshold) is (f >= first)


def test_the_attack_that_hurts_most_comes_first(tmp_path: Path) -> None:
    base = {**BASE, "tracking": {"uri": new_store(tmp_path)}}
    grid = Grid(base, axes={"attack": ["mimic", "lf", "sf"]})
    study = make_breakdown(grid, threshold=0.5)
    accuracy = {"sf": 0.4, "lf": 0.9, "mimic": 0.8}
    executor = FromTable(study, lambda point: accuracy[point.attack], width=1)
    study.compute(executor, lambda sweep, message: None)
    assert [point.attack for point in executor.asked] == ["mimic", "lf", "sf", "sf"]
    (arm,) = study.answers().values()
    assert (arm.breakdown, sorted(arm.levels)) == (1, [1, 3])
    assert [found.kind for found in arm.levels.values()] == ["exact", "at most"]


def test_an_arm_that_never_breaks(tmp_path: Path) -> None:
    base = {**BASE, "tracking": {"uri": new_store(tmp_path)}}
    study = make_breakdown(Grid(base, axes={"attack": ["sf"]}), threshold=0.5, max_f=3)
    study.compute(FromTable(study, lambda point: 0.9, 1), lambda sweep, message: None)
    (arm,) = study.answers().values()
    assert (arm.breakdown, arm.decided, sorted(arm.levels)) == (None, True, [2, 3])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A threshold between what the arms reach with few and with many Byzantine workers."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, _studies.answer(folder, PIPELINE, GRID, "--threshold", "0.6")


def test_same_answer_as_the_full_grid(undisturbed: tuple[Path, dict[str, Any]]) -> None:
    folder, found = undisturbed
    assert found["runs_used"] < found["runs_full_grid"] == 20
    assert len(_studies.finished(folder)) == found["runs_used"]
    assert any(arm["breakdown_f"] is not None for arm in found["arms"])
    full = _studies.answer(folder, PIPELINE, GRID, "--threshold", "0.6", "--full")
    assert (folder / "outputs" / "breakdown.csv").read_text().count("full grid") == 10
    later = _studies.answer(folder, PIPELINE, GRID, "--threshold", "0.6")
    assert later["runs_used"] == full["runs_used"] == found["runs_used"]
    for arm, before in zip(full["arms"], found["arms"], strict=True):
        assert arm["full_grid"]["monotone"]
        assert arm["full_grid"]["breakdown_f"] == arm["breakdown_f"] == before["breakdown_f"]
        assert arm["levels"] == before["levels"]
    finished = _studies.finished(folder)
    assert len(finished) == len(set(finished)) == 20
    assert (folder / "outputs" / "breakdown.png").stat().st_size > 5000


def test_killed_and_resumed(undisturbed: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    _studies.kill_after(3, tmp_path, PIPELINE, GRID, "--threshold", "0.6")
    found = _studies.answer(tmp_path, PIPELINE, GRID, "--threshold", "0.6")
    breakdowns = [arm["breakdown_f"] for arm in found["arms"]]
    assert breakdowns == [arm["breakdown_f"] for arm in undisturbed[1]["arms"]]
    finished = _studies.finished(tmp_path)
    assert len(finished) == len(set(finished)) == found["runs_used"]
    again = _studies.run(tmp_path, PIPELINE, GRID, "--threshold", "0.6")
    assert (again.code, again.stderr) == (0, "")  # no line for a run: none was computed
    assert "breaks down at f =" in again.stdout


def test_declared_against_real(tmp_path: Path) -> None:
    axes = {"server.f": [1, 3], "workers.f": [0, 1, 2], "attack": ["sf", "lf"], "clip": ["arc"]}
    grid = {**BASE, "grid": {"axes": axes}}
    found = _studies.answer(tmp_path, PIPELINE, grid, "--declared", "train.steps=10")
    assert found["left_out"] == [[3, 0]]  # n = 6
    (arm,) = found["arms"]
    pairs = [(entry["declared_f"], entry["f"]) for entry in arm["worst_cases"]]
    assert pairs == [(1, 0), (1, 1), (1, 2), (3, 1), (3, 2)]
    assert len(_studies.finished(tmp_path)) == 9  # two attacks where somebody attacks
    assert (tmp_path / "outputs" / "declared.png").stat().st_size > 5000
    shown = _studies.run(tmp_path, PIPELINE, grid, "--declared", "train.steps=10")
    assert "(f̂=3, f=0)" in shown.stdout


def test_dry_run_and_bad_requests_compute_nothing(tmp_path: Path) -> None:
    planned = _studies.run(tmp_path, PIPELINE, GRID, "--dry-run")
    assert "2 arms, f from 1 to 5, 2 runs a probe" in planned.stdout
    assert "at most 3 probes an arm, 12 runs; full grid: 20 runs" in planned.stdout
    for more in (
        ["workers.f=2"],
        ["--threshold", "1.5"],
        ["--max-f", "6"],
        ["--declared"],
        ["--declared", "--full", "server.f=[1]", "workers.f=[1]"],
    ):
        refused = _studies.run(tmp_path, PIPELINE, GRID, *more)
        assert refused.code == 2, more
        assert refused.stderr.count("\n") == 1
    assert _studies.query(tmp_path, "select count(*) from runs") == [(0,)]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"workers.f": [1, 2]}, r"workers\.f: must not be an axis"),
        ({"workers.honest": [5, 6]}, r"workers\.honest: must not be an axis"),
    ],
)
def test_axes_that_are_searched_are_refused(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        make_breakdown(Grid(BASE, axes=axes), threshold=0.5)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"workers.f": [1]}, r"server\.f=\[1,2,3\] is missing"),
        ({"workers.f": [1], "server.f": [-1]}, r"server\.f = -1: must be a whole number"),
        ({"workers.f": [1], "server.f": [5]}, "no pair has"),
    ],
)
def test_bad_lists_of_declared_and_real(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        declared_points(Grid(BASE, axes=axes))


def test_experiment_files(tmp_path: Path) -> None:
    """With one attack and one seed, for composing all runs takes its time."""
    one = [f"tracking.uri={new_store(tmp_path)}", "attack=foe", "seed=1"]
    for name, attacks_and_seeds, arms in (("breakdown_digits", 5, 2), ("breakdown_mnist", 25, 4)):
        assert len(list(read_grid([], name).values())) == arms * attacks_and_seeds
        study = make_breakdown(read_grid(one, name), threshold=0.5, max_f=5)
        assert (len(study.arms), len(study.grid_points), study.most_runs()) == (
            arms,
            arms * 5,
            arms * 3,
        )
    for name, declared in (("breakdown_declared_digits", 4), ("breakdown_declared_mnist", 5)):
        found, left_out = declared_points(read_grid(one, name))
        assert (len(found), left_out) == (2 * declared * 4, [])
