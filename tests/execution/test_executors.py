"""Executors: an outcome for every task; local processes see what the main process sees."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lit_byz.config.compose import compose_plain
from lit_byz.config.identity import identify
from lit_byz.execution.executor import Executor, Inline
from lit_byz.execution.processes import LocalProcesses
from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking.outcome import Outcome

TELLS = """
import os
import torch
from lit_byz.attacks import Attack

class Tells(Attack):
    def plan(self, scene, state):
        place = os.path.basename(os.getcwd())
        raise RuntimeError(f"{os.environ['LIT_BYZ_TOLD']}, {place}, {torch.get_num_threads()}")
"""


def task(*settings: str, **more: Any) -> Task:
    plain = compose_plain([*settings, "tracking.enabled=false"])
    return Task(plain, identify(plain), **more)


def computed(executor: Executor, tasks: Sequence[Task]) -> list[Outcome]:
    """The outcomes of tasks, in the order in which they are heard of."""
    waiting = iter(tasks)
    heard: list[Progress | Outcome] = []
    executor.run(lambda: next(waiting, None), heard.append, lambda: False)
    steps = {each.identity: each.config["train"]["steps"] for each in tasks}
    for message in heard:
        if isinstance(message, Progress):
            assert 0 < message.step <= message.steps == steps[message.identity]
    return [message for message in heard if isinstance(message, Outcome)]


QUICK = ["model=logreg", "attack=sf", "train.steps=4", "train.eval_every=2"]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(Inline, id="inline"),
        pytest.param(lambda: LocalProcesses(2), id="processes", marks=pytest.mark.slow),
    ],
)
def test_one_outcome_for_every_task(
    make: Callable[[], Executor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever becomes of it; a bound lets a run end early."""
    monkeypatch.chdir(tmp_path)
    whole = task(*QUICK)
    bounded = task(*QUICK, "seed=2", stop_above=0.0)
    broken = task(*QUICK, "data.root=/dev/null", "dataset=mnist")
    found = {outcome.identity: outcome for outcome in computed(make(), [whole, bounded, broken])}
    assert found[whole.identity].complete
    assert found[whole.identity].steps_done == 4
    assert 0 < (found[whole.identity].max_accuracy or 0.0) < 1
    assert found[bounded.identity].status == "bounded"
    assert found[bounded.identity].steps_done < 4
    assert found[broken.identity].status == "failed"
    assert found[broken.identity].error
    assert len(found) == 3
    assert not any(outcome.reused for outcome in found.values())


def test_a_stopped_executor_takes_no_task() -> None:
    heard: list[Progress | Outcome] = []
    Inline().run(lambda: task(*QUICK), heard.append, lambda: True)
    assert heard == []


def test_a_long_name_for_temporary_files_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    text = (
        "from lit_byz.execution.processes import LocalProcesses; p = LocalProcesses(1); "
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
    tasks = [task(*settings, f"seed={seed}") for seed in (1, 2)]
    expected = "RuntimeError: told late, late, 1"
    found = computed(executor, tasks)
    assert found == [Outcome(each.identity, "failed", error=expected) for each in tasks]
    assert all('tells.py", line ' in str(outcome.traceback) for outcome in found)
    # The variables that the processes are made with are not left behind.
    named = {"LIT_BYZ_IMPORT": "tells"}
    assert dict(os.environ) == {**before, "LIT_BYZ_TOLD": "told late", **named}
