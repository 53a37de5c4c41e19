"""A Ray cluster that computes tasks."""

import contextlib
import logging
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from lit_byz.errors import BadRequest, RunFailed
from lit_byz.execution.executor import GRACE, NextTask, Report, Stopping
from lit_byz.execution.ray_board import Board
from lit_byz.execution.ray_worker import Place, compute_remotely
from lit_byz.execution.signals import handlers_kept
from lit_byz.execution.tasks import Progress, Task
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.store import open_store

# How often a task is given to the cluster again after it was lost with its worker or its node.
RETRIES = 3


@dataclass
class RayTasks:
    """Ray core tasks, as many at once as the cluster has room for.

    ``address`` is a cluster's, or None for one on this machine with ``count`` CPUs (default: all).
    Where the store is a server that keeps artifacts itself, the nodes share nothing but that, and
    checkpoints travel by it. Else they share the working directory, and the store with it. A task
    that is lost with its worker or its node is tried again.
    """

    address: str | None = None
    count: int | None = None

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        with self._cluster() as ray:
            work = _Work(ray, _make_board(ray), report)
            patience = math.inf
            try:
                while True:
                    while work.has_room(self.count) and (task := next_task()) is not None:
                        work.begin(task)
                    if not work.running:
                        return
                    if stopping() and patience == math.inf:
                        work.board.stop.remote()
                        patience = time.monotonic() + GRACE
                    if time.monotonic() > patience:
                        work.cancel()
                    work.listen(again=not stopping())
            finally:
                work.cancel()

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
            with handlers_kept():
                ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:300]
            raise RunFailed(f"Ray cluster {settings['address']}: {reason}") from error
        try:
            yield ray
        finally:
            ray.shutdown()


@dataclass
class _Work:
    """The tasks that a cluster has."""

    ray: Any
    board: Any
    report: Report
    running: dict[Any, tuple[Task, int]] = field(default_factory=dict)
    _place: Place | None = None
    _per_run: tuple[int, float] = (1, 0.0)
    _asked_for: set[tuple[int, float]] = field(default_factory=set)

    def has_room(self, count: int | None) -> bool:
        cpus, gpus = self._per_run
        there = self.ray.cluster_resources()
        room = int(there.get("CPU", 1)) // cpus
        if gpus:
            room = min(room, int(there.get("GPU", 0) / gpus))
        return len(self.running) < max(1, room if count is None else count)

    def begin(self, task: Task, tries: int = 0) -> None:
        if self._place is None:
            self._place = _place_for(task)
        if self._place.folder is None:
            task = _by_the_store(task)
        asked = task.config["resources"]
        self._per_run = (asked["cpus"], asked["gpus"])
        if self._per_run not in self._asked_for:
            self._refuse_what_no_node_has(task)
            self._asked_for.add(self._per_run)
        remote = self.ray.remote(num_cpus=asked["cpus"], num_gpus=asked["gpus"], max_retries=0)(
            compute_remotely
        )
        self.running[remote.remote(task, self._place, self.board)] = (task, tries)

    def _refuse_what_no_node_has(self, task: Task) -> None:
        """Asked before the first task that wants so much: later, nodes may go and come as they do.

        Where no node computes as yet, one that joins the cluster may have it.
        """
        cpus, gpus = self._per_run
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        nodes = [node for node in nodes if node.get("CPU", 0) > 0]
        if not nodes:
            self._note(task, "no node of the Ray cluster computes yet, waiting for one")
        elif not any(n["CPU"] >= cpus and n.get("GPU", 0) >= gpus for n in nodes):
            raise BadRequest(
                f"resources.cpus = {cpus}, resources.gpus = {gpus:g}: no node of the Ray cluster "
                "has that"
            )

    def listen(self, *, again: bool) -> None:
        """Pass on what tasks tell; those that were lost begin ``again``, or are interrupted."""
        done, _ = self.ray.wait(list(self.running), num_returns=len(self.running), timeout=0.5)
        for progress in self._progress():
            self.report(progress)
        for reference in done:
            task, tries = self.running.pop(reference)
            try:
                outcome: Outcome = self.ray.get(reference)
            except self.ray.exceptions.RayError as error:
                text = " ".join(str(getattr(error, "cause", None) or error).split())[:500]
                if again and tries < RETRIES:
                    self._note(task, f"lost with its worker, tried again ({text[:100]})")
                    self.begin(task, tries + 1)
                    continue
                outcome = Outcome(task.identity, "interrupted", error=text)
            self.report(outcome)

    def _note(self, task: Task, text: str) -> None:
        self.report(Progress(task.identity, 0, task.config["train"]["steps"], 0.0, text))

    def _progress(self) -> list[Progress]:
        try:
            taken = self.ray.get(self.board.take.remote())
        except self.ray.exceptions.RayError:
            return []  # the board's process was killed; the tasks go on
        return [Progress(who, step, of, best, text) for who, (step, of, best), text in taken]

    def cancel(self) -> None:
        for reference in self.running:
            self.ray.cancel(reference, force=True)


def _make_board(ray: Any) -> Any:
    """The board, on the node of the main process: another one may go."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    return ray.remote(num_cpus=0, scheduling_strategy=here)(Board).remote()


def _place_for(task: Task) -> Place:
    """Where tasks work: in the main process's folder, unless the store keeps all that they need."""
    tracking = task.config["tracking"]
    store = open_store(tracking["uri"])
    if not store.is_server:
        return Place.here()
    found = store.client.get_experiment_by_name(tracking["experiment"])
    location = "" if found is None else str(found.artifact_location)
    return Place.here(shared=urlsplit(location).scheme in ("", "file"))


def _by_the_store(task: Task) -> Task:
    """A task whose checkpoints travel, unless its config says how."""
    storage = task.config["storage"]
    if storage["uri"] is not None:
        return task
    return replace(task, config={**task.config, "storage": {**storage, "uri": "mlflow"}})
