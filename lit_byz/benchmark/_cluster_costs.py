"""What a run costs the parts of a cluster, measured one part after the other."""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lit_byz.benchmark._database import rates, written
from lit_byz.benchmark._harness import train_to_the_end
from lit_byz.benchmark._projection import Costs
from lit_byz.benchmark._ratio import Spread
from lit_byz.benchmark._traffic import Replay, Request, beginning, beyond, recorded, replay
from lit_byz.execution.cluster_parts import POSTGRESQL, SERVER
from lit_byz.execution.executor import NextTask, Report, Stopping
from lit_byz.execution.local_cluster import LocalCluster
from lit_byz.execution.signals import handlers_kept
from lit_byz.execution.tasks import Task
from lit_byz.tracking.outcome import Outcome

CLIENTS = 4
SWEEP = "paper/fig1a"
UPLOAD = 20_000_000  # bytes, about a checkpoint of MNIST's CNN and ten workers
PARTS = {"server": SERVER, "database": POSTGRESQL}


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    steps: int
    slow: float
    """Seconds that the recorded run is slowed down by, the second time."""
    seconds: float
    """Of each measurement of a rate."""
    pairs: int
    """Measurements of what the slower run asks for more: a difference needs several."""
    sweep: tuple[str, ...]
    tasks: int


# Slow enough for several signs of life of the run's claim.
FULL = Sizes(1000, slow=130.0, seconds=10.0, pairs=8, sweep=("seed=[1]",), tasks=500)
QUICK = Sizes(
    steps=50, slow=5.0, seconds=3.0, pairs=2, sweep=("seed=[1]", "workers.f=[1]"), tasks=50
)


@dataclass(frozen=True)
class Measured:
    """Times in seconds; ``…_cpu`` are seconds of one core."""

    run_requests: int
    requests_per_second: float
    """That a run makes for every second that it goes on."""
    run_commits: float
    server_requests_per_second: float
    server_run_cpu: float
    """For the requests of one run."""
    database_run_cpu: float
    server_second_cpu: Spread
    """For what a run that goes on asks for in a second: signs of life, metrics in more parts."""
    database_second_cpu: Spread
    replies_differ: int
    commits_per_second: float
    rows_per_second: float
    driver_run: float
    driver_run_cpu: float
    driver_requests: float
    driver_server_cpu: float
    driver_database_cpu: float
    ray_tasks_per_second: float
    ray_task_cpu: float
    ray_notes_per_second: float
    """Reports of runs on their progress that the driver's board takes."""
    upload_bytes_per_second: float
    upload_byte_cpu: float
    load_before: float
    """Of the machine, when the measurement began: processes that wanted to compute."""
    load_after: float


