"""A Lightning logger that writes to MLflow in batches, and never writes a step twice."""

import contextlib
import threading
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only

from lit_byz.tracking.claims import Claim
from lit_byz.tracking.history import History, same
from lit_byz.tracking.patience import LONG, SHORT, in_background, is_away
from lit_byz.tracking.renamed import OLD_THRESHOLD, THRESHOLD
from lit_byz.tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import Metric

# MLflow takes at most this many metrics in one write.
METRICS_AT_ONCE = 1000
MOST_BUFFERED = 20_000
# Seconds of a run after which what waits is written, for those who watch it. A store that is slow
# is asked less often: a write takes at most this share of the time between two.
LIVE, SHARE = 3.0, 0.01
# Seconds that training waits for a write: one that takes longer goes on beside it. A store that
# has not answered a question for so long counts as away, though no error says so yet.
MOST_WAIT, SILENT = 5.0, 10.0
# More than these do not wait for a store that is away: about 300 MB.
MOST_WAITING = 2_000_000
# Lightning adds it to what is logged; rounds have none that would mean anything.
EPOCH = "epoch"
# What a clock says: no two attempts at a step agree on it.
BY_CLOCK = "speed/"


class Tracker(Logger):
    """Keeps metrics in memory and writes them out every few seconds, and at checkpoints.

    With no store it only keeps them. A run that is taken up again has some steps in the store
    already, also such that its checkpoint has not; they are asked for once, and not written again.
    Only where such a step has another value now (the run goes on on another kind of processor) the
    new one is written beside the old, and counts: see :meth:`Store.history`. Writing is done in the
    background, and waited for only for a moment: where the store hangs or is away the run goes on,
    and what waits is written, in order, once the store is back; a process that ends before has it
    in the run's checkpoint. Nothing is written without the ``claim``.
    """

    def __init__(
        self, store: Store | None = None, run_id: str | None = None, claim: Claim | None = None
    ) -> None:
        super().__init__()
        self.store = store
        self.run_id = run_id
        self.claim = claim
        self.history = History()
        self._waiting: list[Metric] = []
        self._written: dict[str, int] | None = None
        # Of a run that is taken up again, what the store has and its history has not, or otherwise:
        # the step's value, and when it was written.
        self._other: dict[tuple[str, int], tuple[float, int]] = {}
        self._last_write, self._price = time.monotonic(), 0.0
        # Whether nobody writes in the background, whether who does has made an attempt, and since
        # when he waits for the store's answer.
        self._idle, self._tried = threading.Event(), threading.Event()
        self._idle.set()
        self._asked: float | None = None
        self._trouble: Exception | None = None
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
            self._check_claim(self.store)
            self.store.write_params(self.run_id, plain)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        begin = time.perf_counter()
        at = step or 0
        own = {k: float(v) for k, v in metrics.items() if k != EPOCH}
        new = {k: v for k, v in own.items() if self.history.add(k, at, v)}
        if THRESHOLD in new and OLD_THRESHOLD in self.history.steps.keys() - new.keys():
            # A run that began under the old name does not end half under it.
            self.history.add(OLD_THRESHOLD, at, new[THRESHOLD])
            new[OLD_THRESHOLD] = new[THRESHOLD]
        self._wait((key, at, value) for key, value in new.items())
        self.seconds += time.perf_counter() - begin
        pause = max(LIVE, self._price / SHARE)
        if len(self._waiting) >= MOST_BUFFERED or time.monotonic() - self._last_write >= pause:
            self.save()

    def restore(self, pairs: Mapping[str, list[tuple[int, float]]]) -> None:
        """Take over the history of a checkpoint.

        All of it waits to be written: the process that made the checkpoint may have been killed
        before it wrote, and a new run that goes on from another's checkpoint has nothing yet.
        """
        if OLD_THRESHOLD in pairs:
            pairs = {THRESHOLD: pairs[OLD_THRESHOLD], **pairs}
        self.history.load(pairs)
        self._wait((key, step, value) for key, points in pairs.items() for step, value in points)

    def _wait(self, points: Iterable[tuple[str, int, float]]) -> None:
        if self.store is None:
            return
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._waiting += [Metric(key, value, now, step) for key, step, value in points]

    def save(self) -> None:
        """Have what waits written; one that takes long is left to the background."""
        self.check()
        if self.store is None or self.run_id is None or not self._waiting:
            return
        if not self._idle.is_set():
            self.store.patience.waiting = len(self._waiting)
            return
        begin = time.perf_counter()
        batches = 1 + len(self._waiting) // METRICS_AT_ONCE
        self._begin_to_write()
        self._tried.wait(MOST_WAIT)
        took = time.perf_counter() - begin
        self.seconds += took
        # What is written has its price whenever that is; what counts is that of one write more.
        self._last_write, self._price = time.monotonic(), took / batches
        self.check()

    def settle(self) -> None:
        """Write what waits, and wait for the store if it is away; not for longer than patience."""
        if self.store is None or self.run_id is None:
            return
        patience = self.store.patience
        while self._waiting or not self._idle.is_set():
            if self._idle.is_set():
                self._begin_to_write()
            self._idle.wait(0.2)
            self.check()
            if patience.over:
                raise patience.gone()

    def check(self) -> None:
        """Raise what went wrong in the background, and see whether the store answers."""
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise trouble
        asked = self._asked
        if self.store is not None and asked is not None:
            most = MOST_WAIT if self.store.patience.hurried else SILENT
            if time.monotonic() - asked > most:
                self._note(TimeoutError("it does not answer"))

    @property
    def away(self) -> bool:
        """Whether the store has not got everything because it is away."""
        return self.store is not None and self.store.patience.away

    @property
    def gone(self) -> bool:
        """Whether the store has been away for too long, or more waits than may."""
        full = len(self._waiting) > MOST_WAITING
        return self.store is not None and (self.store.patience.over or (self.away and full))

    def _begin_to_write(self) -> None:
        self._idle.clear()
        self._tried.clear()
        in_background("lit_byz metrics", self._write_later)

    def _write_later(self) -> None:
        try:
            self._write_patiently()
        except Exception as error:
            self._trouble = error  # the run hears of it at its next step
        finally:
            self._idle.set()
            self._tried.set()

    def _write_patiently(self) -> None:
        assert self.store is not None
        patience, pause = self.store.patience, SHORT
        while True:
            try:
                self._write()
            except Exception as error:
                if not is_away(error):
                    raise
                self._note(error)
            else:
                patience.waiting = 0
                return
            self._tried.set()
            if patience.over:
                return
            patience.sleep(pause)
            pause = min(LONG, 2 * pause)

    def _note(self, error: Exception) -> None:
        assert self.store is not None
        self.store.patience.waiting = len(self._waiting)
        self.store.patience.note(error)

    def _write(self) -> None:
        """Write what waits, in order. A batch that is written again, as it is, is there once."""
        assert self.store is not None
        assert self.run_id is not None
        with self._asking():
            if self._written is None:
                self._written = self._find_written()
            while self._waiting:
                self._asked = time.monotonic()
                if self.claim is not None:
                    self.claim.check()
                batch = self._waiting[:METRICS_AT_ONCE]
                new = [later for m in batch if (later := self._new(m)) is not None]
                if new:
                    self.store.asked_once.log_batch(self.run_id, metrics=new, synchronous=True)
                    self.store.patience.back()
                for metric in new:
                    self._other.pop((metric.key, metric.step), None)
                    self._written[metric.key] = max(metric.step, self._written.get(metric.key, -1))
                del self._waiting[: len(batch)]

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        self._asked = time.monotonic()
        try:
            yield
        finally:
            self._asked = None

    def _new(self, metric: "Metric") -> "Metric | None":
        """What has to be written of a metric, if anything has."""
        from mlflow.entities import Metric

        assert self._written is not None
        if metric.step > self._written.get(metric.key, -1):
            return metric
        value, at = self._other.get((metric.key, metric.step), (metric.value, 0))
        if same(value, metric.value) or metric.key.startswith(BY_CLOCK):
            return None
        # Later than the other, also where this machine's clock is behind.
        return Metric(metric.key, metric.value, max(metric.timestamp, at + 1), metric.step)

    def _find_written(self) -> dict[str, int]:
        """The last step of each metric that the store has of this run."""
        assert self.store is not None
        assert self.run_id is not None
        client = self.store.asked_once
        found = {}
        for key in client.get_run(self.run_id).data.metrics:
            self._asked = time.monotonic()
            found[key] = client.get_metric_history(self.run_id, key)
        for key, points in found.items():
            known = dict(self.history.pairs_of(key))
            last = {p.step: (p.value, p.timestamp) for p in sorted(points, key=_time)}
            known = {s: v for s, v in known.items() if s in last and same(last[s][0], v)}
            self._other |= {(key, s): last[s] for s in last.keys() - known.keys()}
        return {key: max(point.step for point in points) for key, points in found.items() if points}

    def finalize(self, status: str) -> None:
        self.save()

    def save_file(self, path: Path, folder: str | None = None) -> None:
        """Keep a file as an artifact of the run."""
        if self.store is not None and self.run_id is not None:
            self._check_claim(self.store)
            self.store.client.log_artifact(self.run_id, str(path), folder)

    def _check_claim(self, store: Store) -> None:
        if self.claim is not None:
            store.patience.call(self.claim.check)


def _time(metric: "Metric") -> int:
    return int(metric.timestamp)
