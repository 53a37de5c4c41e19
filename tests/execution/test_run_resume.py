"""Runs that are killed, interrupted or broken, and go on to the same end."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from lit_byz.errors import BadRequest
from tests.execution import _runs
from tests.execution._runs import MODULE, QUICK, quick
from tests.tracking._stores import new_store

PIPELINE = Path(__file__).parents[2] / "pipelines" / "train.py"
STEPS = 14
# Every kind of state: momentums, batch norm's statistics, dropout's masks, an attacker's memory.
RICH = [
    f"model={MODULE}.TinyNet",
    "attack=mimic",
    "attack.warmup=9",
    "train.gradients=loop",
    f"train.steps={STEPS}",
    "train.checkpoint_every=5",
    "train.lr_milestones=[8]",
    "train.output=random_iterate",
]
SEARCHED = [*RICH, "attack=foe"]
SEARCHED.remove("attack.warmup=9")

Whole = tuple[Path, Path, str | None]


@pytest.fixture(scope="module", autouse=True)
def _users_parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("users")
    _runs.write_users_parts(folder)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    sys.modules.pop(MODULE, None)


@pytest.fixture(autouse=True)
def _handlers_are_put_back() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in handlers} == handlers


def callbacks(*entries: str) -> str:
    return f"trainer.callbacks=[{', '.join(entries)}]"


def keeping(path: Path) -> str:
    """Saves the last parameters."""
    return f"{{name: {MODULE}.KeepParameters, path: {path}}}"


def signalling(step: int, name: str, times: int = 1) -> str:
    """Sends a signal to its own process after some steps."""
    return f"{{name: {MODULE}.SignalAt, step: {step}, sent: {name}, times: {times}}}"


def copying(step: int, store: Path, copy: Path) -> str:
    """Copies the checkpoint that there is after some steps."""
    return f"{{name: {MODULE}.CopyCheckpoint, step: {step}, store: {store}, copy: {copy}}}"


def keep(path: Path) -> str:
    return callbacks(keeping(path))


def signal_at(step: int, name: str, times: int = 1) -> str:
    return callbacks(signalling(step, name, times))


def assert_same_parameters(first: Path, second: Path) -> None:
    ours, theirs = (torch.load(path, weights_only=True) for path in (first, second))
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert torch.equal(value, theirs[name]), name


def uninterrupted(folder: Path, settings: list[str]) -> Whole:
    """The run as it should be: where it is tracked, its last parameters, its id."""
    parameters = folder / "whole.pt"
    result = quick(folder, *settings, keep(parameters))
    assert result.status == "finished"
    return folder, parameters, result.run_id


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return uninterrupted(tmp_path_factory.mktemp("whole"), RICH)


def assert_same_run(whole: Whole, store: Path, parameters: Path) -> None:
    """The one run in ``store`` is, bit for bit, the uninterrupted one."""
    (run_id,) = _runs.run_ids(store)
    assert _runs.values_of(store, run_id) == _runs.values_of(whole[0], whole[2])
    assert _runs.steps_of(store, run_id, "arc/threshold") == list(range(STEPS))
    assert _runs.duplicates(store) == []
    assert _runs.status_of(store, run_id) == "FINISHED"
    assert_same_parameters(whole[1], parameters)


@pytest.mark.slow
def test_killed_at_once(tmp_path: Path) -> None:
    """kill -9 between two checkpoints, under an attack that searches."""
    settings = SEARCHED
    store, parameters = tmp_path / "killed", tmp_path / "killed.pt"
    command = [sys.executable, str(PIPELINE), *QUICK, *settings, "resume=auto", "--quiet"]
    command += [f"tracking.uri={new_store(store)}", signal_at(8, "SIGKILL")]
    paths = os.pathsep.join([str(PIPELINE.parents[1]), sys.path[0]])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    died = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, timeout=120, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    (run_id,) = _runs.run_ids(store)
    assert _runs.status_of(store, run_id) == "RUNNING"  # nobody was left to say more
    assert _runs.steps_of(store, run_id, "arc/threshold") == list(range(5))
    result = quick(store, *settings, "resume=auto", keep(parameters))
    assert (result.status, result.resumed_at, result.run_id) == ("finished", 5, run_id)
    assert_same_run(uninterrupted(tmp_path / "whole", settings), store, parameters)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signals(
    whole: Whole, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The step is finished and saved; the exit code is that of an interruption."""
    store, parameters = tmp_path / "stopped", tmp_path / "stopped.pt"
    assert _runs.command(store, [*RICH, signal_at(7, name)]) == 130
    (run_id,) = _runs.run_ids(store)
    assert _runs.status_of(store, run_id) == "KILLED"
    assert _runs.tags_of(store, run_id)["lit_byz.status"] == "interrupted"
    assert "interrupted after step 7 of 14" in capsys.readouterr().out
    checkpoint = store / "checkpoints" / run_id / "last.ckpt"
    saved = torch.load(checkpoint, weights_only=True)
    assert saved["global_step"] == 7
    assert _runs.steps_of(store, run_id, "arc/threshold") == list(range(7))
    assert _runs.steps_of(store, run_id, "test/max_accuracy") == []
    assert _runs.command(store, [*RICH, "resume=auto", keep(parameters)]) == 0
    assert_same_run(whole, store, parameters)
    assert not checkpoint.parent.exists()  # a finished run needs none


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_second_signal_ends_at_once(whole: Whole, tmp_path: Path, name: str) -> None:
    """An impatient user loses the steps since the last checkpoint, and nothing else."""
    store, parameters = tmp_path / "stopped", tmp_path / "stopped.pt"
    assert _runs.command(store, [*RICH, signal_at(7, name, times=2)]) == 130
    (run_id,) = _runs.run_ids(store)
    assert _runs.status_of(store, run_id) == "KILLED"
    result = quick(store, *RICH, "resume=auto", keep(parameters))
    assert result.resumed_at == 5
    assert_same_run(whole, store, parameters)


