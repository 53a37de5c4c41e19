"""Ctrl-C and SIGTERM: finish the step, save, stop."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from lightning.pytorch.callbacks import Callback

from lit_byz.training import RoundCheckpoint

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopOnSignal(Callback):
    """Ends a run at the next step's end, with a checkpoint; a second signal ends it at once."""

    def __init__(self, checkpoint: RoundCheckpoint) -> None:
        self.checkpoint = checkpoint
        self.requested: int | None = None
        self.started_at = 0

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals here; only a process's main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in SIGNALS}
        for number in SIGNALS:
            signal.signal(number, self._note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested is not None:
            raise KeyboardInterrupt
        self.requested = number

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.started_at = pl_module.global_step

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        if self.requested is not None and pl_module.global_step < pl_module.settings.steps:
            self.checkpoint.save(trainer)
            trainer.should_stop = True
