"""SIGTERM, as a batch system sends it: the command ends soon, and the same command completes."""

import os
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli import _kills
from tests.cli._sweeps import GRID, RUNS, arguments, furnish, results, rows, sweep

# Leaves a file when a phase is reached, and makes it last, however late the signal comes: until a
# process is killed, or for so many steps and evaluations.
PHASES = """
import multiprocessing
import os
import time
from pathlib import Path
from lightning.pytorch.callbacks import Callback
from lit_byz.attacks import SignFlip

def reached(phase):
    if os.environ.get("PHASE") == phase:
        Path("reached").touch()
        time.sleep(2 if phase in ("running", "evaluating", "closing") else 60)

class Flip(SignFlip):
    def __init__(self):
        super().__init__()
        reached("composing")

class Slow(Callback):
    def on_train_batch_end(self, *_):
        reached("running")

    def on_validation_start(self, *_):
        reached("evaluating")

    def on_train_end(self, *_):
        global phase
        phase = "closing"

reached("importing")
# A run draws its partition before its first step and curves after the last one; a sweep its table.
phase = "drawing" if multiprocessing.parent_process() is None else "making"
if os.environ.get("PHASE") in ("drawing", "making", "closing"):
    from matplotlib.figure import Figure

    save = Figure.savefig

    def savefig(*args, **kwargs):
        reached(phase)
        save(*args, **kwargs)

    Figure.savefig = savefig
"""
SETTINGS = {
    **GRID,
    "trainer": {"callbacks": ["phases.Slow"]},
    "grid": {"axes": {"clip": ["none", "arc"], "attack": ["phases.Flip", "sf"]}},
}
SOON = 40.0  # seconds: on a busy machine, and with 30 for saving
KILLED = -signal.SIGTERM  # which a shell shows as 143


def interrupted(
    folder: Path, phase: str, whole: bool, *more: str, grid: Any = None
) -> tuple[int, str]:
    """The exit code of a sweep that gets the signal in a phase, alone or with all its processes."""
    marker = folder / "reached"
    marker.unlink(missing_ok=True)
    with _kills.started(
        arguments(folder, "--workers", "2", *more, grid=SETTINGS if grid is None else grid),
        cwd=folder,
        env={**os.environ, "PHASE": phase},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        _kills.wait_until(phase, marker.exists, 150)
        (os.killpg if whole else os.kill)(process.pid, signal.SIGTERM)
        begin = time.monotonic()
        text, _ = process.communicate(timeout=60)
        assert time.monotonic() - begin < SOON, (phase, whole)
        _kills.wait_until("all have ended", partial(_kills.deserted, process.pid))
    assert "Traceback" not in text, text
    return process.returncode, text


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store, and phases that last."""
    furnish(tmp_path)
    (tmp_path / "phases.py").write_text(PHASES)
    monkeypatch.setenv("LIT_BYZ_IMPORT", "phases")
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("whole", [False, True], ids=["main process", "all processes"])
def test_before_the_first_run(here: Path, whole: bool) -> None:
    """Nothing is begun, and nothing is left behind."""
    assert interrupted(here, "importing", whole)[0] == KILLED
    assert interrupted(here, "composing", whole)[0] == KILLED
    assert interrupted(here, "composing", whole, "--dry-run")[0] == KILLED
    assert rows(here, RUNS) == []
    assert not list(here.glob("mlruns/checkpoints/*"))


@pytest.mark.slow
@pytest.mark.timeout(900)  # six sweeps
def test_while_runs_go_on_and_after(here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """To the main process alone, or to all: what was done is kept, and the table is the same."""
    for phase, whole in (("running", False), ("evaluating", True), ("running", True)):
        code, text = interrupted(here, phase, whole)
        assert code == 130, text
        assert "the same command goes on from here" in text
        # The run that was on has saved itself, at a step at which it would not have by itself.
        assert list(here.glob("mlruns/checkpoints/*/last.ckpt"))
        assert "KILLED" in {status for _, status in rows(here, RUNS)}
    assert interrupted(here, "drawing", whole=False)[0] == KILLED
    done = sweep(here, "--json", grid=SETTINGS)
    assert done.returncode == 0, done.stderr
    assert (results(done)["computed"], results(done)["reused"]) == (0, 4)
    # One that was just begun when the signal came had nothing to save, and was begun anew.
    statuses = [status for _, status in rows(here, RUNS)]
    assert statuses.count("FINISHED") == 4
    assert set(statuses) <= {"FINISHED", "KILLED"}
    undisturbed = tmp_path_factory.mktemp("undisturbed")
    furnish(undisturbed)
    (undisturbed / "phases.py").write_text(PHASES)
    assert results(sweep(undisturbed, "--json", grid=SETTINGS))["cells"] == results(done)["cells"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("whole", [False, True], ids=["main process", "all processes"])
def test_while_runs_are_made_and_closed(here: Path, whole: bool) -> None:
    """One without a first step is marked, one without a further step is finished."""
    grid = {**SETTINGS, "tracking": {"figures": True}}
    for phase, expected in (("making", "KILLED"), ("closing", "FINISHED")):
        code, text = interrupted(here, phase, whole, grid=grid)
        assert code == 130, text
        statuses = {status for _, status in rows(here, RUNS)}
        assert expected in statuses, text
        assert statuses <= {"FINISHED", "KILLED"}, text
