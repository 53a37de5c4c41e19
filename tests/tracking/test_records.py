"""Records of studies and cells: as tags, and back."""

from typing import Any

import pytest

from lit_byz.tracking import records
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import (
    CellRecord,
    CellResult,
    PlannedRun,
    StudyRecord,
    StudyResult,
    as_tags,
    read_cell,
    read_study,
)

STUDY = StudyRecord(
    "breakdown",
    "key",
    "a study",
    {"threshold": 0.5, "arms": {"clip=arc": {"breakdown": None}}, "left_out": [[3, 0]]},
    {"train": {"steps": 5, "lr_milestones": []}, "clip": {"name": "static", "C": 2.0}},
)
CELL = CellRecord(
    "clip=static, clip.C=∞",
    [PlannedRun(a, s, f"{a}{s}", 40) for a in ("sf", "foe@published") for s in (1, 2)],
    "trial",
    {"place": 3, "params": {"clip.C": 0.25}, "decided": True},
)


def outcome(identity: str, status: str, accuracy: float | None = None) -> Outcome:
    return Outcome(identity, status, accuracy)


def test_there_and_back() -> None:
    assert read_study(as_tags(STUDY)) == STUDY
    assert read_cell(as_tags(CELL)) == CELL
    assert read_study({"mlflow.runName": "of another program"}) is None
    assert read_cell({}) is None


@pytest.mark.parametrize("runs", [0, 1, 100, 1000])
def test_long_records_are_cut(runs: int) -> None:
    """A tag of MLflow's has at most 8000 characters."""
    planned = [PlannedRun("foe", seed, f"{seed:064x}", 1000) for seed in range(runs)]
    tags = as_tags(CellRecord("cell", planned))
    assert max(map(len, tags.values())) <= records.LENGTH <= 8000
    assert len(tags) == 1 + int(tags["lit_byz.record.parts"])
    found = read_cell(tags)
    assert found is not None
    assert found.runs == planned


def test_a_shorter_record_over_a_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tags are written one over the other; those that are left behind do not count."""
    monkeypatch.setattr(records, "LENGTH", 60)
    short = StudyRecord("sweep", "key", "a")
    both = {**as_tags(STUDY), **as_tags(short)}
    assert len(both) > len(as_tags(short))
    assert read_study(both) == short


def test_what_is_known_of_a_cell() -> None:
    outcomes = {
        "sf1": outcome("sf1", "finished", 0.9),
        "foe@published1": outcome("foe@published1", "diverged", 0.1),
        "sf2": outcome("sf2", "bounded", 0.7),
        "foe@published2": outcome("foe@published2", "failed"),
    }
    cell = CellResult(CELL, outcomes)
    assert cell.attacks == ["sf", "foe@published"]
    assert [a.value for a in cell.of_attack("foe@published").values()] == [0.1]
    assert cell.of_attack("sf")[2].lower_bound
    assert [run.label for run in cell.failed] == ["foe@published | seed 2"]
    assert cell.missing == []
    assert cell.worst_case.bounds == {1: (0.1, 0.1), 2: (0.0, 1.0)}


def test_an_interrupted_run_is_missing_whatever_it_had_reached() -> None:
    known: dict[str, Any] = {"sf1": outcome("sf1", "interrupted", 0.9)}
    cell = CellResult(CELL, known)
    assert len(cell.missing) == 4
    assert cell.worst_case.kind == "unknown"


def test_what_a_study_still_needs() -> None:
    """Runs that two cells share are there once; a cell that is decided needs no more."""
    other = CellRecord("other", CELL.runs[:1], facts={"place": 0})
    decided, open_ = CellResult(CELL, {}), CellResult(other, {})
    study = StudyResult(STUDY, [decided, open_], "id")
    assert len(study.runs) == 4
    assert study.missing == [(open_, CELL.runs[0])]
    assert study.failed == []
    assert study.of_kind("trial") == [decided]
    assert study.of_kind("cell") == [open_]
