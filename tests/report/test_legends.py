"""Below every table stands what its signs mean: those that are in it, and no others."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from lit_byz.report import breakdown, init_scaling, misspecified, strengths, tuning
from lit_byz.report.note import note_of
from lit_byz.report.tuned import tuned
from lit_byz.report.worst_case_table import tables
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import CellRecord, CellResult, PlannedRun
from tests.report._results import Known, make_cell, make_study
from tests.report.test_tuning import FACTS

if TYPE_CHECKING:
    from rich.table import Table

SIGNS = {"≥": "≥: at least", "≤": "≤: at most"}
# What became of the run beside one of 80 %, and what is shown of the worst case of both.
RUNS: list[tuple[Known, str]] = [
    (0.7, "70.0"),
    (">= 0.6", "≥ 60.0"),
    ("failed", "≤ 80.0 (1 failed)"),
    (None, "≤ 80.0 (1 missing)"),
]


def explained(text: str) -> set[str]:
    return {sign for sign, words in SIGNS.items() if words in text}


def texts_of(table: "Table") -> list[str]:
    return [str(text) for column in table.columns for text in column.cells]


def in_cells(table: "Table") -> set[str]:
    return {sign for sign in SIGNS if any(sign in text for text in texts_of(table))}


def of_breakdown(cell: CellResult) -> "Table":
    arms = {"": {"breakdown": None, "decided": False}}
    study = make_study("breakdown", [cell], threshold=0.5, most=2, arms=arms)
    return breakdown.table(breakdown.arms_of(study, None), 2, 0.5, "")


def of_misspecified(cell: CellResult) -> "Table":
    return misspecified.table(misspecified.matrices_of(make_study("misspecified", [cell])), "")


def of_init_scaling(cell: CellResult) -> "Table":
    return init_scaling.table(init_scaling.curves_of(make_study("init_scaling", [cell])), {}, "")


def of_tuning(cell: CellResult) -> "Table":
    return tuning.table(tuned(make_study("tuning", [cell], **FACTS)))


@pytest.mark.parametrize("made", [of_breakdown, of_misspecified, of_init_scaling, of_tuning])
@pytest.mark.parametrize(("other", "shown"), RUNS)
def test_the_tables_of_studies(
    made: Callable[[CellResult], "Table"], other: Known, shown: str
) -> None:
    places = {"arm": "", "f": 2, "assumed": 1, "method": "ARC", "scale": 1.0, "comparison": "mine"}
    table = made(make_cell("mine", {"sf": {1: 0.8}, "foe": {1: other}}, **places))
    assert shown in texts_of(table)
    assert in_cells(table) == explained(str(table.caption)) == SIGNS.keys() & set(shown)


@pytest.mark.parametrize(("other", "shown"), RUNS)
def test_the_table_by_strength(other: Known, shown: str) -> None:
    """A strength that lacks no run does not say that another one does."""
    cell = make_cell("mine", {"sf": {1: 0.8}, "foe": {1: other}, "span": {1: 0.5}})
    table = strengths.table([cell])
    assert texts_of(table) == ["mine", shown, "50.0"]
    assert in_cells(table) == explained(str(table.caption)) == SIGNS.keys() & set(shown)


def stopped_above_the_worst(name: str) -> CellResult:
    """As ``--worst-case-only`` leaves a cell: an exact worst case, one attack a lower bound."""
    runs = [PlannedRun("sf", 1, f"{name} a", 40), PlannedRun("foe", 1, f"{name} b", 40)]
    ended = Outcome(f"{name} a", "finished", 0.7, last_accuracy=0.6, mean_last=0.5)
    outcomes = {ended.identity: ended, f"{name} b": Outcome(f"{name} b", "bounded", 0.8)}
    return CellResult(CellRecord(name, runs), outcomes)


def test_a_sweep_of_worst_cases_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its attacks are at least so much, its ends at most: each table has a sign of its own."""
    cells = [stopped_above_the_worst(f"clip={clip}") for clip in ("none", "arc")]
    monkeypatch.setenv("COLUMNS", "300")
    (whole,) = tables(cells, "")
    assert in_cells(whole) == explained(str(whole.caption)) == {"≥", "≤"}
    monkeypatch.setenv("COLUMNS", "40")
    first, ends = tables(cells, "")
    assert in_cells(first) == explained(str(first.caption)) == {"≥"}
    assert in_cells(ends) == explained(str(ends.caption)) == {"≤"}
    assert "sign flipping" in str(first.caption)
    assert "sign flipping" not in str(ends.caption)  # it has no attacks


def test_a_studys_description() -> None:
    cells = [stopped_above_the_worst("clip=none")]
    assert explained(note_of(make_study("sweep", cells), [])) == {"≤"}
    cells = [make_cell("clip=arc", {"sf": {1: 0.9}})]
    assert explained(note_of(make_study("sweep", cells), [])) == set()
    few = [make_cell(f"clip=static, clip.C={c}", {"sf": {1: 0.5}}) for c in range(300)]
    last = make_cell("clip=none", {"sf": {1: 0.1}, "foe": {1: "failed"}})
    note = note_of(make_study("sweep", [*few, last]), [])
    assert "and " in note
    assert explained(note) == set()  # the row with the bound is among those that have no room
