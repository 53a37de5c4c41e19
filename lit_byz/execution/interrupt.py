"""Stopping early: by a signal, or because the result is known to be good enough."""

import contextlib
import multiprocessing
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

from lit_byz.execution.signals import HEARD, handlers_kept, in_main_thread
from lit_byz.tracking.logger import Tracker
from lit_byz.tracking.patience import Patience
from lit_byz.training import AccuracyTracker, AfterRound, RoundCheckpoint


class StopOnSignal(AfterRound):
    """Ends a run at the next step's end, with a checkpoint; a second signal ends it at once.

    ``patience`` with the store is told of one, as somebody may be waiting who would not look here.
    """

    def __init__(self, checkpoint: RoundCheckpoint, patience: Patience | None = None) -> None:
        super().__init__(checkpoint.eval_every)
        self.checkpoint = checkpoint
        self.patience = patience
        self.requested: int | None = None
        self.impatient = False
        self.started_at = 0

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals here; only a process's main thread can."""
        if not in_main_thread():
            yield
            return
        with handlers_kept():
            self._install()
            if self.patience is not None and self.patience.hurried:
                self.requested = signal.SIGTERM  # whoever heard one while the run was being made
            yield

    @contextlib.contextmanager
    def exits(self) -> Iterator[None]:
        """Go on behind a fit that a signal ended."""
        try:
            yield
        except SystemExit as error:
            # Lightning exits with codes of its own, after SIGTERM with that of success.
            if self.requested is None:
                raise
            if self.impatient:
                raise KeyboardInterrupt from error

    def _install(self) -> None:
        if in_main_thread():
            for number in HEARD:
                # A process of a sweep ignores Ctrl-C: its main process speaks for all.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested is not None:
            # One that comes twice to a process of a sweep was sent to all, and by the main one too.
            if multiprocessing.parent_process() is not None:
                return
            self.impatient = True
            raise KeyboardInterrupt
        self.requested = number
        if self.patience is not None:
            self.patience.hurried = True

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.started_at = pl_module.global_step
        # Lightning has put its own handler of SIGTERM in place, which ends a run without a save.
        self._install()

    def after_round(self, trainer: Any, module: Any) -> None:
        requested = module.any_process(self.requested is not None)
        if requested and module.global_step < trainer.max_steps:
            self.checkpoint.stop(trainer)


class StopAbove(AfterRound):
    """Ends a run, with a checkpoint, once its maximal accuracy has reached a bound.

    ``judged_on`` says which accuracy: on the images ``test`` or ``val``.
    """

    def __init__(
        self,
        bound: float | None,
        accuracy: AccuracyTracker,
        checkpoint: RoundCheckpoint,
        judged_on: str = "test",
    ) -> None:
        super().__init__(checkpoint.eval_every)
        self.bound = bound
        self.judged_on = judged_on
        self.accuracy = accuracy
        self.checkpoint = checkpoint
        self.reached = False

    def after_round(self, trainer: Any, module: Any) -> None:
        if self.bound is None or module.global_step >= trainer.max_steps:
            return
        if self.accuracy.max_on(self.judged_on) >= self.bound:
            self.reached = True
            self.checkpoint.stop(trainer)


class StopWithoutStore(AfterRound):
    """Ends a run, with a checkpoint, once its store has been away for too long.

    A run that comes to its end meanwhile is saved as well. What went wrong while metrics were
    written in the background is raised here.
    """

    def __init__(self, tracker: Tracker, checkpoint: RoundCheckpoint) -> None:
        super().__init__(checkpoint.eval_every)
        self.tracker = tracker
        self.checkpoint = checkpoint
        self.stopped = False

    def after_round(self, trainer: Any, module: Any) -> None:
        self.tracker.check()
        if module.global_step >= trainer.max_steps:
            if module.any_process(self.tracker.away):
                self.checkpoint.save(trainer)
        elif module.any_process(self.tracker.gone):
            self.stopped = True
            self.checkpoint.stop(trainer)
