"""A cluster's driver, server and database: what a run costs each, and what many cores would need.

Everything is measured on a cluster that is started on this machine for the purpose. CPU seconds are
those that the system has counted for the processes, so that other load on the machine matters less.
"""

import argparse
import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from lit_byz.benchmark import _harness
from lit_byz.benchmark._cluster_costs import FULL, QUICK, Measured, costs, measure
from lit_byz.benchmark._projection import Costs, Row, Work, project
from lit_byz.benchmark._ratio import Spread
from lit_byz.errors import BadRequest
from lit_byz.execution.local_cluster import LocalCluster

DESCRIPTION = (
    "Measure what a run costs a cluster's driver, server and database, and say what the paper's "
    "catalogue would take on many cores."
)
CORES = (10, 100, 1000)
WIDTH = 150
PARTS = ("driver", "board", "server", "database")
# Of these the costs of a run that goes on are known between two bounds; the last column's too.
UNCERTAIN = ("server", "database", "checkpoints")

# Least and greatest load of a part.
Within = dict[str, tuple[float, float]]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--quick", action="store_true", help="short measurements")
    parser.add_argument("--out", type=Path, default=Path("outputs", "benchmark"), help="folder")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="experiments of the catalogue, as paper/fig1a"
    )


def run(parsed: argparse.Namespace) -> int:
    """Measure, write the files, print the tables."""
    console, progress = Console(width=WIDTH), Console(stderr=True)
    work, source = catalogue_work(parsed.only)
    sizes = QUICK if parsed.quick else FULL
    with TemporaryDirectory(prefix="lit_byz-") as folder, _cluster(Path(folder)) as cluster:
        measured, kinds = measure(cluster, sizes, progress.print)
    found = costs(measured)
    rows = [project(work, found, cores) for cores in CORES]
    second = (measured.server_second_cpu, measured.database_second_cpu)
    within = {cores: between(work, found, second, cores) for cores in CORES}
    more = {"measured": asdict(measured), "work": asdict(work), "requests": dict(kinds)}
    _harness.write(parsed.out, "cluster", rows, {}, costs=asdict(found), within=within, **more)
    _print(console, measured, work, source, rows, within, kinds)
    return 0


def between(work: Work, costs: Costs, second: tuple[Spread, Spread], cores: int) -> Within:
    """The loads if a second of a run costs server and database the least, the most it may."""
    server, database = second

    def loads(for_server: float, for_database: float) -> Row:
        for_server, for_database = max(0.0, for_server), max(0.0, for_database)
        assumed = replace(costs, server_second=for_server, database_second=for_database)
        return project(work, assumed, cores)

    low, high = loads(server.low, database.low), loads(server.high, database.high)
    return {part: (getattr(low, part), getattr(high, part)) for part in UNCERTAIN}


@contextlib.contextmanager
def _cluster(folder: Path) -> Iterator[LocalCluster]:
    cluster = LocalCluster(folder)
    before = dict(os.environ)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # nothing is to stay behind
    cluster.up(1, 2, lambda line: None)
    os.environ |= {"MLFLOW_TRACKING_URI": cluster.tracking_uri, **cluster.state.secrets.for_ray}
    try:
        with contextlib.chdir(folder):  # where claims and checkpoints go
            yield cluster
    finally:
        os.environ.clear()
        os.environ |= before
        cluster.down(lambda line: None)
        cluster.delete_database()


