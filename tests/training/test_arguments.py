"""What RobustDSGD and its settings refuse: one line, before anything is computed."""

import warnings
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import pytest
from lightning.pytorch.callbacks import StochasticWeightAveraging

from lit_byz.attacks import NoAttack, SignFlip
from lit_byz.robust import ARC, CWTM, NNM, Average, RobustAggregator
from lit_byz.training import RobustDSGD, TrainSettings, WorkerData
from tests.training._models import make
from tests.training._setup import arc_server, make_batches, run


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"steps": 0}, ValueError, "steps must be an int >= 1, got 0"),
        ({"steps": 2.0}, TypeError, "steps must be an int >= 1, got 2.0"),
        ({"lr": 0.0}, ValueError, "lr must be a number in (0, inf], got 0.0"),
        ({"lr": "0.1"}, TypeError, "lr must be a number in (0, inf], got '0.1'"),
        ({"lr_decay": 2.0}, ValueError, "lr_decay must be a number in (0, 1], got 2.0"),
        ({"lr_milestones": [3, 3]}, ValueError, "lr_milestones must be increasing, got [3, 3]"),
        ({"lr_milestones": [0]}, ValueError, "lr_milestones must be an int >= 1, got 0"),
        (
            {"lr_milestones": [3], "lr_values": [0.1, 0.2]},
            ValueError,
            "lr_values must be empty, or have a value for each of [3], got [0.1, 0.2]",
        ),
        ({"momentum": 1.5}, ValueError, "momentum must be a number in [0, 1), got 1.5"),
        ({"momentum": 1}, ValueError, "momentum must be a number in [0, 1), got 1"),
        ({"momentum": -0.1}, ValueError, "momentum must be a number in [0, 1), got -0.1"),
        ({"weight_decay": -1.0}, ValueError, "weight_decay must be a number in [0, inf], got -1.0"),
        (
            {"weight_decay_mode": "nope"},
            ValueError,
            "weight_decay_mode must be one of server, worker, got 'nope'",
        ),
        ({"loss": "mse"}, ValueError, "loss must be one of auto, nll, cross_entropy, got 'mse'"),
        ({"full_batch": 1}, TypeError, "full_batch must be a bool, got 1"),
        ({"local_steps": 0}, ValueError, "local_steps must be an int >= 1, got 0"),
        ({"local_lr": 0}, ValueError, "local_lr must be a number in (0, inf], got 0"),
        (
            {"gradients": "nope"},
            ValueError,
            "gradients must be one of auto, vmap, joined, loop, got 'nope'",
        ),
        (
            {"output": "rndom"},
            ValueError,
            "output must be one of last, random_iterate, got 'rndom'",
        ),
    ],
)
def test_settings(settings: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as raised:
        TrainSettings(**settings)
    assert str(raised.value) == f"TrainSettings: {message}"
    with pytest.raises(kind):
        RobustDSGD(make("logreg"), arc_server(), settings=settings)


def test_numbers_of_numpy_are_pythons_in_a_checkpoint() -> None:
    made = TrainSettings(steps=np.int64(7), lr_milestones=[np.int64(2)])  # type: ignore[list-item]
    assert (type(made.steps), type(made.lr_milestones[0])) == (int, int)
    module = RobustDSGD(make("logreg"), arc_server(), f=np.int64(1))  # type: ignore[arg-type]
    assert type(module.hparams["f"]) is int


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"f": -1}, ValueError, "f must be an int >= 0, got -1"),
        ({"f": 1.0}, TypeError, "f must be an int >= 0, got 1.0"),
        ({"seed": -1}, ValueError, "seed must be an int >= 0, got -1"),
        ({"model": "mlp"}, TypeError, "model must be an nn.Module, got 'mlp'"),
        (
            {"server": "cwtm"},
            TypeError,
            "server must be a RobustAggregator, or a rule alone, got a str",
        ),
        (
            {"attack": "sf"},
            TypeError,
            "attack must be an Attack such as SignFlip(), or None, got 'sf'",
        ),
        ({"settings": 5}, TypeError, "settings must be TrainSettings or a mapping, got 5"),
    ],
)
def test_the_module(arguments: dict[str, Any], kind: type[Exception], message: str) -> None:
    usual: dict[str, Any] = {"model": make("logreg"), "server": arc_server()}
    with pytest.raises(kind) as raised:
        RobustDSGD(**{**usual, **arguments})
    assert str(raised.value) == f"RobustDSGD: {message}"


def test_a_rule_by_itself_is_a_server() -> None:
    module = RobustDSGD(make("logreg"), CWTM(f=1), SignFlip(), f=1)
    assert module.server == RobustAggregator(CWTM(f=1))
    assert isinstance(RobustDSGD(make("logreg"), Average()).attack, NoAttack)
    with pytest.raises(TypeError, match="or a rule alone, got a NNM"):
        RobustDSGD(make("logreg"), NNM(f=1))  # type: ignore[arg-type]


def test_attackers_are_a_minority() -> None:
    data = WorkerData.of(make_batches(workers=5))
    module = RobustDSGD(make("logreg"), Average(), SignFlip(), f=5, data=data)
    with pytest.raises(ValueError, match="RobustDSGD: f must satisfy 2f < n, got f=5, n=10 worker"):
        run(module)


def test_a_callback_may_not_replace_the_schedule(tmp_path: Path) -> None:
    server = RobustAggregator(CWTM(f=1), clip=ARC(f=1))
    data = WorkerData.of(make_batches())
    module = RobustDSGD(make("logreg"), server, SignFlip(), f=1, data=data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            max_steps=4,
            accelerator="cpu",
            callbacks=[StochasticWeightAveraging(swa_lrs=0.01, swa_epoch_start=1)],
            default_root_dir=tmp_path,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
        )
        with pytest.raises(TypeError, match=r"schedule must stay .* replaced it by SWALR, as S"):
            trainer.fit(module)
