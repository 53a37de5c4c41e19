"""A run in somebody's program: what that has set changes no result, and is afterwards as it was."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlflow
import pytest
import torch
from lightning.pytorch.callbacks import Callback

import lit_byz
from lit_byz._quiet import LOGGERS, TOLD, for_a_while
from lit_byz._streams import ALONE
from lit_byz.errors import BadRequest
from lit_byz.execution.kept import config_of, confusion
from lit_byz.models import MODELS, initialise
from lit_byz.tracking import open_store
from tests.tracking._stores import new_store

SMALL = {"dataset": "digits", "model": "mlp", "train.steps": 8, "train.eval_every": 4, "seed": 6}
SMALL |= {"attack": "sf", "workers.honest": 5, "tracking.figures": False}
UNTRACKED = {**SMALL, "tracking.enabled": False}


@contextmanager
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def mixed() -> Iterator[None]:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        yield
        assert torch.is_autocast_enabled("cpu")


SETTINGS = [double, mixed, torch.no_grad, torch.inference_mode]


@pytest.mark.parametrize("surroundings", SETTINGS)
def test_what_torch_is_set_to_changes_no_result(surroundings: Any) -> None:
    expected = lit_byz.train(UNTRACKED)
    with surroundings():
        found = lit_byz.train(UNTRACKED)
    assert found.identity == expected.identity
    assert found.history["test/loss"] == expected.history["test/loss"]


def test_threads_come_one_after_another() -> None:
    """Each step starts torch's random numbers anew, and they belong to all threads."""
    expected = {seed: _parameters(seed) for seed in range(4)}
    found: dict[int, list[torch.Tensor]] = {seed: [] for seed in expected}
    ready = threading.Barrier(len(expected))

    def draw(seed: int) -> None:
        ready.wait()
        for _ in range(20):
            found[seed].append(_parameters(seed))

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(each, expected[s]) for s, drawn in found.items() for each in drawn)


def _parameters(seed: int) -> torch.Tensor:
    made = initialise(MODELS["mlp"], seed=seed)
    return torch.cat([p.detach().flatten() for p in made.parameters()])


def test_a_run_has_torchs_random_numbers_to_itself() -> None:
    """It is waited for by the next, whichever thread that is in."""
    held: list[bool] = []

    class Ask(Callback):
        def on_train_batch_end(self, *_: Any) -> None:
            other = threading.Thread(target=lambda: held.append(not ALONE.acquire(blocking=False)))
            other.start()
            other.join()

    lit_byz.train(UNTRACKED, callbacks=[Ask()])
    assert held == [True] * 8


def state() -> tuple[Any, ...]:
    levels = [logging.getLogger(name).level for name in LOGGERS]
    return [os.environ.get(name) for name in TOLD], levels, mlflow.get_tracking_uri()


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store, and MLflow as it is in a new process."""
    made = new_store(tmp_path)
    for name in TOLD:
        monkeypatch.delenv(name, raising=False)
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.INFO)
    yield made
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def test_mlflow_is_what_it_was(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own metrics are tried again where a server hiccups, and its log goes on."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "7")
    before = state()
    first = lit_byz.train({**SMALL, "tracking.uri": uri})
    assert state() == before
    lit_byz.load_model(str(first.run_id), uri=uri)
    assert state() == before
    grid = {**SMALL, "tracking.uri": uri, "clip": ["none", "arc"]}
    lit_byz.sweep(grid, executor="inline")
    assert state() == before
    with pytest.raises(BadRequest):
        lit_byz.train({"train.stepz": 1})
    assert state() == before


@pytest.mark.usefixtures("uri")
def test_mlflow_is_quiet_until_the_last_of_several_calls_has_ended() -> None:
    before = state()
    first, second = for_a_while(), for_a_while()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "0"
    second.__exit__(None, None, None)
    assert state() == before


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed"])
def test_a_kept_model_is_judged_as_its_run_was(precision: str, tmp_path: Path) -> None:
    uri = new_store(tmp_path)
    settings = {**SMALL, "train.steps": 30, "attack": "foe", "tracking.uri": uri}
    run = lit_byz.train({**settings, "workers.honest": 10, "trainer.precision": precision})
    model = lit_byz.load_model(str(run.run_id), uri=uri)
    kind = torch.float64 if precision == "64-true" else torch.float32
    assert {parameter.dtype for parameter in model.parameters()} == {kind}
    assert all(map(torch.equal, model.parameters(), run.model.parameters()))
    counts, loss = confusion(model, config_of(open_store(uri), str(run.run_id)))
    assert counts.diagonal().sum() / counts.sum() == run.accuracy
    assert loss == pytest.approx(run.history["test/loss"][-1][1], rel=1e-5)
