"""Callbacks of the sweeps that are disturbed, told by the environment what to do.

Callbacks are a part of a run's identity, their variables are not: a sweep that takes its time is
the same as one that does not.
"""

import os
import time
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback

from lit_byz.tracking import logger

# Steps are written soon: wherever a fault strikes, the store is ahead of checkpoints. Not at once:
# a process that is stopped between its look at the lease and a write still does that one.
logger.LIVE, logger.SHARE = 0.25, 1.0
SECONDS = "LIT_BYZ_PACE_SECONDS"  # that every step takes longer
FOLDER = "LIT_BYZ_PACE_FOLDER"  # in which every process notes its steps
RECORD = 64  # bytes: the run's id, the step's number, a time that no clock's jump changes
# A file there: how many steps all runs together, and how many each of them, may take, and the
# number of the process that says so.
GATE = "gate"
WAITS = ".waits"  # follows the number of a process that waits at the gate


def steps_in(folder: Path) -> int:
    """How many steps all processes have noted."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.name.isdigit()) // RECORD


class Pace(Callback):
    """A note of every step, in a file with the process's number; then a pause.

    A run that has taken as many steps as it may waits: what strikes then, or soon after, strikes
    the same on a slow machine and on a fast one.
    """

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        folder = os.environ.get(FOLDER)
        if folder is not None:
            step = int(pl_module.global_step)
            run = trainer.logger.run_id
            _note(Path(folder), f"{run!s:>32} {step:9d} {time.monotonic():20.6f}\n")
            _wait_at_the_gate(Path(folder), step)
        time.sleep(float(os.environ.get(SECONDS, "0")))


def _note(folder: Path, record: str) -> None:
    note = os.open(folder / str(os.getpid()), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(note, record.encode())
    os.close(note)


def _wait_at_the_gate(folder: Path, step: int) -> None:
    sign = folder / f"{os.getpid()}{WAITS}"
    while _is_closed(folder, step):
        sign.touch()
        time.sleep(0.005)
    sign.unlink(missing_ok=True)


def _is_closed(folder: Path, step: int) -> bool:
    try:
        together, each, keeper = (folder / GATE).read_text().split()
    except FileNotFoundError:
        return False
    if not Path(f"/proc/{keeper}").exists():
        return False  # nobody is left to open it
    return step >= float(each) or steps_in(folder) >= float(together)


class Poison(Callback):
    """A model that is lost from one step on: the loss is NaN, and so is what workers send."""

    def __init__(self, step: int = 25) -> None:
        self.step = step

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        if pl_module.global_step == self.step:
            with torch.no_grad():
                for parameter in pl_module.model.parameters():
                    parameter.fill_(torch.nan)
