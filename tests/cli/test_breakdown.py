"""Breakdown points as a command: the same answer as the full grid, after a kill too."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli import _studies
from tests.studies._simulate import BASE

AXES = {"clip": ["none", "arc"], "attack": ["sf", "lf"]}
GRID = {**BASE, "grid": {"axes": AXES}}
PIPELINE = "breakdown"
THRESHOLD = ("--threshold", "0.6")  # between what few and what many Byzantine workers leave


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, _studies.answer(folder, PIPELINE, GRID, *THRESHOLD)


def test_fewer_runs_than_the_full_grid(undisturbed: tuple[Path, dict[str, Any]]) -> None:
    folder, found = undisturbed
    assert found["runs_used"] < found["runs_full_grid"] == 20
    assert len(set(_studies.finished(folder))) >= found["runs_used"]
    assert all(arm["decided"] for arm in found["arms"])
    assert any(arm["breakdown_f"] is not None for arm in found["arms"])
    assert (folder / "outputs" / "breakdown.png").stat().st_size > 5000


def test_a_dry_run_counts_what_is_done(undisturbed: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = undisturbed
    done = len(_studies.finished(folder))
    planned = _studies.run(folder, PIPELINE, GRID, *THRESHOLD, "--dry-run").stdout
    assert f"already done: {done}, to do: at most 0; full grid: {20 - done}" in planned
    assert "at most 0 s of one process" in planned
    other = _studies.run(folder, PIPELINE, GRID, "--threshold", "0.99", "--dry-run").stdout
    assert f"already done: {done}, to do: at most " in other
    assert "to do: at most 12;" not in other


@pytest.mark.slow
def test_same_answer_as_the_full_grid(undisturbed: tuple[Path, dict[str, Any]]) -> None:
    folder, found = undisturbed
    full = _studies.answer(folder, PIPELINE, GRID, *THRESHOLD, "--full")
    assert (folder / "outputs" / "breakdown.csv").read_text().count("full grid") == 10
    later = _studies.answer(folder, PIPELINE, GRID, *THRESHOLD)
    assert later["runs_used"] == full["runs_used"] == found["runs_used"]
    assert (later["computed"], full["computed"]) == (0, 20 - found["runs_used"])
    for arm, before in zip(full["arms"], found["arms"], strict=True):
        assert arm["full_grid"]["monotone"]
        assert arm["full_grid"]["breakdown_f"] == arm["breakdown_f"] == before["breakdown_f"]
        # The full grid turns bounds into values; the sides of the threshold stay.
        assert arm["levels"].keys() == before["levels"].keys()
        for f, level in arm["levels"].items():
            assert (level["mean"] < 0.6) is (before["levels"][f]["mean"] < 0.6)
    finished = _studies.finished(folder)
    assert len(finished) == len(set(finished)) == 20


@pytest.mark.slow
def test_killed_and_resumed(undisturbed: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    _studies.kill_after(3, tmp_path, PIPELINE, GRID, *THRESHOLD)
    found = _studies.answer(tmp_path, PIPELINE, GRID, *THRESHOLD)
    breakdowns = [arm["breakdown_f"] for arm in found["arms"]]
    assert breakdowns == [arm["breakdown_f"] for arm in undisturbed[1]["arms"]]
    finished = _studies.finished(tmp_path)
    assert len(finished) == len(set(finished)) == found["runs_used"]
    again = _studies.run(tmp_path, PIPELINE, GRID, *THRESHOLD)
    assert again.code == 0
    assert "0 runs computed now" in again.stdout
    assert "breaks down at f =" in again.stdout


@pytest.mark.slow
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
    assert "already done: 0, to do: at most 12; full grid: 20\n" in planned.stdout
    assert planned.stdout.count(" MB in the store") == 2
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
