"""A store with thousands of runs, made in seconds: rows put into MLflow's own tables in bulk.

``python -m tests.tracking._filled FOLDER [RUNS]`` makes one below ``FOLDER/mlruns``.
"""

import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from lit_byz.config.grid import Grid, Point, points
from lit_byz.config.identity import environment
from lit_byz.report.paper.experiment import catalogue
from lit_byz.tracking import flatten
from lit_byz.tracking.store import CODE, ENVIRONMENT, IDENTITY, KIND, MACHINE, SETTINGS, open_store
from tests.tracking._stores import new_store

BEGAN = 1_700_000_000_000
# Runs whose rows are put in at once.
AT_ONCE = 250
# What a run records last, beside its accuracies.
LAST = {
    "clip/threshold": 0.5,
    "attack/at_edge": 0.0,
    "attack/bound": 2.0,
    "attack/damage": 0.3,
    "attack/factor": 1.5,
    "honest/average_norm": 0.7,
    "honest/max_norm": 1.1,
    "honest/mean_norm": 0.6,
    "server/clipped_byzantine": 1.0,
    "server/clipped_honest": 1.0,
    "server/non_finite": 0.0,
    "server/output_norm": 0.5,
    "speed/steps_per_second": 20.0,
    "step_of_max": 990.0,
    "test/loss": 0.4,
    "train/loss": 0.4,
}
GRID: dict[str, Any] = {
    "dataset": "digits",
    "model": "logreg",
    "mix": "nnm",
    "grid": {
        "axes": {
            "workers.f": [1, 2, 3, 4],
            "rule": ["cwtm", "gm", "cwmed", "krum", "multi_krum"],
            "clip": ["none", "static", "arc"],
            "attack": ["sf", "lf", "mimic", "foe@coarse", "alie@coarse", "foe", "alie"],
        },
        "when": [{"if": {"clip": "static"}, "axes": {"clip.C": [0.1, 1.0, 10.0]}}],
    },
}


def accuracy(place: int) -> float:
    """The maximal accuracy of the run at a place: some number that tells runs apart."""
    return 0.2 + 0.7 * (place * 7919 % 10_007) / 10_007


def fill(uri: str, runs: Iterable[Point], experiment: str = "lit_byz") -> int:
    """Put a finished run of every point into the store, as if it had been computed."""
    from mlflow.store.tracking.dbmodels import models
    from sqlalchemy import create_engine, insert

    store = open_store(uri)
    experiment_id = store.experiment(experiment)
    place = store.client.get_experiment(experiment_id).artifact_location
    engine = create_engine(uri)
    count = 0
    left = iter(runs)
    while part := list(islice(left, AT_ONCE)):
        rows: dict[Any, list[dict[str, Any]]] = {}
        for point in part:
            for table, row in _rows(point, count, int(experiment_id), place):
                rows.setdefault(table, []).append(row)
            count += 1
        with engine.begin() as connection:
            for table, some in rows.items():
                connection.execute(insert(getattr(models, table).__table__), some)
    engine.dispose()
    return count


def _rows(
    point: Point, place: int, experiment_id: int, artifacts: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    run_id = uuid.UUID(int=place, version=4).hex
    began = BEGAN + 1000 * place
    yield (
        "SqlRun",
        {
            **{"run_uuid": run_id, "name": point.label[:250], "source_type": "LOCAL"},
            **{"source_name": "", "entry_point_name": "", "user_id": "", "source_version": ""},
            **{"status": "FINISHED", "lifecycle_stage": "active", "deleted_time": None},
            **{"start_time": began, "end_time": began + 50_000, "experiment_id": experiment_id},
            "artifact_uri": f"{artifacts}/{run_id}/artifacts",
        },
    )
    tags = {
        IDENTITY: point.identity,
        SETTINGS: point.code.settings,
        CODE: point.code.code,
        ENVIRONMENT: environment(point.plain),
        KIND: "run",
        MACHINE: "a machine",
        "lit_byz.status": "finished",
        "lit_byz.versions": "{}",
        "lit_byz.gradients": "vmap",
        "mlflow.source.name": "sweep.py",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": "0" * 40,
        "mlflow.runName": point.label[:250],
    }
    for key, value in tags.items():
        yield "SqlTag", {"run_uuid": run_id, "key": key, "value": value}
    for key, value in flatten({**point.plain, CODE: point.code.code}).items():
        yield "SqlParam", {"run_uuid": run_id, "key": key, "value": value}
    best = accuracy(place)
    end = {"test/accuracy": 0.95 * best, "test/mean_last_5": 0.9 * best}
    for key, number in {**LAST, "test/max_accuracy": best, **end}.items():
        row = {"run_uuid": run_id, "key": key, "value": number, "is_nan": False}
        row |= {"timestamp": began, "step": point.steps - 1}
        yield "SqlMetric", row
        yield "SqlLatestMetric", row


def sweep_points(count: int) -> list[Point]:
    """The runs of a sweep of at most so many, of 100 cells with 7 attacks and whole seeds."""
    base = {key: value for key, value in GRID.items() if key != "grid"}
    grid = GRID["grid"]
    return points(Grid(base, {**grid["axes"], "seed": seeds(count)}, grid["when"]))


def seeds(count: int) -> list[int]:
    """The seeds of such a sweep."""
    return list(range(1, 1 + count // (4 * 5 * 5 * 7)))


def some_points(count: int) -> list[Point]:
    """So many runs: those of the sweep, then some of the paper's catalogue."""
    found = {point.identity: point for point in sweep_points(count)}
    for experiment in catalogue():
        if len(found) >= count:
            break
        found |= {point.identity: point for point in experiment.points}
    return list(found.values())[:count]


def main(words: Sequence[str]) -> None:
    """Make a store of so many runs."""
    folder, count = Path(words[0]), int(words[1]) if len(words) > 1 else 10_000
    uri = new_store(folder / "mlruns")
    print(f"{fill(uri, some_points(count))} runs in {uri}")


if __name__ == "__main__":
    main(sys.argv[1:])
