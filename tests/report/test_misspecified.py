"""Table, file and figure of the mis-specified f."""

import csv
import io
import json
from pathlib import Path

from lit_byz.report.misspecified import csv_of, figure, matrices_of, table
from lit_byz.report.render import render
from tests.report._results import Known, make_cell, make_study, no_other, text_of, with_ends
from tests.report.test_figures import ink


def at(assumed: int, real: int, sf: Known, foe: Known = 0.9):  # type: ignore[no-untyped-def]
    name = f"server.f={assumed}, workers.f={real}"
    known = {"sf": {1: sf, 2: sf}, "foe": {1: foe, 2: 0.8}}
    return make_cell(name, known, arm="clip=arc", assumed=assumed, f=real)


CELLS = [at(1, 1, 0.8), at(1, 2, 0.2), at(2, 1, ">= 0.6"), at(2, 2, 0.7, "failed")]
STUDY = make_study("misspecified", CELLS, left_out=[[3, 0]])
MATRICES = matrices_of(STUDY)


def test_worst_cases_by_declared_and_real_f() -> None:
    matrix = MATRICES["clip=arc"]
    assert list(matrix) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert [matrix[pair].kind for pair in matrix] == ["exact", "exact", "at least", "at most"]
    assert matrix[1, 2].mean == 0.2


def test_table() -> None:
    text = text_of(table(MATRICES, "digits"))
    for part in ("80.0 ± 0.0", "≥ 60.0 │", "≤ 70.0 (1 failed) │", "real f=2", "declared f̂"):
        assert part in text
    assert "≥: at least; ≤: at most" in text


def test_a_pair_of_which_nothing_is_known_is_not_left_out(tmp_path: Path) -> None:
    """Else it would look as those do that cannot be."""
    nothing = make_cell("", {"sf": {1: "failed"}}, arm="clip=arc", assumed=3, f=1)
    found = render(make_study("misspecified", [*CELLS, nothing], left_out=[]), tmp_path, no_other)
    assert "unknown (1 failed)" in text_of(*found.printed)
    (arm,) = found.content["arms"]
    assert arm["worst_cases"][-1] == {
        **{"declared_f": 3, "f": 1, "mean": None, "std": None, "kind": "unknown"},
    }
    last = (tmp_path / "declared.csv").read_text().splitlines()[-1]
    assert last == "clip=arc,3,1,,,1,unknown,,unknown,,unknown"
    assert ink(tmp_path / "declared.png") > 0.1


def test_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_of(MATRICES, {}))))
    assert [(row["declared_f"], row["real_f"]) for row in rows] == [
        *(("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")),
    ]
    assert [row["kind"] for row in rows] == ["exact", "exact", "at least", "at most"]
    assert [row["std"] for row in rows] == ["0.0", "0.0", "", ""]


def test_csv_has_the_ends(tmp_path: Path) -> None:
    cells = [with_ends(cell) for cell in CELLS]
    render(make_study("misspecified", cells, left_out=[]), tmp_path, no_other)
    rows = list(csv.DictReader((tmp_path / "declared.csv").read_text().splitlines()))
    for row, cell in zip(rows, cells, strict=True):
        for name, measure in (("last_accuracy", "last_accuracy"), ("mean_last_5", "mean_last")):
            found = cell.worst_cases[measure]
            assert (row[name], row[f"{name}_kind"]) == (str(found.mean), found.kind)


def test_figure(tmp_path: Path) -> None:
    figure(MATRICES, "digits", tmp_path / "heat.png")
    figure({}, "nothing yet", tmp_path / "none.png")
    assert ink(tmp_path / "heat.png") > 0.1


def test_report(tmp_path: Path) -> None:
    found = render(STUDY, tmp_path, no_other)
    text = text_of(*found.printed)
    assert "digits, extreme, 6 honest workers: 16 runs" in text
    assert "left out, for want of 2 f̂ < n and 2 f < n: (f̂=3, f=0)" in text
    content = json.loads(json.dumps(found.content))
    assert content["left_out"] == [[3, 0]]
    assert list(content["failed"]) == ["server.f=2, workers.f=2 | foe | seed 1"]
    (arm,) = content["arms"]
    assert arm["worst_cases"][2] == {
        **{"declared_f": 2, "f": 1, "mean": 0.6, "std": None, "kind": "at least"},
    }
    assert {path.name for path in found.files} == {
        *("declared.png", "declared.pdf", "declared.svg", "declared.csv"),
    }
