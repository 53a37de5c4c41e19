"""Sweeps: every run once, whatever happens, and the worst case of each cell."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lit_byz.experiment.grid import Grid, points
from lit_byz.experiment.sweep import make_sweep
from lit_byz.tracking import open_store
from lit_byz.tracking.store import claim_on
from tests.studies._sweeps import GRID, RUNS, arguments, furnish, results, rows, sweep
from tests.tracking._stores import new_store

ATTACK = """
from lit_byz.attacks import Attack

class Broken(Attack):
    def plan(self, scene, state):
        raise RuntimeError("this attack always fails")
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    answer = sweep(folder, "--json")
    assert answer.returncode == 0, answer.stderr
    (folder / "results.json").write_text(answer.stdout)
    return folder


def test_hierarchy_files_and_worst_case(undisturbed: Path) -> None:
    found = json.loads((undisturbed / "results.json").read_text())
    assert [cell["cell"] for cell in found["cells"]] == ["clip=none", "clip=arc"]
    for cell in found["cells"]:
        per_seed = [
            min(cell["max_accuracy"][attack][seed]["value"] for attack in ("sf", "lf"))
            for seed in ("1", "2")
        ]
        assert cell["worst_case"]["mean"] == pytest.approx(sum(per_seed) / 2)
    kinds = dict(
        rows(undisturbed, "select value, count(*) from tags where key='lit_byz.kind' group by 1")
    )
    assert kinds == {"sweep": 1, "cell": 2, "run": 8}
    parents = rows(
        undisturbed,
        "select count(distinct value) from tags where key = 'mlflow.parentRunId'",
    )
    assert parents == [(3,)]  # the sweep, and two cells
    stored = rows(
        undisturbed,
        "select value from latest_metrics where key = 'worst_case/max_accuracy' order by 1",
    )
    expected = sorted(cell["worst_case"]["mean"] for cell in found["cells"])
    assert [value for (value,) in stored] == pytest.approx(expected)
    assert (undisturbed / "outputs" / "worst_case.png").stat().st_size > 5000
    assert "worst case" in (undisturbed / "outputs" / "worst_case.csv").read_text()


def test_again_computes_nothing(undisturbed: Path) -> None:
    before = rows(undisturbed, RUNS)
    answer = sweep(undisturbed, "--json")
    assert answer.returncode == 0
    assert (
        results(answer)["cells"] == json.loads((undisturbed / "results.json").read_text())["cells"]
    )
    assert rows(undisturbed, RUNS) == before


# Who is killed: the main process with all of its own, it alone, a child that computes, or the
# process that children are forked from. Where a sweep is gone it is started again.
VICTIMS = ("group", "main", *["child"] * 3, "origin", "group", *["child"] * 2, "main")
# Gives a kill more moments to fall into; the numbers stay as they are.
SLOW = """
import time
from lightning.pytorch.callbacks import Callback

class Slow(Callback):
    def on_train_batch_end(self, *_):
        time.sleep(0.06)
"""


