"""Sixty runs on a Ray cluster of two nodes that share nothing but a server, all of which crash."""

import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli._sweeps import ROOT
from tests.faults._disturbed import GRID, Disturbed, Judge, Reference, cleaned_up, entries
from tests.services._mlflow_server import MlflowServer
from tests.services._postgresql import PostgreSQL

pytestmark = [pytest.mark.services, pytest.mark.timeout(1500)]

SIXTY = {
    **GRID,
    "train": {"steps": 60, "eval_every": 20, "checkpoint_every": 10},
    "grid": {
        "axes": {
            "clip": ["none", "arc", {"name": "static", "C": 1.0}],
            "attack": ["sf", "lf", "mimic", "foe", "alie"],
            "seed": [1, 2, 3, 4],
        }
    },
}
RUNS = 60
NODE = {"object_store_memory": 100_000_000, "include_dashboard": False}


@pytest.fixture(scope="module")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """The same sweep in local processes, which nothing disturbs."""
    sweep = Disturbed(tmp_path_factory.mktemp("local") / "sweep", SIXTY, seconds=0.0, longest=600.0)
    with cleaned_up(sweep):
        sweep.complete()
    assert sweep.codes == [0]
    found = entries(sweep.database)
    assert len([entry for entry in found if entry.kind == "run"]) == RUNS
    return Reference((sweep.folder / "outputs" / "worst_case.csv").read_text(), found)


@contextlib.contextmanager
def cluster() -> Iterator[Any]:
    """A head that computes nothing; nodes are added to it, on which the package is installed."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(ROOT))
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **NODE})
        try:
            yield made
        finally:
            made.shutdown()


def test_sixty_runs(
    postgres: PostgreSQL,
    server: MlflowServer,
    database: str,
    tmp_path: Path,
    sixty: Reference,
    judge: Judge,
    chance: random.Random,
) -> None:
    sweep = Disturbed(tmp_path / "sweep", SIXTY, server.address, database, seconds=0.0)
    sweep.longest = 600.0
    with cluster() as made, cleaned_up(sweep):
        nodes = [made.add_node(num_cpus=1, **NODE) for _ in range(2)]
        sweep.options = ("--executor", "ray", "--ray-address", made.address)
        sweep.start()
        assert sweep.after(chance.randrange(500, 700))
        # Each node has a run with a checkpoint in the store, that another one can go on from.
        assert sweep.held_each(chance.randrange(11, 40))
        made.remove_node(nodes.pop(chance.randrange(2)), allow_graceful=False)
        nodes.append(made.add_node(num_cpus=1, **NODE))
        for away in (server.away, postgres.away):
            assert sweep.after(chance.randrange(400, 700))
            with away():
                time.sleep(chance.uniform(0.0, 3.0))
        sweep.complete()
    kind = "a node, the server and PostgreSQL below 60 runs on Ray"
    verdict = judge(kind, 3, sweep, sixty)
    assert (verdict.attempts, verdict.resumed) == (0, 1)
    # The nodes have left nothing where the main process is.
    assert not (sweep.folder / "mlruns" / "checkpoints").exists()
