"""Local processes: each sees what the main process sees, however it was made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lit_byz.experiment.config import compose, to_plain
from lit_byz.experiment.executors import LocalProcesses

from lit_byz.execution.tasks import Outcome, Progress, Task

TELLS = """
import os
import torch
from lit_byz.attacks import Attack

class Tells(Attack):
    def plan(self, scene, state):
        place = os.path.basename(os.getcwd())
        raise RuntimeError(f"{os.environ['LIT_BYZ_TOLD']}, {place}, {torch.get_num_threads()}")
"""


def test_a_long_name_for_temporary_files_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    text = (
        "from lit_byz.experiment.executors import LocalProcesses; p = LocalProcesses(1); "
        "p.get_ready(); print(p._context.get_start_method())"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "spawn\n"


def test_processes_see_what_was_changed_after_they_got_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = LocalProcesses(1)
    executor.get_ready()
    before = dict(os.environ)
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "tells.py").write_text(TELLS)
    monkeypatch.chdir(tmp_path / "late")
    monkeypatch.syspath_prepend(tmp_path / "late")
    monkeypatch.setenv("LIT_BYZ_TOLD", "told late")
    settings = ["dataset=digits", "model=logreg", "attack=tells.Tells", "workers.f=1"]
    config = to_plain(compose([*settings, "tracking.enabled=false"]))
    tasks = iter([Task(index, config) for index in range(2)])
    heard: list[Progress | Outcome] = []
    executor.run(lambda: next(tasks, None), heard.append, lambda: False)
    expected = "RuntimeError: told late, late, 1"
    assert heard == [Outcome(index, "failed", error=expected) for index in range(2)]
    # The variables that the processes are made with are not left behind.
    assert dict(os.environ) == {**before, "LIT_BYZ_TOLD": "told late"}