@pytest.mark.slow
def test_ten_kills_at_random_moments_lose_nothing(undisturbed: Path, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    grid = {**GRID, "trainer": {"callbacks": ["slow.Slow"]}}
    command = arguments(tmp_path, "--workers", "2", grid=grid)
    chance = random.Random(6)
    kills = 0
    while kills < len(VICTIMS):
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        most = 10.0  # seconds: a sweep takes that long to start its first runs
        while process.poll() is None and kills < len(VICTIMS):
            victim = VICTIMS[kills]
            time.sleep(chance.uniform(0.0, most))
            if _kill(process, victim, chance):
                kills += 1
                most = 4.0
            if victim in ("group", "main"):
                process.wait()
        assert process.wait() != 0, "the sweep was complete before all kills were done"
        _wait_until("all children have ended", partial(_deserted, process.pid))
        assert not _finished_halves(tmp_path)
    answer = sweep(tmp_path, "--json", grid=grid)
    assert answer.returncode == 0, answer.stderr
    expected = json.loads((undisturbed / "results.json").read_text())["cells"]
    assert results(answer)["cells"] == expected
    ended = [status for _, status in rows(tmp_path, RUNS)]
    assert set(ended) <= {"FINISHED", "KILLED"}
    finished = [identity for identity, status in rows(tmp_path, RUNS) if status == "FINISHED"]
    assert len(finished) == len(set(finished)) == 8
    repeated = rows(
        tmp_path,
        "select count(*) from (select 1 from metrics where key = 'train/loss' "
        "group by run_uuid, step having count(*) > 1)",
    )
    assert repeated == [(0,)]
    assert not list(tmp_path.glob("mlruns/checkpoints/*/*.part"))


def _kill(process: "subprocess.Popen[bytes]", victim: str, chance: random.Random) -> bool:
    """Kill -9 a sweep or one of its processes; whether there was one to kill."""
    if process.poll() is not None:
        return False
    if victim == "group":
        os.killpg(process.pid, signal.SIGKILL)
        return True
    found = [process.pid] if victim == "main" else _forked(process.pid, victim == "origin")
    if not found:
        return False
    os.kill(chance.choice(found), signal.SIGKILL)
    return True


def _finished_halves(folder: Path) -> list[tuple[Any, ...]]:
    """Runs that are shown as finished and do not have all of their steps, or no maximum."""
    if not (folder / "mlruns" / "mlflow.db").exists():
        return []
    return rows(
        folder,
        "select r.run_uuid from runs r join tags k on k.run_uuid = r.run_uuid "
        "and k.key = 'lit_byz.kind' and k.value = 'run' where r.status = 'FINISHED' and ("
        "(select count(*) from metrics m where m.run_uuid = r.run_uuid and m.key = 'train/loss') "
        "<> 40 or not exists (select 1 from latest_metrics l where l.run_uuid = r.run_uuid "
        "and l.key = 'test/max_accuracy'))",
    )


def _living(group: int) -> dict[int, int]:
    """The processes of a group and their parents, those that are only waited for left out."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent, of = path.read_text().rpartition(")")[2].split()[:3]
            if int(of) == group and state != "Z":
                found[int(path.parent.name)] = int(parent)
    return found


def _deserted(group: int) -> bool:
    return not _living(group)


def _forked(main: int, origin: bool) -> list[int]:
    """The processes that compute for a sweep, or the one that they are forked from."""
    found = []
    for number, parent in _living(main).items():
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{number}/cmdline").read_bytes()
            if b"forkserver" in command and (parent == main) == origin:
                found.append(number)
    return found


def _wait_until(what: str, condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_two_sweeps_at_once_share_the_work(undisturbed: Path, tmp_path: Path) -> None:
    command = arguments(tmp_path, "--json", "--workers", "1")
    both = [
        subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=200)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    expected = json.loads((undisturbed / "results.json").read_text())["cells"]
    assert all(json.loads(answer)["cells"] == expected for answer in answers)
    identities = [identity for identity, _ in rows(tmp_path, RUNS)]
    assert len(identities) == len(set(identities)) == 8
    kinds = "select value, count(*) from tags where key = 'lit_byz.kind' group by value"
    assert dict(rows(tmp_path, kinds)) == {"sweep": 1, "cell": 2, "run": 8}


def test_a_failing_run_does_not_stop_the_others(tmp_path: Path) -> None:
    furnish(tmp_path)
    (tmp_path / "my_attacks.py").write_text(ATTACK)
    axes = {"attack": ["sf", "my_attacks.Broken"]}
    grid = {**GRID, "grid": {"axes": axes}}
    answer = sweep(tmp_path, grid=grid)
    assert answer.returncode == 1
    assert "this attack always fails" in answer.stdout
    assert sorted(status for _, status in rows(tmp_path, RUNS)) == ["FAILED", "FINISHED"]
    again = sweep(tmp_path, grid=grid)
    assert again.returncode == 1
    assert len(rows(tmp_path, RUNS)) == 2  # a failed run is not tried again by itself
    sweep(tmp_path, "--retry-failed", grid=grid)
    assert len(rows(tmp_path, RUNS)) == 3


def test_worst_case_only_gives_the_same_worst_cases(undisturbed: Path, tmp_path: Path) -> None:
    furnish(tmp_path)
    answer = sweep(tmp_path, "--json", "--worst-case-only", "--workers", "1")
    assert answer.returncode == 0, answer.stderr
    expected = json.loads((undisturbed / "results.json").read_text())["cells"]
    found = results(answer)["cells"]
    assert [c["worst_case"] for c in found] == [c["worst_case"] for c in expected]
    bounded = [
        run
        for cell in found
        for by_seed in cell["max_accuracy"].values()
        for run in by_seed.values()
        if run["lower_bound"]
    ]
    assert bounded


def test_interrupted_sweeps_say_so(tmp_path: Path) -> None:
    furnish(tmp_path)
    process = subprocess.Popen(
        arguments(tmp_path, "train.steps=100000"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("mlruns/checkpoints/*/last.ckpt")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in text


def test_killed_runs_that_are_not_needed_any_more_are_ended(tmp_path: Path) -> None:
    """A killed run is still shown as one that is on; a study that drops it says that it is not."""
    grid = {k: v for k, v in GRID.items() if k != "grid"}
    grid["tracking"] = {"uri": new_store(tmp_path / "mlruns")}
    four = points(Grid(grid, {"clip": ["arc"], "attack": ["sf", "lf", "foe", "alie"]}))
    store = open_store(new_store(tmp_path / "mlruns"))
    experiment = store.experiment(four[0].config.tracking.experiment)
    killed, busy, ended, other = (
        store.client.create_run(
            experiment, tags={"lit_byz.identity": point.identity, "lit_byz.kind": "run"}
        ).info.run_id
        for point in four
    )
    made = make_sweep(four)
    store.client.set_terminated(ended, "FINISHED")  # by another process, after it was looked up
    with store.alone(claim_on(four[1].identity)):
        made.drop("another cell")
        statuses = [store.client.get_run(run).info.status for run in (killed, busy, ended, other)]
        assert statuses == ["RUNNING", "RUNNING", "FINISHED", "RUNNING"]
        made.drop(four[0].cell)
    statuses = [store.client.get_run(run).info.status for run in (killed, busy, ended, other)]
    assert statuses == ["KILLED", "RUNNING", "FINISHED", "KILLED"]
    assert store.claim(claim_on(four[0].identity)) is not None  # given back


def test_bad_grids_start_nothing(tmp_path: Path) -> None:
    answer = sweep(tmp_path, "workers.f=[1,20]")
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1
    assert not (tmp_path / "mlruns").exists()


def test_dry_run_counts_and_estimates(undisturbed: Path, tmp_path: Path) -> None:
    furnish(tmp_path)
    fresh = sweep(tmp_path, "--dry-run")
    assert "8 runs: 2 cells, 2 attacks, 2 seeds" in fresh.stdout
    assert "already done: 0, to do: 8" in fresh.stdout
    assert "estimated from a few measured steps" in fresh.stdout
    done = sweep(undisturbed, "--dry-run")
    assert "already done: 8, to do: 0" in done.stdout
