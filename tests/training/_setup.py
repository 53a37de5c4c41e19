"""A simulation on the digits, and a real trainer to run it."""

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import lightning
import torch
from lightning.pytorch.callbacks import Callback
from torch import nn

from lit_byz.attacks import Attack
from lit_byz.data import DATASETS, PARTITIONS, ImageData, WorkerBatches
from lit_byz.robust import ARC, CWTM, NNM, RobustAggregator
from lit_byz.training import RobustDSGD, TrainSettings, WorkerData

Precision = Literal["32-true", "64-true"]


@cache
def digits() -> ImageData:
    return DATASETS["digits"]().load()


def make_batches(workers: int = 5, size: int = 6, partition: str = "extreme") -> WorkerBatches:
    parts = PARTITIONS[partition]()(digits().train_labels, workers, 1)
    return WorkerBatches(digits(), parts, size, seed=1)


def arc_server(f: int = 1) -> RobustAggregator:
    return RobustAggregator(CWTM(f), clip=ARC(f), mix=NNM(f))


def simulation(
    model: nn.Module,
    attack: Attack | None = None,
    f: int = 1,
    server: RobustAggregator | None = None,
    batches: WorkerBatches | None = None,
    seed: int = 1,
    **settings: Any,
) -> RobustDSGD:
    return RobustDSGD(
        model,
        arc_server(f) if server is None else server,
        attack,
        f=f,
        settings=TrainSettings(**settings),
        seed=seed,
        data=WorkerData.of(make_batches() if batches is None else batches),
    )


def run(
    module: RobustDSGD,
    precision: Precision = "64-true",
    callbacks: Sequence[Callback] = (),
) -> RobustDSGD:
    """Train for all the module's steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            max_steps=module.settings.steps,
            accelerator="cpu",
            precision=precision,
            logger=False,
            callbacks=list(callbacks),
            limit_val_batches=0,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(module)
    return module


class Watch(Callback):
    """Keeps what every step looked like, and the parameters after it."""

    def __init__(self) -> None:
        self.parameters: list[torch.Tensor] = []
        self.observed: list[Any] = []
        self.honest: list[torch.Tensor] = []

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        self.parameters.append(
            torch.cat([p.detach().flatten() for p in pl_module.model.parameters()])
        )
        self.observed.append(pl_module.observed)
        views = pl_module.flat.views(pl_module.honest)
        self.honest.append(torch.cat([view.flatten(1) for view in views], dim=1))
