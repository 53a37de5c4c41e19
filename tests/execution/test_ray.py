"""Sweeps on Ray: a real one, on this machine. Most of the time is Ray's, and imports."""

import argparse
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lit_byz.cli.options import make_executor
from lit_byz.execution.ray_tasks import RayTasks
from tests.cli import _kills
from tests.cli._sweeps import GRID, RUNS, arguments, furnish, results, rows, sweep

USER = """
import time
from pathlib import Path
from lit_byz.attacks import Attack, SignFlip

class Broken(Attack):
    def plan(self, scene, state):
        raise RuntimeError("this attack always fails")

class Slow(SignFlip):
    def plan(self, scene, state):
        # After two checkpoints, so that one run is not over before the other one has begun.
        if scene.step >= 10 and not Path("go").exists():
            time.sleep(1)
        return super().plan(scene, state)
"""
RAY = ("--executor", "ray")


@pytest.fixture(autouse=True)
def _named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIT_BYZ_IMPORT", "my_attacks")


def with_attacks(*names: str, **train: Any) -> dict[str, Any]:
    settings = {**GRID["train"], **train}  # type: ignore[dict-item]
    return {**GRID, "train": settings, "grid": {"axes": {"attack": list(names)}}}


def test_workers_limits_the_runs_at_once() -> None:
    options = argparse.Namespace(executor="ray", ray_address="auto", workers=3)
    assert make_executor(options) == RayTasks("auto", 3)


@pytest.mark.slow
def test_the_same_results_as_local_processes(tmp_path: Path) -> None:
    furnish(tmp_path)
    (tmp_path / "my_attacks.py").write_text(USER)
    grid = with_attacks("sf", "lf", "my_attacks.Broken")
    on_ray = sweep(tmp_path, *RAY, "--workers", "1", "--json", grid=grid)
    assert on_ray.returncode == 1
    assert results(on_ray)["failed"] == {
        "my_attacks.Broken | seed 1": "RuntimeError: this attack always fails"
    }
    # What is shared, set and varies, and a line for each run: Ray itself says nothing.
    said = [line for line in on_ray.stderr.splitlines() if not line.endswith("…")]
    first = [line.partition(" ")[0] for line in said]
    assert first == ["shared:", "not", "varies:", "1/3", "2/3", "2/3"], on_ray.stderr
    statuses = sorted(status for _, status in rows(tmp_path, RUNS))
    assert statuses == ["FAILED", "FINISHED", "FINISHED"]
    local = tmp_path / "local"
    furnish(local)
    (local / "my_attacks.py").write_text(USER)
    by_processes = sweep(local, "--json", grid=grid)
    assert results(on_ray)["cells"] == results(by_processes)["cells"]
    sources = rows(tmp_path, "select distinct value from tags where key = 'mlflow.source.name'")
    assert sources == [("sweep.py",)]


@contextlib.contextmanager
def going_on(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A sweep on Ray of two long runs, both with a checkpoint and on."""
    (folder / "my_attacks.py").write_text(USER)
    grid = with_attacks("my_attacks.Slow", steps=200)
    grid["grid"]["axes"]["seed"] = [1, 2]
    command = arguments(folder, *RAY, "--workers", "2", grid=grid)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with _kills.started(command, cwd=folder, **pipes) as process:

        def both_are_on() -> bool:
            assert process.poll() is None, process.communicate()
            checkpoints = list(folder.glob("mlruns/checkpoints/*/last.ckpt"))
            return len(checkpoints) == len(_workers(process.pid)) == 2

        _kills.wait_until("both runs are on", both_are_on, 150)
        yield process


def _workers(main: int) -> list[int]:
    """Ray's processes below a sweep's main process that compute a run."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = []
    for number in parents:
        above = number
        while above in parents and above != main:
            above = parents[above]
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{number}/cmdline").read_bytes()
            if above == main and command.startswith(b"ray::compute_remotely"):
                found.append(number)
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_batch_system_sends_sigterm_to_the_main_process(tmp_path: Path) -> None:
    """Ray has a handler of its own for it, which would end the process before any run is saved."""
    furnish(tmp_path)
    with going_on(tmp_path) as process:
        process.terminate()
        text, _ = process.communicate(timeout=150)
    assert process.returncode == 130, text
    assert "stopping: the runs that are on save themselves" in text
    assert "2 runs missing: the same command goes on" in text
    assert [status for _, status in rows(tmp_path, RUNS)] == ["KILLED", "KILLED"]


@pytest.mark.slow
@pytest.mark.timeout(900)  # Ray and two workers start three times
def test_whatever_is_killed_or_interrupted_is_gone_on_with(tmp_path: Path) -> None:
    furnish(tmp_path)
    with going_on(tmp_path) as process:
        killed = _workers(process.pid)[0]
        os.kill(killed, signal.SIGKILL)
        _kills.wait_until("it is gone", lambda: not Path(f"/proc/{killed}").exists(), 60)
        os.killpg(process.pid, signal.SIGINT)
        text, _ = process.communicate(timeout=150)
    assert process.returncode == 130, text
    assert "2 runs missing: the same command goes on" in text
    # The run whose worker was killed is still shown as one that is on, unless Ray was quick to try
    # it again; the other one saved itself.
    statuses = sorted(status for _, status in rows(tmp_path, RUNS))
    assert statuses in (["KILLED", "RUNNING"], ["KILLED", "KILLED"])
    with going_on(tmp_path) as process:
        workers = _workers(process.pid)
        process.kill()
        _kills.wait_until(
            "its workers end with it",
            lambda: not any(Path(f"/proc/{number}").exists() for number in workers),
            60,
        )
    (tmp_path / "go").touch()
    done = subprocess.run(
        process.args, cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    # Gone on with, not begun anew.
    assert [status for _, status in rows(tmp_path, RUNS)] == ["FINISHED", "FINISHED"]
