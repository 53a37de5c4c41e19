"""The accuracy of the initial parameters, before any step."""

from typing import Any

from lightning.pytorch.callbacks import Callback

from lit_byz.training.callbacks import record

INITIAL = "test/initial_accuracy"


class InitialAccuracy(Callback):
    """Measures the initial parameters once, as a metric of its own.

    They are no result of training: no maximum counts them. Training does not notice: nothing is
    drawn at random, and no layer remembers. A run that goes on from a checkpoint has measured them.
    """

    def __init__(self, test_batch_size: int = 250) -> None:
        self.test_batch_size = test_batch_size

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if pl_module.global_step == 0 and trainer.loggers:
            accuracy, _ = pl_module.evaluate(self.test_batch_size)
            record(trainer, {INITIAL: accuracy}, 0)
