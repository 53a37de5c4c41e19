"""The parts of a run: the module of a config, the user's callbacks, a quiet Lightning."""

import contextlib
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from lit_byz.config.components import CALLBACKS, build, build_model
from lit_byz.config.compose import to_plain
from lit_byz.errors import BadRequest

if TYPE_CHECKING:
    from lightning.pytorch import Trainer
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.loggers import Logger
    from lightning.pytorch.strategies import Strategy

    from lit_byz.tracking.runs import TrackedRun
    from lit_byz.training import AccuracyTracker, RobustDSGD


def make_module(config: DictConfig) -> "RobustDSGD":
    """The LightningModule of a config, with its data; the data set is fetched if need be."""
    from lit_byz.robust import RobustAggregator
    from lit_byz.training import RobustDSGD, TrainSettings, WorkerData

    data = WorkerData(
        build("dataset", config.dataset),
        build("partition", config.partition),
        workers=config.workers.honest,
        batch_size=config.workers.batch_size,
        seed=config.seed,
        root=config.data.root,
        test_batch_size=config.data.test_batch_size,
        validation=config.data.validation,
    )
    data.setup("fit")
    server = RobustAggregator(
        build("rule", config.rule),
        clip=build("clip", config.clip),
        mix=build("mix", config.mix),
        bound_output=config.server.bound_output,
    )
    plain = to_plain(config)["train"]
    return RobustDSGD(
        build_model(config),
        server,
        build("attack", config.attack),
        f=config.workers.f,
        settings=TrainSettings(**{f.name: plain[f.name] for f in fields(TrainSettings)}),
        seed=config.seed,
        data=data,
    )


def users_callbacks(config: DictConfig) -> "list[Callback]":
    """The callbacks that ``trainer.callbacks`` names by dotted path."""
    made = []
    for entry in to_plain(config)["trainer"]["callbacks"]:
        arguments = dict(entry) if isinstance(entry, Mapping) else {"name": entry}
        name = str(arguments.pop("name", ""))
        try:
            made.append(CALLBACKS[name](**arguments))
        except TypeError as error:
            raise BadRequest(f"trainer.callbacks: {name}: {error}") from error
    return made


def observers(
    config: DictConfig, run: "TrackedRun", accuracy: "AccuracyTracker"
) -> "list[Callback]":
    """What looks on, and what it has seen into the checkpoints."""
    from lit_byz.execution.checkpoints import KeepIdentity
    from lit_byz.tracking.history import KeepHistory
    from lit_byz.training import (
        AttackLogger,
        InitialAccuracy,
        StrongestDamage,
        ThresholdLogger,
        Throughput,
    )

    found: list[Callback] = [InitialAccuracy(config.data.test_batch_size)]
    found += [ThresholdLogger(), AttackLogger(), accuracy]
    found += [Throughput(config.train.eval_every, accuracy), KeepHistory(run.tracker)]
    found.append(KeepIdentity(run.code))
    if config.tracking.strongest_every:
        found.append(StrongestDamage(config.tracking.strongest_every))
    return found


def make_trainer(
    config: DictConfig,
    callbacks: "Sequence[Callback]",
    logger: "Logger | None",
    strategy: "Strategy | str" = "auto",
) -> "Trainer":
    """Lightning's trainer for a config."""
    import lightning

    every = config.train.eval_every
    return lightning.Trainer(
        max_steps=config.train.steps,
        accelerator=config.trainer.accelerator,
        devices=config.trainer.devices,
        strategy=strategy,
        precision=config.trainer.precision,
        logger=False if logger is None else logger,
        callbacks=list(callbacks),
        val_check_interval=every,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        log_every_n_steps=every,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


@contextlib.contextmanager
def quiet_lightning() -> Iterator[None]:
    """Lightning's banners and advice are for models with data loaders and epochs."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        warnings.filterwarnings("ignore", message=".*lightning.*")
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
