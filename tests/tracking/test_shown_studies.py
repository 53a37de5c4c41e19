"""What a store has in short, where it is asked in MLflow's own way, as servers are."""

from dataclasses import replace
from pathlib import Path

import pytest

from lit_byz.cli.listing import accuracy
from lit_byz.tracking import tables
from lit_byz.tracking.cells import correct
from lit_byz.tracking.ledger import KINDS
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import StudyRecord
from lit_byz.tracking.shown import entries
from tests.tracking._ledgers import end, make_ledger, outcomes_of, record_of, some_points

MANY = len(KINDS) + 1  # studies than which fewer are asked for one by one


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with several studies of one cell each."""
    made = tmp_path_factory.mktemp("studies")
    found = some_points(made)
    for place, point in enumerate(found):
        end(point, "finished", 0.5 + 0.1 * place)
    for number in range(MANY):
        ledger = make_ledger(made)
        ledger.open_study(StudyRecord("sweep", f"key {number}", "a sweep", {}))
        ledger.open_cell(record_of(found), found)
        ledger.write_cell(record_of(found), outcomes_of(ledger, found), last=True)
    return made


@pytest.mark.parametrize("by_tables", [True, False])
@pytest.mark.parametrize("few", [MANY - 1, MANY])
def test_many_studies_have_their_cells(
    folder: Path, few: int, by_tables: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracking = {"uri": f"sqlite:///{folder}/mlflow.db", "experiment": "lit_byz"}
    monkeypatch.setattr(tables, "FEW", few)
    if not by_tables:
        monkeypatch.setattr(tables, "is_read", lambda uri: False)
    found, left = entries(tracking)
    studies = [entry for entry in found if entry.kind == "sweep"]
    assert left == 0
    assert len(studies) == MANY
    assert {(s.cells, s.exact, s.low, s.high) for s in studies} == {(1, 1, 0.5, 0.5)}


def test_runs_that_were_deleted_since(tmp_path: Path) -> None:
    """A cell's metric stays in MLflow; its tag and its status say that it is not known so well."""
    found = some_points(tmp_path)
    ids = [end(point, "finished", 0.5 + 0.1 * place) for place, point in enumerate(found)]
    ledger = make_ledger(tmp_path)
    study = ledger.open_study(StudyRecord("sweep", "a key", "a sweep", {}))
    cell = ledger.open_cell(record_of(found), found)
    ledger.write_cell(record_of(found), outcomes_of(ledger, found), last=True)
    correct(ledger.store, ledger.result(study))
    assert ledger.store.client.get_run(cell).info.status == "FINISHED"
    ledger.store.client.delete_run(ids[0])
    correct(ledger.store, ledger.result(study))
    left = ledger.store.client.get_run(cell)
    assert left.info.status == "KILLED"
    assert left.data.tags["lit_byz.worst_case"] == "at most 0.6000: 1 run missing"
    tracking = {"uri": f"sqlite:///{tmp_path}/mlflow.db", "experiment": "lit_byz"}
    (entry,) = [each for each in entries(tracking)[0] if each.kind == "sweep"]
    assert (entry.cells, entry.exact, entry.low) == (1, 0, None)


def test_what_images_a_study_is_judged_on(tmp_path: Path) -> None:
    found = some_points(tmp_path)
    outcomes = {p.identity: Outcome(p.identity, "finished", 0.9, 5) for p in found}
    held_out = {i: replace(outcome, max_val_accuracy=0.4) for i, outcome in outcomes.items()}
    for kind, facts, known in (
        ("sweep", {}, outcomes),
        ("tuning", {"judged_on": "val"}, held_out),
        ("breakdown", {}, {}),
    ):
        ledger = make_ledger(tmp_path)
        ledger.open_study(StudyRecord(kind, kind, kind, {}))
        ledger.open_cell(record_of(found, **facts), found)
        ledger.write_cell(record_of(found, **facts), known, last=True)
    studies, _ = entries({"uri": f"sqlite:///{tmp_path}/mlflow.db", "experiment": "lit_byz"})
    assert {entry.kind: (entry.judged_on, accuracy(entry)) for entry in studies} == {
        "sweep": ("test", "90.0 (1 cell)"),
        "tuning": ("validation", "40.0 (1 cell) (validation)"),
        "breakdown": (None, "0 of 1 cell"),
    }
