"""Callbacks of the sweeps that are disturbed, told by the environment what to do.

Callbacks are a part of a run's identity, their variables are not: a sweep that takes its time is
the same as one that does not.
"""

import os
import time
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback

from lit_byz.tracking import logger

# Steps are written soon: wherever a fault strikes, the store is ahead of checkpoints. Not at once:
# a process that is stopped between its look at the lease and a write still does that one.
logger.LIVE, logger.SHARE = 0.5, 1.0
SECONDS = "LIT_BYZ_PACE_SECONDS"  # that every step takes longer
FOLDER = "LIT_BYZ_PACE_FOLDER"  # in which every process notes its steps


class Pace(Callback):
    """A byte for every step, in a file with the process's number; then a pause."""

    def on_train_batch_end(self, *_: Any) -> None:
        folder = os.environ.get(FOLDER)
        if folder is not None:
            note = os.open(f"{folder}/{os.getpid()}", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
            os.write(note, b".")
            os.close(note)
        time.sleep(float(os.environ.get(SECONDS, "0")))


class Poison(Callback):
    """A model that is lost from one step on: the loss is NaN, and so is what workers send."""

    def __init__(self, step: int = 25) -> None:
        self.step = step

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        if pl_module.global_step == self.step:
            with torch.no_grad():
                for parameter in pl_module.model.parameters():
                    parameter.fill_(torch.nan)
