"""A study as tables: what is not certain is not said."""

import csv
import io
from dataclasses import replace

import pandas as pd
import pytest

from lit_byz.report import worst_case_table
from lit_byz.report.frames import StudyFrame
from tests.report._results import Known, make_cell, make_study, with_ends


@pytest.mark.parametrize(
    ("foe", "sf", "weakest"),
    [
        ((0.40, 0.56), (0.45, 0.55), "foe"),
        ((0.40, ">= 0.56"), (">= 0.45", 0.55), None),  # foe may be 0.70 and sf 0.50
        ((0.40, 0.50), (">= 0.45", ">= 0.55"), "foe"),  # whatever sf is
        ((0.0, 0.0), (None, None), "foe"),  # nothing is below 0
        ((0.40, None), (0.5, 0.5), None),
    ],
)
def test_the_weakest_attack_is_named_where_it_can_be_no_other(
    foe: tuple[Known, Known], sf: tuple[Known, Known], weakest: str | None
) -> None:
    known = {"foe": dict(enumerate(foe, 1)), "sf": dict(enumerate(sf, 1))}
    frame = StudyFrame.of(make_study("sweep", [make_cell("", known)]), {}, {})
    assert list(frame["weakest_attack"]) == [weakest]


def test_runs_say_on_which_images_they_are_judged() -> None:
    cells = [
        make_cell("tested", {"sf": {1: 0.5}}, "trial", trial=0),
        make_cell("held out", {"sf": {1: 0.5}}, "trial", trial=1, judged_on="val"),
    ]
    frame = StudyFrame.of(make_study("tuning", cells), {}, {})
    assert list(frame.runs["judged_on"]) == ["test", "validation"]
    assert frame["judged_on"][1] == "validation"


def test_the_ends_of_runs_are_those_of_the_csv() -> None:
    """What is exact as it is, what is a bound as one, and nothing where the file has nothing."""
    cells = [
        with_ends(make_cell("exact", {"sf": {1: 0.5, 2: 0.7}, "foe": {1: 0.6, 2: 0.8}})),
        with_ends(make_cell("bounded", {"sf": {1: 0.5}, "foe": {1: ">= 0.8"}})),
        with_ends(make_cell("failed", {"sf": {1: "failed"}, "foe": {1: None}})),
        make_cell("not recorded", {"sf": {1: 0.5}}),
    ]
    frame = StudyFrame.of(make_study("sweep", cells), {}, {})
    rows = list(csv.DictReader(io.StringIO(worst_case_table.csv_of(cells))))
    runs = {(row["cell"], row["attack"], row["seed"]): row for row in rows}
    for name in ("last_accuracy", "mean_last_5"):
        for run in frame.runs.to_dict("records"):
            written = runs[run["cell"], run["attack"], str(run["seed"])]
            assert ("" if pd.isna(run[name]) else str(run[name])) == written[name]
        for cell in frame.to_dict("records"):
            mean, std = (runs[cell["cell"], "worst case", what][name] for what in ("mean", "std"))
            kind = runs[cell["cell"], "worst case", "mean"][f"{name}_kind"]
            assert ("" if kind == "unknown" else str(cell[f"{name}_at_most"])) == mean
            assert ("" if pd.isna(cell[name]) else str(cell[name])) == mean * (kind == "exact")
            assert ("" if pd.isna(cell[f"{name}_std"]) else str(cell[f"{name}_std"])) == std
    assert list(frame["last_accuracy"].notna()) == [True, False, False, False]
    assert list(frame["status"]) == ["exact", "exact", "unknown", "exact"]
    columns = [column for column in frame if "last" in column]
    pd.testing.assert_frame_equal(frame.cells[columns], pd.DataFrame(frame[columns]))


def test_the_ends_are_on_the_images_that_are_judged_on() -> None:
    cell = with_ends(make_cell("held out", {"sf": {1: 0.5}}, judged_on="val"))
    (identity,) = cell.outcomes
    made = replace(cell.outcomes[identity], max_val_accuracy=0.4, last_val_accuracy=0.3)
    cell = replace(cell, outcomes={identity: replace(made, val_mean_last=0.2)})
    frame = StudyFrame.of(make_study("sweep", [cell]), {}, {})
    for table in (frame, frame.runs):
        assert (table["last_accuracy"].item(), table["mean_last_5"].item()) == (0.3, 0.2)
