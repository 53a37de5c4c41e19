"""Training: the LightningModule and its callbacks."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lit_byz.training.callbacks import (
        AccuracyTracker,
        AttackLogger,
        DissimilarityLogger,
        RoundCheckpoint,
        StrongestDamage,
        ThresholdLogger,
        Throughput,
    )
    from lit_byz.training.module import Observation, RobustDSGD, TrainSettings

__all__ = [
    "AccuracyTracker",
    "AttackLogger",
    "DissimilarityLogger",
    "Observation",
    "RobustDSGD",
    "RoundCheckpoint",
    "StrongestDamage",
    "ThresholdLogger",
    "Throughput",
    "TrainSettings",
]
_OF_THE_MODULE = ("Observation", "RobustDSGD", "TrainSettings")


def __getattr__(name: str) -> Any:
    # All of these import Lightning, which takes seconds; the choice of a gradient method does not.
    if name in __all__:
        home = "module" if name in _OF_THE_MODULE else "callbacks"
        return getattr(importlib.import_module(f"lit_byz.training.{home}"), name)
    raise AttributeError(f"module 'lit_byz.training' has no attribute '{name}'")
