"""Sweeps: every run once, whatever happens, and the worst case of each cell."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli import _kills
from tests.cli._studies import answer, query, run
from tests.cli._sweeps import GRID, RUNS, arguments, furnish, results, rows, sweep
from tests.tracking._stores import new_store

ATTACK = """
from lit_byz.attacks import Attack, SignFlip

class Broken(Attack):
    def plan(self, scene, state):
        raise RuntimeError("this attack always fails")
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, answer(folder, "sweep", GRID)


def test_hierarchy_files_and_worst_case(undisturbed: tuple[Path, dict[str, Any]]) -> None:
    folder, found = undisturbed
    assert [cell["cell"] for cell in found["cells"]] == ["clip=none", "clip=arc"]
    for cell in found["cells"]:
        per_seed = [
            min(cell["max_accuracy"][attack][seed]["value"] for attack in ("sf", "lf"))
            for seed in ("1", "2")
        ]
        assert cell["worst_case"]["mean"] == pytest.approx(sum(per_seed) / 2)
        assert cell["worst_case"]["kind"] == "exact"
    assert (found["computed"], found["reused"], found["exit_code"]) == (8, 0, 0)
    kinds = "select value, count(*) from tags where key='lit_byz.kind' group by 1"
    assert dict(query(folder, kinds)) == {"sweep": 1, "cell": 2, "run": 8}
    parents = "select count(distinct value) from tags where key = 'mlflow.parentRunId'"
    assert query(folder, parents) == [(3,)]  # the sweep, and two cells
    stored = query(
        folder, "select value from latest_metrics where key = 'worst_case/max_accuracy' order by 1"
    )
    expected = sorted(cell["worst_case"]["mean"] for cell in found["cells"])
    assert [value for (value,) in stored] == pytest.approx(expected)
    assert (folder / "outputs" / "worst_case.png").stat().st_size > 5000
    assert "worst case" in (folder / "outputs" / "worst_case.csv").read_text()


def test_again_computes_nothing(undisturbed: tuple[Path, dict[str, Any]]) -> None:
    folder, found = undisturbed
    before = query(folder, RUNS)
    again = answer(folder, "sweep", GRID)
    assert again["cells"] == found["cells"]
    assert (again["computed"], again["reused"]) == (0, 8)
    assert query(folder, RUNS) == before
    shown = run(folder, "sweep", GRID)
    assert "0 runs computed now, 8 reused" in shown.stdout
    assert "shared: digits, extreme, logreg, 40 steps, 10 honest workers" in shown.stderr
    assert "varies: attack sf, lf; clip none, arc" in shown.stderr
    assert run(folder, "sweep", GRID, "--progress", "none").stderr == ""


