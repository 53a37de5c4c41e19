"""A sweep that is killed ten times, at random moments and in every part: nothing is lost."""

import os
import random
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli import _kills
from tests.cli._studies import answer
from tests.cli._sweeps import GRID, RUNS, arguments, results, rows, sweep

# Who is killed: the main process with all of its own, it alone, a child that computes, or the
# process that children are forked from. Where a sweep is gone it is started again.
VICTIMS = ("group", "main", *["child"] * 3, "origin", "group", *["child"] * 2, "main")
# The most steps before a kill, and those that may follow before it is done.
MOST, SLACK = 16, 10
# Counts the steps of all runs in the size of one file, and waits when there are as many as the size
# of another one allows: where the test is late, no sweep is complete before it. A pause gives a
# kill more moments to fall into; the numbers stay as they are.
COUNTED = """
import os
import time
from lightning.pytorch.callbacks import Callback

class Counted(Callback):
    def on_train_batch_end(self, *_):
        if os.path.exists("allowed"):
            with open("taken", "ab") as file:
                file.write(b".")
            time.sleep(0.06)
            while os.path.getsize("taken") >= os.path.getsize("allowed"):
                time.sleep(0.02)
"""


def killed_after(
    steps: int,
    folder: Path,
    process: "subprocess.Popen[Any]",
    victim: str,
    chance: random.Random,
) -> bool:
    """Kill a moment after so many more steps; False if the sweep came to its end before."""
    taken = folder / "taken"
    target = taken.stat().st_size + steps
    os.truncate(folder / "allowed", target + SLACK)
    hit = False

    def reached() -> bool:
        return taken.stat().st_size >= target or process.poll() is not None

    def tried() -> bool:
        nonlocal hit
        hit = _kills.kill(process, victim, chance)
        return hit or process.poll() is not None

    _kills.wait_until(f"{steps} more steps", reached, 150)
    time.sleep(chance.uniform(0.0, 0.1 if steps else 4.0))
    _kills.wait_until(f"there is a {victim} to kill", tried, 150)
    return hit


@pytest.mark.slow
@pytest.mark.timeout(900)  # a sweep is started six times and more
def test_ten_kills_at_random_moments_lose_nothing(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = answer(tmp_path_factory.mktemp("undisturbed"), "sweep", GRID)
    (tmp_path / "counted.py").write_text(COUNTED)
    monkeypatch.setenv("LIT_BYZ_IMPORT", "counted")
    grid = {**GRID, "trainer": {"callbacks": ["counted.Counted"]}}
    command = arguments(tmp_path, "--workers", "2", grid=grid)
    nowhere: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    taken, allowed = tmp_path / "taken", tmp_path / "allowed"
    taken.touch()
    allowed.touch()
    chance = random.Random(6)
    assert len(VICTIMS) * (MOST + SLACK + 2) < 8 * 40  # the steps of all runs
    kills = 0
    while kills < len(VICTIMS):
        with _kills.started(command, cwd=tmp_path, **nowhere) as process:
            while process.poll() is None and kills < len(VICTIMS):
                victim = VICTIMS[kills]
                # One in four falls into what a sweep does before its first step, or between two.
                steps = chance.choice([0, *[chance.randint(1, MOST)] * 3])
                if killed_after(steps, tmp_path, process, victim, chance):
                    kills += 1
                    if victim in ("group", "main"):
                        process.wait()
            os.truncate(allowed, taken.stat().st_size + SLACK)  # who waits hears of its end
            code = process.wait()
            assert code != 0, "the sweep was complete before all kills were done"
            assert code != 2, "the sweep was refused"
            _kills.wait_until("all have ended", partial(_kills.deserted, process.pid), 60)
        assert not _kills.finished_halves(tmp_path)
    allowed.unlink()
    done = sweep(tmp_path, "--json", grid=grid)
    assert done.returncode == 0, done.stderr
    assert results(done)["cells"] == undisturbed["cells"]
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
