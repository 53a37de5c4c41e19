"""Runs that are killed, interrupted or broken, and go on to the same end."""

import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.execution import _runs
from tests.execution._runs import QUICK, quick, wishes, wishing
from tests.execution._whole import (
    RICH,
    SEARCHED,
    STEPS,
    Whole,
    assert_same_parameters,
    assert_same_run,
    go_on,
    uninterrupted,
)
from tests.tracking._stores import new_store

PIPELINE = Path(__file__).parents[2] / "pipelines" / "train.py"
pytestmark = pytest.mark.usefixtures("users_parts")


@pytest.fixture(autouse=True)
def _handlers_are_put_back() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in handlers} == handlers


@pytest.mark.slow
def test_killed_at_once(tmp_path: Path) -> None:
    """kill -9 between two checkpoints, under an attack that searches."""
    settings = SEARCHED
    store, parameters = tmp_path / "killed", tmp_path / "killed.pt"
    command = [sys.executable, str(PIPELINE), *QUICK, *settings, "resume=auto", "--quiet"]
    command += [f"tracking.uri={new_store(store)}"]
    paths = os.pathsep.join([str(PIPELINE.parents[1]), sys.path[0]])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    environment |= wishes(signal=(8, "SIGKILL"))
    died = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, timeout=120, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    (run_id,) = _runs.run_ids(store)
    assert _runs.status_of(store, run_id) == "RUNNING"  # nobody was left to say more
    # Those of the checkpoint; those after it too where a machine took seconds for them.
    written = _runs.steps_of(store, run_id, "clip/threshold")
    assert written == list(range(len(written)))
    assert 5 <= len(written) <= 8
    result = go_on(store, parameters, *settings)
    assert (result.status, result.resumed_at, result.run_id) == ("finished", 5, run_id)
    assert_same_run(uninterrupted(tmp_path / "whole", settings), store, parameters)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signals(
    whole: Whole, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The step is finished and saved; the exit code is that of an interruption."""
    store, parameters = tmp_path / "stopped", tmp_path / "stopped.pt"
    with wishing(signal=(7, name)):
        assert _runs.command(store, RICH) == 130
    (run_id,) = _runs.run_ids(store)
    assert _runs.status_of(store, run_id) == "KILLED"
    assert _runs.tags_of(store, run_id)["lit_byz.status"] == "interrupted"
    assert "interrupted after step 7 of 14" in capsys.readouterr().out
    checkpoint = store / "checkpoints" / run_id / "last.ckpt"
    saved = torch.load(checkpoint, weights_only=True)
    assert saved["global_step"] == 7
    assert _runs.steps_of(store, run_id, "clip/threshold") == list(range(7))
    assert _runs.steps_of(store, run_id, "test/max_accuracy") == []
    with wishing(keep=parameters):
        assert _runs.command(store, [*RICH, "resume=auto"]) == 0
    assert_same_run(whole, store, parameters)
    assert not checkpoint.parent.exists()  # a finished run needs none


def test_before_the_first_evaluation_there_is_no_accuracy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with wishing(signal=(2, "SIGINT")):
        assert _runs.command(tmp_path / "command", RICH) == 130
        result = quick(tmp_path / "function", *RICH)
    told = capsys.readouterr().out
    assert "not evaluated yet: that is done every 4 steps" in told
    assert "accuracy 0" not in told
    assert (result.status, result.steps_done) == ("interrupted", 2)
    assert math.isnan(result.max_accuracy)
    assert math.isnan(result.accuracy)
    (run_id,) = _runs.run_ids(tmp_path / "command")
    assert _runs.steps_of(tmp_path / "command", run_id, "test/max_accuracy") == []


@pytest.mark.parametrize("name", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow)])
def test_a_second_signal_ends_at_once(whole: Whole, tmp_path: Path, name: str) -> None:
    """An impatient user loses the steps since the last checkpoint, and nothing else."""
    store, parameters = tmp_path / "stopped", tmp_path / "stopped.pt"
    with wishing(signal=(7, name, 2)):
        assert _runs.command(store, RICH) == 130
    (run_id,) = _runs.run_ids(store)
    assert _runs.status_of(store, run_id) == "KILLED"
    result = go_on(store, parameters)
    assert result.resumed_at == 5
    assert_same_run(whole, store, parameters)


@pytest.mark.slow
def test_interrupted_again_and_again(whole: Whole, tmp_path: Path) -> None:
    store, parameters = tmp_path / "stopped", tmp_path / "stopped.pt"
    for step in (1, 2, 5, 6, 13):
        with wishing(signal=(step, "SIGINT")):
            result = quick(store, *RICH, "resume=auto")
        assert (result.status, result.steps_done) == ("interrupted", step)
    result = go_on(store, parameters)
    assert result.resumed_at == 13
    assert_same_run(whole, store, parameters)


def test_a_signal_in_the_last_step_changes_nothing(tmp_path: Path) -> None:
    with wishing(signal=(STEPS, "SIGINT")):
        result = quick(tmp_path / "s", *RICH)
    assert result.status == "finished"


def test_metrics_newer_than_the_checkpoint(whole: Whole, tmp_path: Path) -> None:
    """Steps that the store has already are computed again, and not written again."""
    store, parameters, older = tmp_path / "stopped", tmp_path / "stopped.pt", tmp_path / "older"
    with wishing(copy=(6, store, older), signal=(11, "SIGINT")):
        result = quick(store, *RICH)
    assert _runs.steps_of(store, result.run_id, "clip/threshold") == list(range(11))
    (path,) = store.glob("checkpoints/*/last.ckpt")
    shutil.copy(older, path)
    again = go_on(store, parameters)
    assert again.resumed_at == 5
    assert_same_run(whole, store, parameters)


def test_checkpoint_newer_than_the_metrics(whole: Whole, tmp_path: Path) -> None:
    """Killed after the checkpoint and before the metrics were written: none of them is missing."""
    store, parameters, newer = tmp_path / "stopped", tmp_path / "stopped.pt", tmp_path / "newer"
    with wishing(copy=(11, tmp_path / "other", newer)):
        quick(tmp_path / "other", *RICH)
    with wishing(signal=(3, "SIGINT")):
        quick(store, *RICH)
    (path,) = store.glob("checkpoints/*/last.ckpt")
    shutil.copy(newer, path)
    again = go_on(store, parameters)
    assert again.resumed_at == 10
    assert_same_run(whole, store, parameters)


def test_without_tracking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = [*RICH, "tracking.enabled=false", "resume=auto"]
    with wishing(signal=(7, "SIGINT")):
        stopped = quick(tmp_path, *settings)
    assert (stopped.status, stopped.run_id) == ("interrupted", None)
    result = quick(tmp_path, *settings)
    assert (result.status, result.resumed_at) == ("finished", 7)
    whole = quick(tmp_path, *RICH, "tracking.enabled=false")
    assert _runs.timeless(result.history) == _runs.timeless(whole.history)
    assert not list(tmp_path.glob("**/*.ckpt"))
    assert _runs.run_ids(tmp_path) == []


def test_finished_run_is_not_computed_again(tmp_path: Path) -> None:
    first = quick(tmp_path, *SEARCHED, "resume=auto")
    with wishing(signal=(1, "SIGKILL")):  # would be the end
        again = quick(tmp_path, *SEARCHED, "resume=auto")
    assert again.reused
    assert not first.reused
    for name in ("run_id", "status", "max_accuracy", "step_of_max", "accuracy", "steps_done"):
        assert getattr(again, name) == getattr(first, name), name
    assert again.history == first.history
    anew = quick(tmp_path, *SEARCHED)
    assert anew.run_id != first.run_id
    assert _runs.timeless(anew.history) == _runs.timeless(first.history)
    other = quick(tmp_path, *SEARCHED, "resume=auto", "seed=2")
    assert not other.reused
    assert other.identity != first.identity


def test_stopped_above_a_bound(whole: Whole, tmp_path: Path) -> None:
    """A run that is good enough may stop; without a bound it goes on to the end."""
    bound = _runs.values_of(whole[0], whole[2])["test/accuracy", 3]
    store, parameters = tmp_path / "bounded", tmp_path / "bounded.pt"
    result = quick(store, *RICH, "resume=auto", stop_above=bound)
    assert (result.status, result.steps_done, result.max_accuracy) == ("bounded", 4, bound)
    assert _runs.status_of(store, result.run_id) == "KILLED"
    assert _runs.steps_of(store, result.run_id, "test/max_accuracy_at_least") == [3]
    again = go_on(store, parameters)
    assert (again.status, again.resumed_at) == ("finished", 4)
    assert_same_parameters(whole[1], parameters)
    values = _runs.values_of(store, again.run_id)
    assert values.pop(("test/max_accuracy_at_least", 3)) == bound
    assert values == _runs.values_of(whole[0], whole[2])
    assert _runs.duplicates(store) == []


@pytest.mark.slow
def test_resumed_in_double_precision(tmp_path: Path) -> None:
    """What is loaded keeps all its digits, although models are made in single precision."""
    settings = ["trainer.precision=64-true", "train.steps=8", "train.checkpoint_every=3"]
    settings += [_runs.CALLBACKS]
    once = quick(tmp_path / "once", *settings)
    with wishing(signal=(5, "SIGINT")):
        assert quick(tmp_path / "again", *settings, "resume=auto").status == "interrupted"
    resumed = quick(tmp_path / "again", *settings, "resume=auto")
    assert resumed.resumed_at == 5
    for a, b in zip(once.model.parameters(), resumed.model.parameters(), strict=True):
        assert a.dtype == torch.float64
        assert torch.equal(a, b)
