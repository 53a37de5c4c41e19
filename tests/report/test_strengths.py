"""Worst cases by the strength of the attack."""

import csv
import io
from pathlib import Path

import pytest
from rich.console import Console

from lit_byz.report import strengths
from lit_byz.report.rendering import SIGNS
from lit_byz.tracking.records import CellResult
from tests.report._results import Known, make_cell, text_of
from tests.report.test_figures import ink

CELLS = [
    make_cell(
        "clip=none",
        {"sf": {1: 0.5}, "foe@published": {1: 0.6}, "foe": {1: 0.2}, "span": {1: 0.1}},
    ),
    make_cell(
        "clip=arc",
        {"sf": {1: 0.9}, "foe@published": {1: 0.95}, "foe": {1: "failed"}, "span": {1: 0.4}},
    ),
]


def test_unsearched_attacks_count_at_every_strength() -> None:
    assert strengths.strengths_of(CELLS) == ["published", "grid", "span"]
    found = {s: strengths.at_strength(CELLS[0], s) for s in ("published", "grid", "span")}
    assert {s: worst.mean for s, worst in found.items() if worst is not None} == {
        "published": 0.5,
        "grid": 0.2,
        "span": 0.1,
    }
    assert strengths.at_strength(CELLS[0], "coarse") is None


def test_a_failed_search_leaves_a_bound() -> None:
    worst = strengths.at_strength(CELLS[1], "grid")
    assert worst is not None
    assert (worst.kind, worst.mean) == ("at most", 0.9)
    text = io.StringIO()
    Console(file=text, width=120).print(strengths.table(CELLS))
    assert "≤ 90.0" in text.getvalue()
    rows = list(csv.DictReader(io.StringIO(strengths.csv_of(CELLS))))
    assert [row["kind"] for row in rows] == ["exact"] * 4 + ["at most", "exact"]


def thresholds(*foe: Known) -> list[CellResult]:
    """A cell for each threshold, 1, 2, …"""
    return [
        make_cell(f"clip=static, clip.C={place}", {"sf": {1: 0.95}, "foe": {1: value}})
        for place, value in enumerate(foe, 1)
    ]


@pytest.mark.parametrize(
    ("foe", "shown"),
    [
        ((0.4, 0.6), "60.0 at C = 2"),
        ((">= 0.41", 0.6), "≥ 60.0, ≤ 95.0"),
        ((">= 0.7", 0.6), "≥ 70.0, ≤ 95.0"),
        ((None, 0.6), "≥ 60.0, ≤ 95.0"),
        ((">= 0.41", 0.95), "95.0 at C = 2"),  # no threshold can be better
        ((None, None), "≤ 95.0"),
    ],
)
def test_the_best_static_threshold_is_named_where_no_other_can_be_better(
    foe: tuple[Known, ...], shown: str
) -> None:
    text = text_of(strengths.table(thresholds(*foe)))
    *_, row = [line for line in text.splitlines() if "│" in line]
    assert [part.strip() for part in row.strip("│").split("│")] == ["best static", shown]
    rows = list(csv.DictReader(io.StringIO(strengths.csv_of(thresholds(*foe)))))
    found = [row for row in rows if row["cell"].startswith("best static")]
    if " at " in shown:
        assert [(row["cell"], row["kind"]) for row in found] == [("best static, C = 2", "exact")]
    else:
        written = [f"{SIGNS[row['kind']]}{100 * float(row['worst_case']):.1f}" for row in found]
        assert ", ".join(written) == shown
        assert {(row["cell"], row["std"], row["seeds"]) for row in found} == {
            ("best static", "", "1")
        }


def test_thresholds_without_a_result_have_no_best() -> None:
    cells = [make_cell(f"clip=static, clip.C={c}", {"foe": {1: None}}) for c in (1, 2)]
    assert strengths.best_static(cells, "grid") == (None, [])


def test_figure(tmp_path: Path) -> None:
    strengths.figure(CELLS, "digits", tmp_path / "some.png")
    strengths.figure([], "digits", tmp_path / "none.png")
    assert ink(tmp_path / "some.png") > ink(tmp_path / "none.png")


def test_the_best_static_threshold_may_be_another_at_every_strength() -> None:
    static = [
        make_cell("f=1, clip=static, clip.C=2", {"foe@published": {1: 0.9}, "foe": {1: 0.2}}),
        make_cell("f=1, clip=static, clip.C=20", {"foe@published": {1: 0.7}, "foe": {1: 0.4}}),
    ]
    assert not strengths.static_groups(static[:1])
    text = io.StringIO()
    Console(file=text, width=120).print(strengths.table([*CELLS, *static]))
    (row,) = [line for line in text.getvalue().splitlines() if "best static" in line]
    assert [part.strip() for part in row.split("│")[1:4]] == [
        *("f=1, best static", "90.0 at C = 2", "40.0 at C = 20"),
    ]
    rows = list(csv.reader(io.StringIO(strengths.csv_of([*CELLS, *static]))))
    assert ["f=1, best static, C = 20", "grid", "0.4", "", "1", "exact"] in rows
