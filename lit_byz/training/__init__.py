"""Training: the LightningModule and its callbacks."""

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
