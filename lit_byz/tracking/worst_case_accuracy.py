"""The worst case of a cell, as its runs report it themselves."""

from typing import Any

from lightning.pytorch.callbacks import Callback

from lit_byz.tracking.logger import Tracker
from lit_byz.tracking.store import Store
from lit_byz.tracking.worst_case import cell_results, write_worst_case


class WorstCaseAccuracy(Callback):
    """Keeps the worst case of a cell up to date in MLflow, as its runs end.

    A cell is a parent run; its finished runs below it count, the one that ends now included.
    """

    def __init__(self, store: Store, cell_run_id: str, seed: int, attack: str) -> None:
        self.store = store
        self.cell_run_id = cell_run_id
        self.seed = seed
        self.attack = attack

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        tracker = trainer.logger
        if not isinstance(tracker, Tracker) or "test/max_accuracy" not in tracker.history.values:
            return  # interrupted: this run has no maximum yet
        results = cell_results(self.store, self.cell_run_id, without=tracker.run_id)
        own = tracker.history.values["test/max_accuracy"][-1]
        write_worst_case(self.store, self.cell_run_id, [*results, (self.seed, self.attack, own)])