@pytest.mark.slow
def test_another_process_draws_it_again(undisturbed: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = undisturbed
    shown = run(folder, "sweep", GRID).stdout
    numbers = (folder / "outputs" / "worst_case.csv").read_text()
    picture = (folder / "outputs" / "worst_case.png").read_bytes()
    script = str(Path(__file__).parents[2] / "pipelines" / "report.py")
    store = f"tracking.uri={new_store(folder / 'mlruns')}"
    drawn = subprocess.run(
        [sys.executable, script, store, "--out", "again"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert drawn.returncode == 0, drawn.stderr
    assert (folder / "again" / "worst_case.csv").read_text() == numbers
    assert (folder / "again" / "worst_case.png").read_bytes() == picture
    table = shown[: shown.index("maximal test accuracy")]
    assert table in drawn.stdout


def test_a_failing_run_in_the_table_and_in_mlflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minimum over the attacks that happened to work would flatter the defence."""
    (tmp_path / "my_attacks.py").write_text(ATTACK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LIT_BYZ_IMPORT", "my_attacks")
    grid = {**GRID, "grid": {"axes": {"attack": ["sf", "my_attacks.Broken"]}}}
    shown = run(tmp_path, "sweep", grid)
    assert shown.code == 1
    assert "this attack always fails" in shown.stdout
    assert "1 run computed now, 0 reused" in shown.stdout
    planned = run(tmp_path, "sweep", grid, "--dry-run").stdout
    told = "already done: 1, failed before: 1 (--retry-failed computes them again), to do: 0"
    assert told in planned
    assert "0 runs computed now, 1 reused" in run(tmp_path, "sweep", grid).stdout
    assert "(1 failed)" in shown.stdout
    assert "≤" in shown.stdout
    assert sorted(status for _, status in query(tmp_path, RUNS)) == ["FAILED", "FINISHED"]
    cell = (
        "select r.status, w.value from runs r "
        "join tags k on k.run_uuid = r.run_uuid and k.key = 'lit_byz.kind' and k.value = 'cell' "
        "join tags w on w.run_uuid = r.run_uuid and w.key = 'lit_byz.worst_case'"
    )
    ((status, words),) = query(tmp_path, cell)
    assert status == "FAILED"
    assert words.startswith("at most 0.")
    assert "my_attacks.Broken, seed 1 failed" in words
    metrics = {
        key
        for (key,) in query(
            tmp_path, "select distinct key from latest_metrics where key like 'worst_case/%'"
        )
    }
    assert "worst_case/at_most" in metrics
    assert "worst_case/max_accuracy" not in metrics
    assert run(tmp_path, "sweep", grid).code == 1
    assert len(query(tmp_path, RUNS)) == 2  # a failed run is not tried again by itself
    assert run(tmp_path, "sweep", grid, "--retry-failed").code == 1
    assert len(query(tmp_path, RUNS)) == 3
    assert run(tmp_path, "sweep", grid, "train.checkpoint_every=7").code == 1
    assert len(query(tmp_path, RUNS)) == 4  # something beside the run itself has changed


@pytest.mark.slow
def test_worst_case_only_gives_the_same_worst_cases(
    undisturbed: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    found = answer(tmp_path, "sweep", GRID, "--worst-case-only")
    expected = [cell["worst_case"] for cell in undisturbed[1]["cells"]]
    assert [cell["worst_case"] for cell in found["cells"]] == expected
    bounded = [
        run
        for cell in found["cells"]
        for by_seed in cell["max_accuracy"].values()
        for run in by_seed.values()
        if run["lower_bound"]
    ]
    assert bounded
    again = answer(tmp_path, "sweep", GRID, "--worst-case-only")
    assert (again["computed"], again["cells"]) == (0, found["cells"])
    whole = answer(tmp_path, "sweep", GRID)
    assert whole["computed"] == len(bounded)
    assert [cell["worst_case"] for cell in whole["cells"]] == expected


def test_bad_grids_start_nothing(tmp_path: Path) -> None:
    refused = run(tmp_path, "sweep", GRID, "workers.f=[1,20]")
    assert refused.code == 2
    assert refused.stderr.count("\n") == 1
    assert query(tmp_path, "select count(*) from runs") == [(0,)]


def test_dry_run_counts_and_estimates(
    undisturbed: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    fresh = run(tmp_path, "sweep", GRID, "--dry-run")
    assert "8 runs: 2 cells, 2 attacks, 2 seeds" in fresh.stdout
    assert "already done: 0, to do: 8" in fresh.stdout
    assert "estimated from a few timed steps" in fresh.stdout
    done = run(undisturbed[0], "sweep", GRID, "--dry-run")
    assert "already done: 8, to do: 0" in done.stdout
    assert query(tmp_path, "select count(*) from runs") == [(0,)]


@pytest.mark.slow
def test_in_processes_of_its_own(undisturbed: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    furnish(tmp_path)
    done = sweep(tmp_path, "--json", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert results(done)["cells"] == undisturbed[1]["cells"]
    assert len(rows(tmp_path, RUNS)) == 8


@pytest.mark.slow
def test_two_sweeps_at_once_share_the_work(
    undisturbed: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    command = arguments(tmp_path, "--json", "--workers", "1")
    here: dict[str, Any] = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with _kills.started(command, **here) as one, _kills.started(command, **here) as other:
        both = (one, other)
        answers = [process.communicate(timeout=250)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all(json.loads(text)["cells"] == undisturbed[1]["cells"] for text in answers)
    identities = [identity for identity, _ in rows(tmp_path, RUNS)]
    assert len(identities) == len(set(identities)) == 8
    kinds = "select value, count(*) from tags where key = 'lit_byz.kind' group by value"
    assert dict(rows(tmp_path, kinds)) == {"sweep": 1, "cell": 2, "run": 8}


@pytest.mark.slow
def test_interrupted_sweeps_say_so(tmp_path: Path) -> None:
    furnish(tmp_path)
    command = arguments(tmp_path, "train.steps=100000")
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    checkpoints = partial(tmp_path.glob, "mlruns/checkpoints/*/last.ckpt")
    with _kills.started(command, cwd=tmp_path, **pipes) as process:
        _kills.wait_until("there is a checkpoint", lambda: list(checkpoints()), 150)
        os.killpg(process.pid, signal.SIGINT)
        text, _ = process.communicate(timeout=100)
    assert process.returncode == 130
    assert "the same command goes on" in text
    assert "missing)" in text
    statuses = "select r.status from runs r join tags k on k.run_uuid = r.run_uuid "
    statuses += "where k.key = 'lit_byz.kind' and k.value in ('cell', 'sweep')"
    assert {status for (status,) in rows(tmp_path, statuses)} == {"KILLED"}
