"""A Lightning logger that writes to MLflow in batches, and never writes a step twice."""

import time
from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only

from lit_byz.tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import Metric

# MLflow takes at most this many metrics in one write.
METRICS_AT_ONCE = 1000
MOST_BUFFERED = 20_000
# Lightning adds it to what is logged; rounds have none that would mean anything.
EPOCH = "epoch"


class History:
    """Every metric of a run in memory: name to steps and values."""

    def __init__(self) -> None:
        self.steps: dict[str, list[int]] = {}
        self.values: dict[str, list[float]] = {}

    def add(self, name: str, step: int, value: float) -> bool:
        """Whether that was new: a metric has one value per step, the first one given."""
        steps = self.steps.setdefault(name, [])
        if steps and step <= steps[-1]:
            return False
        steps.append(step)
        self.values.setdefault(name, []).append(value)
        return True

    def pairs(self) -> dict[str, list[tuple[int, float]]]:
        return {k: list(zip(v, self.values[k], strict=True)) for k, v in self.steps.items()}

    def load(self, pairs: Mapping[str, list[tuple[int, float]]]) -> None:
        self.steps = {name: [int(step) for step, _ in points] for name, points in pairs.items()}
        self.values = {name: [float(v) for _, v in points] for name, points in pairs.items()}


class KeepHistory(Callback):
    """Puts a tracker's history into checkpoints, so that a resumed run has all of it."""

    def __init__(self, tracker: "Tracker") -> None:
        self.tracker = tracker

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        checkpoint["history"] = self.tracker.history.pairs()

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self.tracker.restore(checkpoint["history"])


class Tracker(Logger):
    """Keeps metrics in memory and writes them out at checkpoints, at the end and on failure.

    With no store it only keeps them. A run that is taken up again has some steps in the store
    already; they are asked for once, and not written again.
    """

    def __init__(self, store: Store | None = None, run_id: str | None = None) -> None:
        super().__init__()
        self.store = store
        self.run_id = run_id
        self.history = History()
        self._waiting: list[Metric] = []
        self._written: dict[str, int] | None = None
        self.seconds = 0.0  # spent on writing

    @property
    def name(self) -> str:
        return "lit_byz"

    @property
    def version(self) -> str | None:
        return self.run_id

    def log_hyperparams(
        self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any
    ) -> None:
        """Nothing: the run's whole config is written when it is opened."""

    def write_settings(self, plain: Mapping[str, Any]) -> None:
        """Write settings, flat."""
        if self.store is not None and self.run_id is not None:
            self.store.write_params(self.run_id, plain)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        begin = time.perf_counter()
        at = step or 0
        own = {k: float(v) for k, v in metrics.items() if k != EPOCH}
        new = {k: v for k, v in own.items() if self.history.add(k, at, v)}
        self._wait((key, at, value) for key, value in new.items())
        self.seconds += time.perf_counter() - begin
        if len(self._waiting) >= MOST_BUFFERED:
            self.save()

    def restore(self, pairs: Mapping[str, list[tuple[int, float]]]) -> None:
        """Take over the history of a checkpoint.

        All of it waits to be written: the process that made the checkpoint may have been killed
        before it wrote, and a new run that goes on from another's checkpoint has nothing yet.
        """
        self.history.load(pairs)
        self._wait((key, step, value) for key, points in pairs.items() for step, value in points)

    def _wait(self, points: Iterable[tuple[str, int, float]]) -> None:
        if self.store is None:
            return
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._waiting += [Metric(key, value, now, step) for key, step, value in points]

    def save(self) -> None:
        """Write what waits."""
        if self.store is None or self.run_id is None or not self._waiting:
            return
        begin = time.perf_counter()
        if self._written is None:
            self._written = self._find_written()
        new = [m for m in self._waiting if m.step > self._written.get(m.key, -1)]
        for start in range(0, len(new), METRICS_AT_ONCE):
            batch = new[start : start + METRICS_AT_ONCE]
            self.store.client.log_batch(self.run_id, metrics=batch, synchronous=True)
        for metric in new:
            self._written[metric.key] = max(metric.step, self._written.get(metric.key, -1))
        self._waiting.clear()
        self.seconds += time.perf_counter() - begin

    def _find_written(self) -> dict[str, int]:
        """The last step of each metric that the store has of this run."""
        assert self.store is not None
        assert self.run_id is not None
        keys = self.store.client.get_run(self.run_id).data.metrics
        found = {key: self.store.history(self.run_id, key) for key in keys}
        return {key: points[-1][0] for key, points in found.items() if points}

    def finalize(self, status: str) -> None:
        self.save()

    def save_file(self, path: Path, folder: str | None = None) -> None:
        """Keep a file as an artifact of the run."""
        if self.store is not None and self.run_id is not None:
            self.store.client.log_artifact(self.run_id, str(path), folder)