def test_interrupted_again_and_again(whole: Whole, tmp_path: Path) -> None:
    store, parameters = tmp_path / "stopped", tmp_path / "stopped.pt"
    for step in (1, 2, 5, 6, 13):
        result = quick(store, *RICH, "resume=auto", signal_at(step, "SIGINT"))
        assert (result.status, result.steps_done) == ("interrupted", step)
    result = quick(store, *RICH, "resume=auto", keep(parameters))
    assert result.resumed_at == 13
    assert_same_run(whole, store, parameters)


def test_a_signal_in_the_last_step_changes_nothing(tmp_path: Path) -> None:
    result = quick(tmp_path / "s", *RICH, signal_at(STEPS, "SIGINT"))
    assert result.status == "finished"


def test_metrics_newer_than_the_checkpoint(whole: Whole, tmp_path: Path) -> None:
    """Steps that the store has already are computed again, and not written again."""
    store, parameters, older = tmp_path / "stopped", tmp_path / "stopped.pt", tmp_path / "older"
    chosen = callbacks(copying(6, store, older), signalling(11, "SIGINT"))
    result = quick(store, *RICH, chosen)
    assert _runs.steps_of(store, result.run_id, "arc/threshold") == list(range(11))
    (path,) = store.glob("checkpoints/*/last.ckpt")
    shutil.copy(older, path)
    again = quick(store, *RICH, "resume=auto", keep(parameters))
    assert again.resumed_at == 5
    assert_same_run(whole, store, parameters)


def test_checkpoint_newer_than_the_metrics(whole: Whole, tmp_path: Path) -> None:
    """Killed after the checkpoint and before the metrics were written: none of them is missing."""
    store, parameters, newer = tmp_path / "stopped", tmp_path / "stopped.pt", tmp_path / "newer"
    quick(tmp_path / "other", *RICH, callbacks(copying(11, tmp_path / "other", newer)))
    quick(store, *RICH, signal_at(3, "SIGINT"))
    (path,) = store.glob("checkpoints/*/last.ckpt")
    shutil.copy(newer, path)
    again = quick(store, *RICH, "resume=auto", keep(parameters))
    assert again.resumed_at == 10
    assert_same_run(whole, store, parameters)


def test_resume_from_a_file(whole: Whole, tmp_path: Path) -> None:
    """A checkpoint of one store starts a new run in another, which then has the whole history."""
    store, parameters, copy = tmp_path / "new", tmp_path / "new.pt", tmp_path / "copy.ckpt"
    quick(tmp_path / "old", *RICH, callbacks(copying(8, tmp_path / "old", copy)))
    result = quick(store, *RICH, f"resume={copy}", keep(parameters))
    assert result.resumed_at == 5
    assert_same_run(whole, store, parameters)
    assert copy.exists()
    with pytest.raises(BadRequest, match=r"resume = nowhere\.ckpt: there is no such file"):
        quick(store, *RICH, "resume=nowhere.ckpt")


def test_without_tracking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = [*RICH, "tracking.enabled=false", "resume=auto"]
    stopped = quick(tmp_path, *settings, signal_at(7, "SIGINT"))
    assert (stopped.status, stopped.run_id) == ("interrupted", None)
    result = quick(tmp_path, *settings)
    assert (result.status, result.resumed_at) == ("finished", 7)
    whole = quick(tmp_path, *RICH, "tracking.enabled=false")
    assert _runs.timeless(result.history) == _runs.timeless(whole.history)
    assert not list(tmp_path.glob("**/*.ckpt"))
    assert _runs.run_ids(tmp_path) == []


def test_the_way_of_computing_gradients_is_kept(tmp_path: Path) -> None:
    """Ways differ in the last bit, so a run goes on with the one that it began with."""
    quick(tmp_path, *RICH, "train.gradients=vmap", signal_at(7, "SIGINT"))
    result = quick(tmp_path, *RICH, "resume=auto")
    assert (result.way, result.resumed_at) == ("vmap", 7)
    whole = quick(tmp_path / "whole", *RICH, "train.gradients=vmap")
    assert _runs.timeless(result.history) == _runs.timeless(whole.history)


def test_finished_run_is_not_computed_again(tmp_path: Path) -> None:
    first = quick(tmp_path, *SEARCHED, "resume=auto")
    again = quick(tmp_path, *SEARCHED, "resume=auto", signal_at(1, "SIGKILL"))  # would be the end
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
    again = quick(store, *RICH, "resume=auto", keep(parameters))
    assert (again.status, again.resumed_at) == ("finished", 4)
    assert_same_parameters(whole[1], parameters)
    values = _runs.values_of(store, again.run_id)
    assert values.pop(("test/max_accuracy_at_least", 3)) == bound
    assert values == _runs.values_of(whole[0], whole[2])
    assert _runs.duplicates(store) == []