def measure(
    cluster: LocalCluster, sizes: Sizes, tell: Callable[[str], None]
) -> tuple[Measured, Counter[str]]:
    """All measurements, one after the other, on a cluster that has nothing else to do."""
    before = os.getloadavg()[0]
    tell(f"load of the machine: {before:.1f}")
    tell("a run, recorded; and again, slower")
    _record(2, 0.0, seed=1)  # what only the first run of all does
    commits = written(cluster.database_uri)
    requests, fast = _record(sizes.steps, 0.0, seed=2)
    commits = written(cluster.database_uri) - commits
    more, slow = _record(sizes.steps, sizes.slow, seed=3)
    kinds = Counter(request.name for request in requests)
    tell("its requests, from several clients at once")
    replay(cluster.tracking_uri, requests, CLIENTS, 1.0)  # the server's processes get warm
    again, busy = _said(cluster, requests, sizes.seconds)
    tell("what the slower run asks for beyond them")
    longer, differently = _longer(cluster, requests, more, sizes)
    lasted = max(slow - fast, 1.0)
    tell("artifacts")
    uploads = [_upload(requests)]
    with _busy(cluster) as uploading:
        sent = replay(cluster.tracking_uri, uploads, 2, sizes.seconds)
    tell("the database alone")
    commits_rate, rows_rate = rates(cluster.database_uri, CLIENTS, sizes.seconds)
    tell(f"the driver, with the runs of {SWEEP}, which take no time")
    with _busy(cluster) as driving:
        wall, cpu, runs, asked = _drive(sizes)
    tell("Ray's tasks")
    tasks, task_cpu, notes = _ray_rates(cluster, sizes.tasks)
    measured = Measured(
        run_requests=len(requests),
        requests_per_second=max(0.0, len(more) - len(requests)) / lasted,
        run_commits=float(commits),
        server_requests_per_second=again.requests / again.seconds,
        server_run_cpu=busy["server"],
        database_run_cpu=busy["database"],
        server_second_cpu=Spread.over(cost / lasted for cost in longer["server"]),
        database_second_cpu=Spread.over(cost / lasted for cost in longer["database"]),
        replies_differ=again.differently + differently + sent.differently,
        commits_per_second=commits_rate,
        rows_per_second=rows_rate,
        driver_run=wall / runs,
        driver_run_cpu=cpu / runs,
        driver_requests=asked / runs,
        driver_server_cpu=driving["server"] / runs,
        driver_database_cpu=driving["database"] / runs,
        ray_tasks_per_second=tasks,
        ray_task_cpu=task_cpu,
        ray_notes_per_second=notes,
        upload_bytes_per_second=sent.rounds * UPLOAD / sent.seconds,
        upload_byte_cpu=uploading["server"] / (sent.rounds * UPLOAD),
        load_before=before,
        load_after=os.getloadavg()[0],
    )
    return measured, kinds


def costs(m: Measured) -> Costs:
    """What was measured, for each run."""
    from lit_byz.execution.ray_worker import REPORT_EVERY

    return Costs(
        cores=len(os.sched_getaffinity(0)),
        driver=m.driver_run + m.ray_task_cpu,
        notes_second=1 / REPORT_EVERY,
        notes_per_second=m.ray_notes_per_second,
        server_run=m.server_run_cpu + m.driver_server_cpu,
        server_second=max(0.0, m.server_second_cpu.median),
        server_byte=m.upload_byte_cpu,
        database_run=m.database_run_cpu + m.driver_database_cpu,
        database_second=max(0.0, m.database_second_cpu.median),
        commits_run=m.run_commits + m.driver_requests,
        commits_per_second=m.commits_per_second,
    )


@contextlib.contextmanager
def _busy(cluster: LocalCluster) -> Iterator[dict[str, float]]:
    """CPU seconds of the server and the database meanwhile."""

    def now() -> dict[str, float]:
        return {key: cluster.part(name).process.cpu_seconds() for key, name in PARTS.items()}

    before, spent = now(), dict.fromkeys(PARTS, 0.0)
    yield spent
    spent |= {key: value - before[key] for key, value in now().items()}


def _said(
    cluster: LocalCluster, requests: list[Request], seconds: float
) -> tuple[Replay, dict[str, float]]:
    """A run's requests said again and again, and the CPU seconds that one run's took."""
    with _busy(cluster) as busy:
        again = replay(cluster.tracking_uri, requests, CLIENTS, seconds)
    return again, {key: spent / again.rounds for key, spent in busy.items()}


def _longer(
    cluster: LocalCluster, requests: list[Request], more: list[Request], sizes: Sizes
) -> tuple[dict[str, list[float]], int]:
    """CPU seconds for what a run asks for beyond another's requests, measured several times.

    And how many replies were unlike the recorded ones. What both ask for is left out: it costs many
    times the difference, and would hide it.
    """
    begun = [*beginning(more)]
    wholly = [*begun, *beyond(requests, more)]
    found: dict[str, list[float]] = {key: [] for key in PARTS}
    differently = 0
    for _ in range(sizes.pairs):
        alone, first = _said(cluster, begun, sizes.seconds / 4)
        both, spent = _said(cluster, wholly, sizes.seconds)
        differently += alone.differently + both.differently
        for key in PARTS:
            found[key].append(spent[key] - first[key])
    return found, differently