def catalogue_work(names: list[str] | None) -> tuple[Work, str]:
    """The paper's runs, each once, at the cost that ``report.py list`` takes for them."""
    from lit_byz.config.components import build_model
    from lit_byz.config.compose import compose_plain
    from lit_byz.models import parameter_count
    from lit_byz.report.paper import listing
    from lit_byz.report.paper.experiment import catalogue, find
    from lit_byz.tracking.ledger import Ledger

    chosen = [find(name) for name in names] if names else catalogue()
    points = {point.identity: (point, e) for e in chosen for point in e.points}
    if not points:
        raise BadRequest("--only: nothing of that is trained")
    ledger = Ledger.of(compose_plain([])["tracking"])
    _, metrics = ledger.known(set(points))
    every = [point for point, _ in points.values()]
    known = listing.Costs.of(every, metrics, listing.speeds_in(ledger))
    seconds = [known.of_run(point, experiment)[0] for point, experiment in points.values()]
    sizes: dict[str, int] = {}
    checkpoints = 0.0
    for point, _ in points.values():
        key = repr([point.plain["dataset"], point.plain["model"]])
        if key not in sizes:
            sizes[key] = parameter_count(build_model(point.config))
        train = point.plain["train"]
        # The parameters and a momentum of each honest worker, in float32.
        size = 4 * sizes[key] * (point.plain["workers"]["honest"] + 1)
        checkpoints += size * (point.steps // (train["checkpoint_every"] or point.steps + 1))
    source = f"{len(metrics)} of them timed in the store, the others as the catalogue says"
    return Work(len(points), sum(seconds), max(seconds), checkpoints), source


def _print(
    console: Console,
    m: Measured,
    work: Work,
    source: str,
    rows: list[Row],
    within: Mapping[int, Within],
    kinds: Mapping[str, int],
) -> None:
    names = ", ".join(f"{count} {name}" for name, count in sorted(kinds.items()))
    lines = {
        "driver, a run": f"{1e3 * m.driver_run:.1f} ms, {m.driver_requests:.1f} requests; CPU: "
        f"{1e3 * m.driver_run_cpu:.1f} ms its own, {1e3 * m.driver_server_cpu:.1f} ms the "
        f"server's, {1e3 * m.driver_database_cpu:.1f} ms the database's",
        "Ray, a task that does nothing": f"{1e3 * m.ray_task_cpu:.2f} ms of the driver's CPU; "
        f"{m.ray_tasks_per_second:.0f} tasks a second; {m.ray_notes_per_second:.0f} reports on the "
        "progress of runs",
        "a run's requests": f"{m.run_requests}, and {m.requests_per_second:.3f} a second; "
        f"{m.run_commits:.0f} commits",
        "server": f"{m.server_requests_per_second:.0f} requests a second; a run costs it "
        f"{m.server_run_cpu:.2f} s of CPU, the database {m.database_run_cpu:.2f} s, and for every "
        f"second that it goes on {_ms(m.server_second_cpu)} and "
        f"{_ms(m.database_second_cpu)} ms more",
        "server, artifacts": f"{m.upload_bytes_per_second / 1e6:.0f} MB a second; "
        f"{1e9 * m.upload_byte_cpu:.1f} ms of CPU a MB",
        "database alone": f"{m.commits_per_second:.0f} commits of one row a second; "
        f"{m.rows_per_second:.0f} rows a second in commits of 1,000",
        "load of the machine": f"{m.load_before:.1f} before, {m.load_after:.1f} after",
        "replies unlike the recorded ones": str(m.replies_differ),
        "requests": names,
    }
    for name, text in lines.items():
        console.print(f"{name}: {text}", highlight=False, soft_wrap=True)
    console.print(
        f"catalogue: {work.runs} runs ({source}), {work.core_seconds / 3600:,.0f} core hours, the "
        f"longest run {work.longest / 60:.1f} min, checkpoints {work.checkpoint_bytes / 1e9:,.0f} "
        "GB.\nExtrapolated to one run per core, server and database on a machine like this one:",
        highlight=False,
        soft_wrap=True,
    )
    table = Table()
    for heading in ("cores", "hours", "runs/s", *PARTS, "bottleneck"):
        table.add_column(heading, justify="right")
    table.add_column("server, with checkpoints", justify="right")
    table.add_column("hours so", justify="right")
    for row in rows:
        table.add_row(
            f"{row.cores:,}",
            f"{row.hours:,.2f}",
            f"{row.runs_per_second:.3g}",
            *(_share(row, part, within[row.cores]) for part in PARTS),
            row.bottleneck,
            _share(row, "checkpoints", within[row.cores]),
            f"{row.checkpoint_hours:,.2f}",
        )
    console.print(table)


def _ms(spread: Spread) -> str:
    return f"{1e3 * spread.median:.2f} ({1e3 * spread.low:.2f} to {1e3 * spread.high:.2f})"


def _share(row: Row, part: str, within: Within) -> str:
    share = f"{getattr(row, part):.1%}"
    if part not in within:
        return share
    low, high = within[part]
    return f"{share} ({100 * low:.1f} to {100 * high:.1f})"
