"""What is at most so much is not called a lower bound, in any file of numbers."""

import csv
import io

import pytest

from lit_byz.report import init_scaling, worst_case_table
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import CellRecord, CellResult, PlannedRun


def cell(other: Outcome) -> CellResult:
    runs = [PlannedRun("sf", 1, "a", 40), PlannedRun("foe", 1, "b", 40)]
    return CellResult(CellRecord("a cell", runs), {"a": Outcome("a", "finished", 0.9), "b": other})


@pytest.mark.parametrize(
    ("other", "value", "lower_bound", "kind"),
    [
        (Outcome("b", "failed"), "0.9", "False", "at most"),
        (Outcome("b", "bounded", 0.8), "0.8", "True", "at least"),
        (Outcome("b", "finished", 0.7), "0.7", "False", "exact"),
    ],
)
def test_bounds(other: Outcome, value: str, lower_bound: str, kind: str) -> None:
    texts = {
        "status": worst_case_table.csv_of([cell(other)]),
        "kind": init_scaling.csv_of({"ARC": {1.0: cell(other)}}, {}),
    }
    for column, text in texts.items():
        rows = [row for row in csv.DictReader(io.StringIO(text)) if "mean" in row.values()]
        (row,) = rows
        found = row.get("max_accuracy") or row["value"]
        assert (found, row["lower_bound"], row[column]) == (value, lower_bound, kind)
        (spread,) = [row for row in csv.DictReader(io.StringIO(text)) if "std" in row.values()]
        written = spread["max_accuracy" if column == "status" else "value"]
        assert not written  # neither one seed nor a bound has any
