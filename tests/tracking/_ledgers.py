"""Runs, cells and studies in a real store, without the training."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lit_byz.config.grid import Grid, Point, points
from lit_byz.config.identity import Identity
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.new_run import Attempt
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import CellRecord, PlannedRun, StudyRecord
from lit_byz.tracking.runs import open_run
from tests.tracking._stores import new_store

BASE: dict[str, Any] = {"dataset": "digits", "model": "logreg", "train": {"steps": 5}}
STUDY = StudyRecord("sweep", "a key", "a sweep", {"dataset": "digits"})
# How a run's status is shown by MLflow.
SHOWN = {"finished": "FINISHED", "diverged": "FINISHED", "failed": "FAILED"}


def some_points(folder: Path, attacks: Sequence[str] = ("sf", "foe"), **axes: Any) -> list[Point]:
    base = {**BASE, "tracking": {"uri": new_store(folder)}}
    return points(Grid(base, {"attack": list(attacks), **axes}))


def make_ledger(folder: Path) -> Ledger:
    tracking = {"enabled": True, "uri": new_store(folder), "experiment": "lit_byz"}
    return Ledger.of(tracking)


def by_other_code(point: Point) -> Point:
    return replace(point, code=Identity(point.code.settings, "numerics 0"))


def begin(point: Point, cell_id: str | None = None) -> str:
    """A run that is on, or whose process was killed."""
    return str(open_run(Attempt(point.config, point.code, cell_id)).run_id)


def end(
    point: Point, status: str, accuracy: float | None = None, cell_id: str | None = None
) -> str:
    """A run as it is left in the store."""
    run = open_run(Attempt(point.config, point.code, cell_id))
    if status == "failed":
        run.fail(RuntimeError("it broke"))
        return str(run.run_id)
    name = "test/max_accuracy_at_least" if status == "bounded" else "test/max_accuracy"
    if accuracy is not None:
        run.tracker.log_metrics({name: accuracy, "honest/max_norm": 3.0}, 4)
    run.tag("lit_byz.status", status)
    run.close(SHOWN.get(status, "KILLED"))
    return str(run.run_id)


def record_of(points: Sequence[Point], **facts: Any) -> CellRecord:
    runs = [PlannedRun(p.attack, p.seed, p.identity, p.steps) for p in points]
    return CellRecord(points[0].cell, runs, "cell", facts)


def outcomes_of(ledger: Ledger, points: Sequence[Point]) -> dict[str, Outcome]:
    found = ledger.look_up(points)
    return {i: entry.outcome for i, entry in found.items() if entry.outcome is not None}
