"""A cluster on this machine, to try things out: PostgreSQL, MLflow's server, Ray nodes.

python pipelines/cluster.py up [--workers N] [--cpus N]     start all of it, wait until it answers
python pipelines/cluster.py status                          say of each part whether it answers
python pipelines/cluster.py down                            end what up has started

All of it listens on 127.0.0.1 only, on ports that are free. Processes, ports and passwords stand in
FOLDER/cluster.json, which only you can read; logs, runs and artifacts lie beside it and stay there:
up goes on with them. status ends with 0 if everything answers, else with 1.
"""

import os
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path

from lit_byz._door import here
from lit_byz.cli.command import Parser, guarded
from lit_byz.errors import BadRequest
from lit_byz.execution.local_cluster import LocalCluster

FOLDER = Path("mlruns", "cluster")


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for; returns the exit code."""
    parser = Parser(__doc__ or "")
    parser.add_argument("what", choices=("up", "status", "down"))
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"default: {FOLDER}")
    parser.add_argument("--workers", type=int, default=2, help="Ray nodes that compute (2)")
    parser.add_argument("--cpus", type=int, help="runs at once on each; default: all cores shared")
    options = parser.parse_args(arguments)
    cluster = LocalCluster(options.folder.absolute())
    if options.what == "up":
        return _up(cluster, options.workers, options.cpus)
    if options.what == "status":
        return _status(cluster)
    cluster.down(_tell)
    _tell(f"nothing is up in {options.folder}")
    return 0


def _up(cluster: LocalCluster, workers: int, cpus: int | None) -> int:
    each = max(1, len(os.sched_getaffinity(0)) // max(1, workers)) if cpus is None else cpus
    for name, value in (("workers", workers), ("cpus", each)):
        if value < 1:
            raise BadRequest(f"--{name} {value}: must be at least 1")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # takes down what is up so far, too
    cluster.up(workers, each, _tell)
    _tell(f"\n{workers} nodes, {workers * each} runs at once. Type next:\n")
    access = {"MLFLOW_TRACKING_URI": cluster.tracking_uri, **cluster.state.secrets.for_ray}
    for variable, text in access.items():
        _tell(f"export {variable}={shlex.quote(text)}")
    sweep = f"python pipelines/sweep.py --executor ray --ray-address {cluster.ray_address}"
    _tell(here(sweep))
    return 0


def _status(cluster: LocalCluster) -> int:
    found = cluster.status() if cluster.path.exists() else {}
    for part, answers in found.items():
        word = "answers" if answers else "does not answer"
        _tell(f"{part.name:15} 127.0.0.1:{part.port:<5} process {part.process.pid:<7} {word}")
    if not found:
        _tell(f"nothing is up in {cluster.folder}")
    return 0 if found and all(found.values()) else 1


def _tell(line: str) -> None:
    print(line, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(run, argv)
