"""Training: the LightningModule and its callbacks."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lit_byz.training.callbacks import (
        AccuracyTracker,
        AfterRound,
        AttackLogger,
        BestParameters,
        DissimilarityLogger,
        RoundCheckpoint,
        StrongestDamage,
        ThresholdLogger,
        Throughput,
    )
    from lit_byz.training.data import Round, WorkerData
    from lit_byz.training.initial import InitialAccuracy
    from lit_byz.training.module import RobustDSGD
    from lit_byz.training.settings import Observation, TrainSettings
    from lit_byz.training.strategy import ShardedWorkers

__all__ = [
    "AccuracyTracker",
    "AfterRound",
    "AttackLogger",
    "BestParameters",
    "DissimilarityLogger",
    "InitialAccuracy",
    "Observation",
    "RobustDSGD",
    "Round",
    "RoundCheckpoint",
    "ShardedWorkers",
    "StrongestDamage",
    "ThresholdLogger",
    "Throughput",
    "TrainSettings",
    "WorkerData",
]
_HOMES = {
    "RobustDSGD": "module",
    "ShardedWorkers": "strategy",
    "InitialAccuracy": "initial",
    "Round": "data",
    "WorkerData": "data",
    "Observation": "settings",
    "TrainSettings": "settings",
}


def __getattr__(name: str) -> Any:
    # All of these import Lightning, which takes seconds; the choice of a gradient method does not.
    if name in __all__:
        home = _HOMES.get(name, "callbacks")
        return getattr(importlib.import_module(f"lit_byz.training.{home}"), name)
    raise AttributeError(f"module 'lit_byz.training' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
