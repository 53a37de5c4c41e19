"""Lightning's own trainer, callbacks and loggers around the module."""

import csv
import runpy
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lightning
import mlflow
import optuna
import pytest
import torch
from lightning.pytorch.callbacks import (
    Callback,
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
)
from lightning.pytorch.loggers import CSVLogger
from optuna_integration import PyTorchLightningPruningCallback
from torch import nn
from torch.utils.data import DataLoader

from lit_byz.attacks import FOE, Mimic
from lit_byz.errors import BadRequest
from lit_byz.models import MODELS, initialise
from lit_byz.training import BestParameters, RobustDSGD, TrainSettings, WorkerData
from tests.training._setup import arc_server

EXAMPLES = Path(__file__).parents[2] / "examples"


class Layers(nn.Module):
    """Every kind of layer that is replaced or changed while it is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4, momentum=0.3)
        self.drop = nn.Dropout(0.4)
        self.head = nn.Linear(4 * 26 * 26, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(torch.relu(self.norm(self.conv(x)))).flatten(1))  # type: ignore[no-any-return]


def data() -> WorkerData:
    return WorkerData("digits", "extreme", workers=5, batch_size=40, seed=1)


def module(model: nn.Module | None = None, attack: Any = None, **settings: Any) -> RobustDSGD:
    made = initialise(MODELS["logreg"], seed=0) if model is None else model
    return RobustDSGD(made, arc_server(), attack or FOE(), 1, TrainSettings(**settings), seed=1)


def trainer(folder: Path, callbacks: Sequence[Callback] = (), **options: Any) -> lightning.Trainer:
    usual: dict[str, Any] = {"max_steps": 12, "logger": False, "enable_progress_bar": False}
    usual |= {"accelerator": "cpu", "enable_model_summary": False, "default_root_dir": folder}
    return lightning.Trainer(callbacks=list(callbacks), **{**usual, **options})


@pytest.fixture(autouse=True)
def _no_advice() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def _mlflow_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lightning's logger sets MLflow's store for the whole process and all that it starts."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    yield
    mlflow.set_tracking_uri(None)


@pytest.mark.slow
@pytest.mark.usefixtures("_mlflow_as_before")
def test_the_example(tmp_path: Path) -> None:
    main = runpy.run_path(str(EXAMPLES / "stock_trainer.py"))["main"]
    accuracy = main(tmp_path)
    assert accuracy > 0.6
    (tmp_path / "again").mkdir()
    assert main(tmp_path / "again") == accuracy
    (table,) = tmp_path.glob("lightning_logs/*/metrics.csv")
    rows = list(csv.DictReader(table.open()))
    rates = {int(row["step"]): float(row["lr-SGD"]) for row in rows if row["lr-SGD"]}
    assert rates[119] == 0.2
    assert rates[129] == pytest.approx(0.02)
    assert sum(bool(row["test/accuracy"]) for row in rows) >= 8
    assert (tmp_path / "mlflow.db").exists()


def test_a_run_without_any_setting_is_evaluated(tmp_path: Path) -> None:
    """Every epoch of rounds, and after the last step."""
    seen: list[tuple[int, float]] = []

    class Keep(Callback):
        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if not trainer.sanity_checking:
                seen.append((trainer.global_step, float(trainer.callback_metrics["test/accuracy"])))

    made, source = module(), data()
    own = trainer(tmp_path, [Keep()], enable_checkpointing=False)
    own.fit(made, datamodule=source)
    epoch = len(source.train_dataloader())
    assert [step for step, _ in seen] == [epoch, 12]
    assert seen[-1][1] == made.evaluate()[0]
    (found,) = own.validate(made, datamodule=source, verbose=False)
    assert found["test/accuracy"] == seen[-1][1]
    (tested,) = own.test(made, datamodule=source, verbose=False)
    assert tested == found


@pytest.mark.parametrize(
    "stop", [3, *(pytest.param(stop, marks=pytest.mark.slow) for stop in (8, 10))]
)
def test_resuming_from_lightnings_own_checkpoint_gives_the_same_bits(
    stop: int, tmp_path: Path
) -> None:
    """In the middle of an epoch of rounds, at its end, and where an evaluation is due."""
    options = {"val_check_interval": 5, "check_val_every_n_epoch": None}
    whole, half, rest = (module(attack=Mimic(warmup=5)) for _ in range(3))
    trainer(tmp_path, **options).fit(whole, datamodule=data())
    kept = ModelCheckpoint(tmp_path, every_n_train_steps=stop, save_top_k=-1, filename="{step}")
    trainer(tmp_path, [kept], max_steps=stop, **options).fit(half, datamodule=data())
    path = tmp_path / f"step={stop}.ckpt"
    trainer(tmp_path, **options).fit(rest, datamodule=data(), ckpt_path=path, weights_only=True)
    assert rest.global_step == whole.global_step == 12
    assert torch.equal(rest.flat.gather(), whole.flat.gather())
    assert torch.equal(rest.momentums, whole.momentums)
    assert rest.evaluate() == whole.evaluate()


def test_early_stopping_and_the_best_checkpoint(tmp_path: Path) -> None:
    best = ModelCheckpoint(tmp_path, monitor="test/accuracy", mode="max")
    stop = EarlyStopping(monitor="test/accuracy", mode="max", patience=1, min_delta=2.0)
    options = {"val_check_interval": 2, "check_val_every_n_epoch": None}
    own = trainer(tmp_path, [best, stop], **options)
    own.fit(module(), datamodule=data())
    assert own.global_step == 4
    content = torch.load(best.best_model_path, weights_only=True)
    assert content["hyper_parameters"]["f"] == 1
    again = RobustDSGD.load_from_checkpoint(
        best.best_model_path, model=MODELS["logreg"](), server=arc_server(), attack=FOE()
    )
    assert again.settings == TrainSettings()
    assert again.seed == 1
    (found,) = own.validate(again, datamodule=data(), verbose=False)
    assert found["test/accuracy"] == pytest.approx(float(best.best_model_score or 0))


def test_the_best_parameters_survive_an_interruption(tmp_path: Path) -> None:
    """They are part of the checkpoint: the best may lie before it."""
    options = {"val_check_interval": 2, "check_val_every_n_epoch": None}
    kept = ModelCheckpoint(tmp_path, every_n_train_steps=7, save_top_k=-1, filename="{step}")
    first, second = BestParameters(), BestParameters()
    trainer(tmp_path, [first, kept], **options).fit(module(lr=2.0), datamodule=data())
    path = tmp_path / "step=7.ckpt"
    again = trainer(tmp_path, [second], **options)
    again.fit(module(lr=2.0), datamodule=data(), ckpt_path=path, weights_only=True)
    assert first.accuracy == second.accuracy > 0
    assert all(torch.equal(first.parameters[k], second.parameters[k]) for k in first.parameters)


def test_optuna_prunes(tmp_path: Path) -> None:
    def objective(trial: optuna.Trial) -> float:
        lr = [0.1, 1e-9][trial.number]
        pruning = PyTorchLightningPruningCallback(trial, monitor="test/accuracy")
        options = {"val_check_interval": 3, "check_val_every_n_epoch": None}
        own = trainer(tmp_path, [pruning], enable_checkpointing=False, **options)
        own.fit(module(lr=lr), datamodule=data())
        return float(own.callback_metrics["test/accuracy"])

    pruner = optuna.pruners.MedianPruner(n_startup_trials=1)
    study = optuna.create_study(direction="maximize", pruner=pruner)
    study.optimize(objective, n_trials=2)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED"]


def test_the_learning_rate_follows_the_milestones(tmp_path: Path) -> None:
    logger = CSVLogger(tmp_path)
    callbacks = [LearningRateMonitor("step")]
    settings = {"lr": 0.05, "lr_milestones": [4, 8], "lr_values": [0.00082, 0.3]}
    own = trainer(tmp_path, callbacks, logger=logger, log_every_n_steps=1)
    own.fit(module(**settings), datamodule=data())
    rows = list(csv.DictReader((Path(logger.log_dir) / "metrics.csv").open()))
    rates = [float(row["lr-SGD"]) for row in rows if row["lr-SGD"]]
    assert rates == [0.05] * 4 + [0.00082] * 4 + [0.3] * 4


class Trip(Callback):
    """Ends a run by an error, in the middle."""

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        assert type(pl_module.model.drop) is not nn.Dropout
        if trainer.global_step == 2:
            raise RuntimeError("tripped")


@pytest.mark.parametrize("trips", [False, True])
def test_the_model_comes_back_as_it_was_given(trips: bool, tmp_path: Path) -> None:
    model = Layers()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    given = {name: (layer, type(layer)) for name, layer in model.named_modules()}
    own = trainer(tmp_path, [Trip()], max_steps=3 if trips else 1, enable_checkpointing=False)
    if trips:
        with pytest.raises(RuntimeError, match="tripped"):
            own.fit(module(model), datamodule=data())
    else:
        own.fit(module(model), datamodule=data())
    assert {name: (layer, type(layer)) for name, layer in model.named_modules()} == given
    assert model.norm.momentum == 0.3
    assert model.conv.weight.is_contiguous()
    assert not torch.equal(model.conv.weight, before["conv.weight"])
    # The statistics have followed the workers', and from now on they follow what passes through.
    followed = model.norm.running_mean.clone()
    assert not torch.equal(followed, torch.zeros(4))
    seen = int(model.norm.num_batches_tracked)
    model.train()(torch.zeros(2, 1, 28, 28))
    assert int(model.norm.num_batches_tracked) == seen + 1
    assert not torch.equal(model.norm.running_mean, followed)


def test_without_data_one_line_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"datamodule=WorkerData\(…\)"):
        trainer(tmp_path, enable_checkpointing=False).fit(module())


@pytest.mark.slow
def test_mixed_precision_leaves_the_server_in_its_own(tmp_path: Path) -> None:
    """Gradients in bfloat16; what the server adds up is not."""
    exact, mixed = module(initialise(MODELS["mlp"], seed=0)), module(initialise(MODELS["mlp"], 0))
    for made, precision in ((exact, "32-true"), (mixed, "bf16-mixed")):
        own = trainer(tmp_path, precision=precision, enable_checkpointing=False)
        own.fit(made, datamodule=data())
    assert mixed.momentums.dtype == torch.float32
    assert mixed.flat.gather().dtype == torch.float32
    # bfloat16 has eight bits: the same run, roughly.
    assert mixed.evaluate()[0] == pytest.approx(exact.evaluate()[0], abs=0.1)
    assert not torch.equal(mixed.flat.gather(), exact.flat.gather())


def test_images_held_out_are_a_second_loader_of_validation(tmp_path: Path) -> None:
    held = WorkerData("digits", "extreme", workers=5, batch_size=40, seed=1, validation=0.1)
    stop = EarlyStopping("val/accuracy", mode="max", patience=50)
    best = ModelCheckpoint(tmp_path, monitor="val/accuracy", mode="max")
    used = trainer(tmp_path, [stop, best], val_check_interval=4, check_val_every_n_epoch=None)
    made = module()
    used.fit(made, datamodule=held)
    assert {"val/accuracy", "val/loss", "test/accuracy", "test/loss"} <= set(used.callback_metrics)
    assert best.best_model_score == max(stop.best_score, best.best_model_score)
    (found,) = used.test(made, datamodule=held, verbose=False)
    assert set(found) == {"test/accuracy", "test/loss"}


def test_a_module_predicts(tmp_path: Path) -> None:
    """By itself, on the test images of its data, and on images that it is given."""
    made, source = module(), data()
    own = trainer(tmp_path, enable_checkpointing=False)
    own.fit(made, datamodule=source)
    images = source.batches.images
    found = own.predict(made, datamodule=source)
    assert found is not None
    outputs = torch.cat([out for out in found if isinstance(out, torch.Tensor)])
    labels = torch.cat([y for _, y in images.test_batches(250)])
    accuracy = float((outputs.argmax(1) == labels).double().mean())
    assert accuracy == pytest.approx(made.evaluate()[0])
    x, _ = next(images.test_batches(20))
    assert torch.equal(made.eval()(x.double()), made.model(x))
    (given,) = own.predict(made, dataloaders=DataLoader(x, batch_size=20)) or []
    assert torch.allclose(given, outputs[:20], atol=1e-6)


@pytest.mark.parametrize("attack", [None, FOE()])
def test_a_checkpoint_says_if_its_attack_is_left_out(attack: Any, tmp_path: Path) -> None:
    own = trainer(tmp_path, enable_checkpointing=False, max_steps=1)
    own.fit(module(), datamodule=data())
    own.save_checkpoint(tmp_path / "one.ckpt")
    arguments = {"model": MODELS["logreg"](), "server": arc_server(), "attack": attack}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        RobustDSGD.load_from_checkpoint(tmp_path / "one.ckpt", weights_only=True, **arguments)
    told = [str(entry.message) for entry in caught if "RobustDSGD" in str(entry.message)]
    expected = "is of a run under FOE, and no attack is given: its 1 Byzantine workers will send"
    assert [expected in line for line in told] == ([True] if attack is None else [])
