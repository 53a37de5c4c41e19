"""A Ray cluster that computes tasks."""

import contextlib
import logging
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lit_byz.errors import BadRequest, RunFailed
from lit_byz.execution.executor import GRACE, NextTask, Report, Stopping
from lit_byz.execution.ray_board import Board
from lit_byz.execution.ray_worker import Place, compute_remotely
from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking.outcome import Outcome


@dataclass
class RayTasks:
    """Ray core tasks, one thread each, as many at once as the cluster has CPUs.

    ``address`` is a cluster's, or None for one on this machine with ``count`` CPUs (default: all).
    The nodes of a cluster share the working directory, and the store with it unless that is a
    server. A worker that is killed loses its task, which is reported as interrupted.
    """

    address: str | None = None
    count: int | None = None

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        with self._cluster() as ray:
            board = ray.remote(num_cpus=0)(Board).remote()
            remote = ray.remote(num_cpus=1, max_retries=0)(compute_remotely)
            place = Place.here()
            running: dict[Any, Task] = {}
            patience = math.inf
            try:
                while True:
                    slots = self.count or max(1, int(ray.cluster_resources().get("CPU", 1)))
                    while len(running) < slots and (task := next_task()) is not None:
                        running[remote.remote(task, place, board)] = task
                    if not running:
                        return
                    if stopping() and patience == math.inf:
                        board.stop.remote()
                        patience = time.monotonic() + GRACE
                    if time.monotonic() > patience:
                        _cancel(ray, running)
                    done, _ = ray.wait(list(running), num_returns=len(running), timeout=0.5)
                    for progress in _progress(ray, board):
                        report(progress)
                    for reference in done:
                        report(_outcome(ray, reference, running.pop(reference)))
            finally:
                _cancel(ray, running)

    @contextlib.contextmanager
    def _cluster(self) -> Iterator[Any]:
        """Ray, connected; a connection that was there before stays."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns of it
        try:
            import ray
        except ImportError as error:
            raise BadRequest("--executor ray needs Ray: pip install 'lit_byz[ray]'") from error
        if ray.is_initialized():
            yield ray
            return
        settings: dict[str, Any] = {"address": self.address}
        if self.address is None:
            # Tasks and outcomes are small: Ray's store of objects may be about as small as it can.
            settings = {"address": "local", "num_cpus": self.count, "include_dashboard": False}
            settings["object_store_memory"] = 100_000_000
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:300]
            raise RunFailed(f"Ray cluster {settings['address']}: {reason}") from error
        try:
            yield ray
        finally:
            ray.shutdown()


def _progress(ray: Any, board: Any) -> list[Progress]:
    try:
        taken = ray.get(board.take.remote())
    except ray.exceptions.RayError:
        return []  # the board's process was killed; the tasks go on
    return [Progress(identity, *state) for identity, state in taken.items()]


def _outcome(ray: Any, reference: Any, task: Task) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayError as error:
        text = " ".join(str(getattr(error, "cause", None) or error).split())[:500]
        return Outcome(task.identity, "interrupted", error=text)
    return outcome


def _cancel(ray: Any, running: dict[Any, Task]) -> None:
    for reference in running:
        ray.cancel(reference, force=True)
