"""Tracked runs on several processes: the same result, stopped and gone on with."""

import signal
from pathlib import Path

import pytest
import torch

from lit_byz import train
from lit_byz.config.compose import compose
from lit_byz.config.identity import identity
from lit_byz.errors import BadRequest, RunFailed
from tests.execution import _runs
from tests.execution._runs import MODULE, wishing
from tests.tracking._stores import new_store

pytestmark = pytest.mark.usefixtures("users_parts")
SETTINGS = ["dataset=digits", "model=mlp", "workers.honest=5", "workers.batch_size=6", "attack=foe"]
SETTINGS += ["train.steps=14", "train.eval_every=5", "train.checkpoint_every=5"]
SETTINGS += ["trainer.precision=64-true", "trainer.accelerator=cpu", "attack=mimic"]


@pytest.mark.slow
def test_stopped_and_gone_on_with(tmp_path: Path) -> None:
    """A run on two processes is interrupted, and one process goes on from there."""
    alone = train([*SETTINGS, "tracking.enabled=false"])
    store = tmp_path / "store"
    settings = [*SETTINGS, f"trainer.callbacks=[{MODULE}.SignalAt]"]
    settings += [f"tracking.uri={new_store(store)}", "resume=auto"]
    with wishing(signal=(7, "SIGINT")):
        stopped = train([*settings, "trainer.devices=2"])
    assert (stopped.status, stopped.steps_done) == ("interrupted", 7)
    gone_on = train(settings)
    assert (gone_on.status, gone_on.resumed_at) == ("finished", 7)
    assert gone_on.run_id == stopped.run_id
    assert _runs.steps_of(store, str(gone_on.run_id), "clip/threshold") == list(range(14))
    assert gone_on.max_accuracy == alone.max_accuracy
    for a, b in zip(gone_on.model.parameters(), alone.model.parameters(), strict=True):
        assert float((a - b).detach().abs().max()) < 1e-12


@pytest.mark.slow
def test_two_processes_from_beginning_to_end(tmp_path: Path) -> None:
    alone = train([*SETTINGS, "tracking.enabled=false"])
    both = train([*SETTINGS, f"tracking.uri={new_store(tmp_path)}", "trainer.devices=2"])
    assert both.status == "finished"
    assert both.history["test/accuracy"] == alone.history["test/accuracy"]
    found, expected = (dict(result.history["attack/damage"]) for result in (both, alone))
    assert found == pytest.approx(expected)
    for a, b in zip(both.model.parameters(), alone.model.parameters(), strict=True):
        assert float((a - b).detach().abs().max()) < 1e-12
    assert not torch.distributed.is_initialized()


@pytest.mark.slow
def test_a_process_that_dies_ends_the_run_in_one_line(tmp_path: Path) -> None:
    dying = [*SETTINGS, f"trainer.callbacks=[{MODULE}.DieElsewhere]", "trainer.devices=2"]
    with pytest.raises(RunFailed, match=rf"process 2 of the run ended with code -{signal.SIGKILL}"):
        train([*dying, f"tracking.uri={new_store(tmp_path)}"])
    (run_id,) = _runs.run_ids(tmp_path)
    assert _runs.status_of(tmp_path, run_id) == "FAILED"


def test_no_more_processes_than_workers() -> None:
    with pytest.raises(BadRequest, match=r"trainer\.devices = 6: there are only 5 honest workers"):
        compose([*SETTINGS, "trainer.devices=6"])


def test_a_run_is_the_same_run_on_however_many_devices() -> None:
    assert identity(compose(SETTINGS)) == identity(compose([*SETTINGS, "trainer.devices=2"]))
