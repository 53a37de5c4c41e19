"""What a fit begins with, what it leaves behind, and what it is not given twice."""

import copy
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import Callback, EMAWeightAveraging
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from lit_byz.attacks import SignFlip
from lit_byz.errors import BadRequest
from lit_byz.robust import CWTM
from lit_byz.training import RobustDSGD, TrainSettings, WorkerData
from tests.training.test_stock_trainer import data, module, trainer


def fit(made: RobustDSGD, folder: Path, steps: int, **options: Any) -> None:
    own = trainer(folder, max_steps=steps, enable_checkpointing=False, **options)
    own.fit(made, datamodule=data())


def test_a_new_fit_begins_with_zero_momentums(tmp_path: Path) -> None:
    """As one of a new module around the same model does; the same trainer goes on."""
    first = module()
    fit(first, tmp_path, 6)
    second = module(copy.deepcopy(first.model))
    for made in (first, second):
        fit(made, tmp_path, 4)
    assert torch.equal(first.flat.gather(), second.flat.gather())
    whole, parts = module(), module()
    fit(whole, tmp_path, 6)
    own = trainer(tmp_path, max_steps=2, enable_checkpointing=False)
    own.fit(parts, datamodule=data())
    own.fit_loop.epoch_loop.max_steps = 6
    own.should_stop = False
    own.fit(parts, datamodule=data())
    assert torch.equal(parts.flat.gather(), whole.flat.gather())
    assert torch.equal(parts.momentums, whole.momentums)


def test_a_module_that_diverged_can_be_trained_again(tmp_path: Path) -> None:
    made = module(lr=1e38)
    begun = copy.deepcopy(made.model.state_dict())
    fit(made, tmp_path, 6)
    assert made.diverged_at is not None
    made.model.load_state_dict(begun)
    made.settings = TrainSettings(lr=0.1)
    fit(made, tmp_path, 6)
    assert (made.diverged_at, made.observed is not None) == (None, True)
    fresh = module(lr=0.1)
    fit(fresh, tmp_path, 6)
    assert torch.equal(made.flat.gather(), fresh.flat.gather())


class Break(Callback):
    def on_train_batch_end(self, *_: Any) -> None:
        raise RuntimeError("broken off")


@pytest.mark.parametrize("callbacks", [[], [Break()]])
def test_torchs_random_numbers_go_on(callbacks: list[Callback], tmp_path: Path) -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    made = module()
    torch.manual_seed(3)
    broken = pytest.raises(RuntimeError, match="broken off") if callbacks else nullcontext()
    with broken:
        fit(made, tmp_path, 3, callbacks=callbacks)
    assert torch.equal(torch.rand(4), expected)


class Keep(Callback):
    def __init__(self) -> None:
        self.kept: list[torch.Tensor] = []

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        self.kept.append(pl_module.flat.gather().clone())


def test_averaged_weights(tmp_path: Path) -> None:
    """A callback that copies the module before its setup."""
    keep, made = Keep(), module()
    fit(made, tmp_path, 5, callbacks=[keep, EMAWeightAveraging(decay=0.5)])
    expected = keep.kept[0]
    for parameters in keep.kept[1:]:
        expected = 0.5 * expected + 0.5 * parameters
    assert torch.allclose(made.flat.gather(), expected)


def test_trainers_that_log_nothing(tmp_path: Path) -> None:
    bare = {"barebones": True, "logger": None, "enable_progress_bar": None}
    for options in ({"log_every_n_steps": 0}, {**bare, "enable_model_summary": None}):
        made = module()
        own = trainer(tmp_path, **{"max_steps": 3, "enable_checkpointing": None, **options})
        own.fit(made, datamodule=data())
        assert made.global_step == 3


def made_with(source: WorkerData) -> RobustDSGD:
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10), nn.LogSoftmax(1))
    return RobustDSGD(model, CWTM(f=1), SignFlip(), f=1, seed=1, data=source)


def test_data_are_given_once(tmp_path: Path) -> None:
    source = data()
    own = trainer(tmp_path, max_steps=1, enable_checkpointing=False)
    own.fit(made_with(source), datamodule=source)  # which is once
    with pytest.raises(BadRequest, match=r"has data of its own \(data=…\), and the tr"):
        trainer(tmp_path).fit(made_with(source), datamodule=data())


def test_batches_that_are_no_rounds(tmp_path: Path) -> None:
    plain = DataLoader(TensorDataset(torch.randn(8, 1, 28, 28), torch.zeros(8).long()), 2)
    with pytest.raises(BadRequest, match="a training batch is a Round of all workers, got list"):
        trainer(tmp_path).fit(made_with(data()), train_dataloaders=plain)


def test_rounds_do_not_come_again(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"Trainer\(overfit_batches=2\): no two rounds"):
        fit(module(), tmp_path, 4, overfit_batches=2)


def test_a_module_takes_as_many_momentums_as_it_is_given(tmp_path: Path) -> None:
    """As one does that was trained in other processes."""
    trained, empty = module(), module()
    fit(trained, tmp_path, 2)
    empty.load_state_dict(trained.state_dict())
    assert torch.equal(empty.momentums, trained.momentums)