def _record(steps: int, slow: float, seed: int) -> tuple[list[Request], float]:
    """The requests of a run of the paper's length, on a small model; and its seconds."""
    import torch
    from lightning.pytorch.callbacks import Callback

    torch.set_num_threads(1)  # as on Ray

    class Slow(Callback):
        def on_train_batch_end(self, *_: Any) -> None:
            time.sleep(slow / steps)

    settings = ["dataset=digits", "model=logreg", "clip=arc", "attack=sf", "resume=auto"]
    settings += [f"train.steps={steps}", "tracking.model=none", "tracking.experiment=benchmark"]
    begin = time.perf_counter()
    with recorded() as requests:
        train_to_the_end([*settings, f"seed={seed}"], [Slow()] if slow else [])
    return requests, time.perf_counter() - begin


def _upload(requests: list[Request]) -> Request:
    """A large file beside one that a run has kept."""
    kept = next(r for r in requests if r.method == "PUT" and "/mlflow-artifacts/" in r.path)
    path = f"{kept.path.rpartition('/')[0]}/large"
    return Request("PUT", path, os.urandom(UPLOAD), "application/octet-stream")


class _Instant:
    """An executor that has every outcome at once."""

    def run(self, next_task: NextTask, report: Report, stopping: Stopping) -> None:
        while not stopping() and (task := next_task()) is not None:
            report(Outcome(task.identity, "finished", max_accuracy=0.5, steps_done=1, seconds=1.0))


def _drive(sizes: Sizes) -> tuple[float, float, int, int]:
    """Seconds, CPU seconds, runs and requests of a sweep's own work."""
    from lit_byz.execution.runner import Memory, Runner
    from lit_byz.report.paper.experiment import find
    from lit_byz.studies.grid import GridStudy
    from lit_byz.tracking.ledger import Ledger
    from lit_byz.tracking.records import StudyRecord

    points = find(SWEEP, ["tracking.experiment=benchmark", *sizes.sweep]).points
    ledger = Ledger.of(points[0].plain["tracking"])
    memory = Memory(ledger)
    with recorded() as requests:
        wall, cpu = time.perf_counter(), time.process_time()
        study = GridStudy(points, memory)
        runner = Runner(ledger, study, StudyRecord("sweep", "0" * 64, "benchmark", {}, {}), memory)
        runner.run(_Instant(), lambda *_: None, lambda _: None)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall, cpu, len(points), len(requests)


def _nothing(task: Task) -> str:
    return task.identity


def _ray_rates(cluster: LocalCluster, count: int) -> tuple[float, float, float]:
    """Tasks a second that have nothing to do, the driver's CPU seconds for one, notes a second."""
    import logging

    import ray

    from lit_byz.execution.ray_board import Board
    from lit_byz.report.paper.experiment import find

    point = find(SWEEP, ["seed=[1]"]).points[0]
    task = Task(point.plain, point.code)
    with handlers_kept():
        ray.init(address=cluster.ray_address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        remote = ray.remote(num_cpus=1)(_nothing)
        ray.get([remote.remote(task) for _ in range(4)])  # which starts Ray's processes
        wall, cpu = time.perf_counter(), time.process_time()
        ray.get([remote.remote(task) for _ in range(count)])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        board: Any = ray.remote(num_cpus=0)(Board).remote()
        ray.get(board.stopping.remote())
        begin = time.perf_counter()
        ray.get([board.note.remote(point.identity, (1, 1, 0.0)) for _ in range(count)])
        notes = count / (time.perf_counter() - begin)
    finally:
        ray.shutdown()
    return count / wall, cpu / count, notes
