"""Tables, files and figures of breakdown points."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lit_byz.report.breakdown import (
    ArmResult,
    FullAnswer,
    Level,
    answer,
    arms_of,
    csv_of,
    figure,
    level,
    scan,
    table,
)
from lit_byz.report.render import render
from lit_byz.tracking.records import CellResult, StudyResult
from lit_byz.tracking.worst_case import Accuracy, worst_case
from tests.report._results import Known, make_cell, make_study, no_other, text_of, with_ends
from tests.report.test_figures import ink

SCANNED = FullAnswer(3, False, {f: Level(v, 0.0, 1) for f, v in enumerate((0.9, 0.7, 0.3, 0.6), 1)})
ARMS = {
    "clip=none": ArmResult({2: Level(0.3, 0.0, 1, "at most"), 1: Level(0.2, 0.1, 2)}, 1),
    "clip=arc": ArmResult(
        {2: Level(0.7, 0.0, 1), 3: Level(0.3, 0.0, 1, "at most")}, 3, scanned=SCANNED
    ),
    "clip=static": ArmResult({2: Level(0.55, 0.0, 1, "at least")}, None, decided=False),
}


def probed(f: int, sf: Known, lf: Known = None, **facts: bool) -> CellResult:
    """A cell of one arm at one f."""
    known = {"sf": {1: sf}, "lf": {1: lf}}
    return make_cell(f"workers.f={f}", known, arm="", f=f, **facts)


def searched(cells: list[CellResult], breakdown: int | None, **facts: object) -> StudyResult:
    arms = {"": {"breakdown": breakdown, "decided": True}}
    fixed = {"most": 4, "threshold": 0.5, "runs_used": 4, "runs_full_grid": 8, "arms": arms}
    return make_study("breakdown", cells, **{**fixed, **facts})


def test_table() -> None:
    text = text_of(table(ARMS, 4, 0.5, "digits"))
    for part in ("≤ 30.0", "20.0 ± 10.0", "≥ 55.0", "f = 3, not monotone", "undecided"):
        assert part in text
    assert "threshold 50; ≥: at least; ≤: at most" in text
    assert answer(None, True, 4) == "holds to f = 4"


def test_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_of(ARMS))))
    assert [row["by"] for row in rows].count("full grid") == 4
    assert {row["kind"] for row in rows} == {"exact", "at most", "at least"}


def test_csv_has_the_ends_of_the_search_and_of_the_full_grid() -> None:
    cells = [with_ends(probed(1, 0.8, 0.75)), with_ends(probed(2, 0.3, decided=True))]
    whole = [*cells[:1], with_ends(probed(2, 0.3, 0.6))]
    made = arms_of(searched(cells, 2), make_study("sweep", whole))
    written = list(csv.DictReader(io.StringIO(csv_of(made))))
    assert [row["by"] for row in written] == ["search"] * 2 + ["full grid"] * 2
    for row, cell in zip(written, [*cells, *whole], strict=True):
        for name, measure in (("last_accuracy", "last_accuracy"), ("mean_last_5", "mean_last")):
            found = cell.worst_cases[measure]
            assert (row[name], row[f"{name}_kind"]) == (str(found.mean), found.kind)


def test_a_bound_has_its_seeds_and_no_spread() -> None:
    cell = make_cell("", {"sf": {1: 0.4, 2: 0.3, 3: 0.2}, "lf": {1: None, 2: 0.9, 3: 0.9}})
    below, above = level(cell.worst_case, 0.5), level(cell.worst_case, 0.1)
    assert (below.kind, below.seeds, str(below)) == ("at most", 3, "≤ 30.0")
    assert (above.kind, above.seeds, str(above)) == ("at least", 3, "≥ 16.7")
    (row,) = csv.DictReader(io.StringIO(csv_of({"": ArmResult({2: below}, 2)})))
    assert (row["worst_case"][:3], row["std"], row["seeds"]) == ("0.3", "", "3")


def test_figure(tmp_path: Path) -> None:
    figure(ARMS, 4, 0.5, "digits", tmp_path / "all.png")
    figure({}, 4, 0.5, "digits", tmp_path / "none.png")
    assert ink(tmp_path / "all.png") > ink(tmp_path / "none.png")


accuracies = st.floats(0, 1)


@given(
    st.dictionaries(
        st.integers(1, 4),
        st.lists(st.tuples(accuracies, st.integers(0, 2), accuracies), min_size=2, max_size=2),
        min_size=1,
    ),
    accuracies,
)
def test_what_is_shown_of_a_level_is_true(
    table: dict[int, list[tuple[float, int, float]]], threshold: float
) -> None:
    """Whatever part of the runs is known: a value, or a bound from the side that is named."""
    truth = worst_case(
        {s: {str(i): Accuracy(v[0]) for i, v in enumerate(r)} for s, r in table.items()}
    )
    known = worst_case(
        {
            seed: {
                str(place): (None, Accuracy(value * share, True), Accuracy(value))[state]
                for place, (value, state, share) in enumerate(runs)
            }
            for seed, runs in table.items()
        }
    )
    shown = level(known, threshold)
    if shown.kind == "at least":
        assert threshold <= shown.mean <= truth.mean
    elif shown.kind == "at most":
        assert shown.mean >= truth.mean
    elif shown.kind == "unknown":
        assert not known.known
    else:
        assert shown.mean == truth.mean


def test_a_report_says_why_a_level_is_a_bound_or_unknown(tmp_path: Path) -> None:
    failed, nothing = probed(2, 0.7, "failed"), probed(3, "failed")
    cells = [failed, nothing, probed(1, 0.2, decided=True)]
    undecided = {"": {"breakdown": None, "decided": False}}
    found = render(searched(cells, None, arms=undecided), tmp_path, no_other)
    text = text_of(*found.printed)
    assert "│ ≤ 20.0 │ ≤ 70.0 (1 failed) │ unknown (1 failed, 1 missing) │" in text
    levels = json.loads(json.dumps(found.content))["arms"][0]["levels"]
    assert (levels["2"]["failed"], levels["2"]["missing"]) == (1, 0)
    assert (levels["3"]["mean"], levels["3"]["kind"]) == (None, "unknown")
    rows = csv.DictReader((tmp_path / "breakdown.csv").read_text().splitlines())
    written = [(row["f"], row["worst_case"], row["kind"]) for row in rows]
    assert written == [("1", "0.2", "at most"), ("2", "0.7", "at most"), ("3", "", "unknown")]


def test_scan_of_the_full_grid() -> None:
    falling = [probed(f, v, 0.9) for f, v in enumerate((0.8, 0.7, 0.3, 0.2), 1)]
    found = scan(falling, 4, 0.5)
    assert found is not None
    assert (found.breakdown, found.monotone) == (3, True)
    found = scan([*falling[:3], probed(4, 0.6, 0.7)], 4, 0.5)
    assert found is not None
    assert (found.breakdown, found.monotone) == (3, False)
    found = scan([probed(f, 0.8, 0.9) for f in (1, 2, 3, 4)], 4, 0.5)
    assert found is not None
    assert (found.breakdown, found.monotone) == (None, True)


@pytest.mark.parametrize("lost", [None, "failed", "interrupted"])
def test_a_scan_with_runs_missing_has_no_answer(lost: Known) -> None:
    """The first f that is seen to break need not be the first that does."""
    assert scan([probed(1, 0.8, lost), probed(2, 0.3, 0.9)], 2, 0.5) is None
    assert scan([], 2, 0.5) is None


def test_report(tmp_path: Path) -> None:
    cells = [probed(2, 0.8, 0.7), probed(3, 0.3, decided=True)]
    found = render(searched(cells, 3), tmp_path, no_other)
    text = text_of(*found.printed)
    assert "one arm: breaks down at f = 3 of 9 workers" in text
    assert "bisection: 4 runs, 50 % of the full grid's 8" in text
    assert found.metrics == {"breakdown/f": 3.0, "breakdown/runs_used": 4.0}
    content = json.loads(json.dumps(found.content))
    assert content["missing"] == []
    (arm,) = content["arms"]
    assert arm["breakdown_f"] == 3
    assert arm["levels"]["3"]["kind"] == "at most"
    assert "full_grid" not in arm


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((0.8, 0.7, 0.3, 0.2), "full grid: the same answer for every arm"),
        ((0.4, 0.7, 0.3, 0.2), "full grid: another answer for one arm: not monotone in f"),
        ((0.8, 0.7, 0.3, None), "full grid: incomplete"),
    ],
)
def test_report_beside_the_full_grid(
    values: tuple[float | None, ...], words: str, tmp_path: Path
) -> None:
    full = make_study("sweep", [probed(f, value, 0.9) for f, value in enumerate(values, 1)])
    study = searched([probed(2, 0.7, 0.9), probed(3, 0.3)], 3, full_grid="the grid's id")
    found = render(study, tmp_path, {"the grid's id": full}.__getitem__)
    assert words in text_of(*found.printed)
    assert ("full grid" in (tmp_path / "breakdown.csv").read_text()) is (None not in values)
