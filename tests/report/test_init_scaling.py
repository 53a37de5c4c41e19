"""Tables, files and figures of the study of initialisation."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from lit_byz.report import worst_case_table
from lit_byz.report.frames import StudyFrame
from lit_byz.report.init_scaling import csv_of, curves_of, figure, table
from lit_byz.report.initial_gradients import COLUMNS, InitialGradients, growth, norms_of
from lit_byz.report.render import render
from lit_byz.tracking.records import CellResult
from tests.report._results import (
    Known,
    ends_in,
    make_cell,
    make_study,
    no_other,
    text_of,
    with_ends,
)
from tests.report.test_figures import ink

SCALES = (1.0, 2.0, 4.0)


def curve_cell(method: str, mu: float, known: Mapping[str, Mapping[int, Known]]) -> CellResult:
    return make_cell(f"{method} {mu}", known, method=method, scale=mu)


def gradient_cell(mu: float, problem: str = "", seeds: Sequence[int] = (1,)) -> CellResult:
    runs: dict[int, Known] = dict.fromkeys(seeds, 0.1)
    place = {"problem": problem, "scale": mu}
    cell = make_cell(f"initial {problem} {mu}", {"none": runs}, "initial_gradients", **place)
    norms = {
        run.identity: {
            "honest/max_norm": 3 * run.seed * mu**2.5,
            "honest/average_norm": run.seed * mu**2.5,
        }
        for run in cell.record.runs
    }
    return replace(cell, metrics=norms)


CELLS = [
    curve_cell(
        method,
        mu,
        {
            attack: {seed: max(0.1, top - 0.05 * mu * mu - 0.02 * seed) for seed in (1, 2)}
            for attack in ("sf", "foe")
        },
    )
    for method, top in (("DSGD", 0.95), ("no clipping", 0.5), ("ARC", 0.9))
    for mu in SCALES
]
STUDY = make_study("init_scaling", [*CELLS, *map(gradient_cell, SCALES)])
CURVES, NORMS = curves_of(STUDY), norms_of(STUDY)


def shown(*cells: CellResult) -> str:
    return text_of(table(curves_of(make_study("init_scaling", cells)), NORMS, "digits"))


def test_curves_and_norms() -> None:
    assert list(CURVES) == ["no clipping", "ARC", "DSGD"]  # the baseline comes last
    assert all(list(by_scale) == list(SCALES) for by_scale in CURVES.values())
    assert {"": {mu: {1: InitialGradients(3 * mu**2.5, mu**2.5)} for mu in SCALES}} == NORMS
    not_read = make_cell("initial", {"none": {1: None}}, "initial_gradients", problem="", scale=1.0)
    assert norms_of(make_study("init_scaling", [not_read])) == {}


def test_table() -> None:
    text = " ".join(text_of(table(CURVES, NORMS, "digits")).split())
    assert "ARC" in text
    assert "82.0 ± 1.4" in text  # 0.9 − 0.05 − 0.02 · (1, 2)
    assert "ζ, mean norm: largest and mean norm of the honest workers' initial gradients" in text
    assert "ζ" not in text_of(table(CURVES, {}, "digits"))
    assert "≥ 50.0" in shown(curve_cell("ARC", 1.0, {"sf": {1: ">= 0.5"}}))


def test_table_says_what_is_not_known() -> None:
    assert "≤ 50.0 (1 missing)" in shown(curve_cell("ARC", 1.0, {"sf": {1: 0.5}, "foe": {1: None}}))
    assert "≤ 50.0 (1 failed)" in shown(
        curve_cell("ARC", 1.0, {"sf": {1: 0.5}, "foe": {1: "failed"}})
    )
    assert "unknown (1 failed)" in shown(curve_cell("ARC", 1.0, {"sf": {1: "failed"}}))


def test_growth_is_the_power() -> None:
    assert growth(NORMS[""]) == pytest.approx(2.5)
    assert growth({1.0: NORMS[""][1.0]}) is None
    assert growth({1.0: {1: InitialGradients(0, 0)}, 2.0: {1: InitialGradients(1, 1)}}) is None


def test_csv_has_every_number() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_of(CURVES, NORMS))))
    kinds = [row["what"] for row in rows]
    assert kinds.count("max_accuracy") == 3 * 3 * 2 * 2
    assert kinds.count("worst_case") == 3 * 3 * 2
    assert kinds.count("initial_gradient_largest") == kinds.count("initial_gradient_mean") == 3


def test_csv_has_a_line_for_runs_without_a_result() -> None:
    cell = curve_cell("static", 2.0, {"sf": {1: 0.4, 2: None}, "foe": {1: "failed", 2: 0.5}})
    text = csv_of({"static": {2.0: cell}}, NORMS)
    assert {line.count(",") for line in text.splitlines()} == {11}
    found = {(row["attack"], row["seed"]): row for row in csv.DictReader(io.StringIO(text))}
    assert found["foe", "1"]["kind"] == "failed"
    assert found["sf", "2"]["kind"] == "missing"
    assert found["foe", "1"]["value"] == found["sf", "2"]["value"] == ""
    assert found["sf", "1"]["kind"] == "exact"


def test_figure(tmp_path: Path) -> None:
    failed = curve_cell("static", 2.0, {"sf": {1: 0.4}, "foe": {1: "failed"}})
    figure(CURVES, NORMS, "digits", tmp_path / "both.png")
    figure({**CURVES, "static": {2.0: failed}}, NORMS, "digits", tmp_path / "bounds.png")
    figure(CURVES, {}, "digits", tmp_path / "one.png")
    figure({}, {}, "nothing yet", tmp_path / "none.png")
    inks = [ink(tmp_path / f"{name}.png") for name in ("none", "one", "both", "bounds")]
    assert inks == sorted(inks)
    assert inks[2] > inks[0]


def test_figure_says_what_the_signs_of_bounds_are(tmp_path: Path) -> None:
    failed = curve_cell("static", 2.0, {"sf": {1: 0.4}, "foe": {1: "failed"}})
    figure({**CURVES, "static": {2.0: failed}}, NORMS, "digits", tmp_path / "bounds.svg")
    assert "(≤ at most)" in (tmp_path / "bounds.svg").read_text()
    figure(CURVES, NORMS, "digits", tmp_path / "exact.svg")
    assert "at most" not in (tmp_path / "exact.svg").read_text()


def test_report(tmp_path: Path) -> None:
    found = render(STUDY, tmp_path, no_other)
    text = " ".join(text_of(*found.printed).split())
    assert "6 honest workers: 39 runs, 3 of them for the initial gradients" in text
    assert "ζ grows as μ^2.50, the slope of log ζ against log μ" in text
    assert found.metrics == {"initial_gradient/power": pytest.approx(2.5)}
    content = json.loads(json.dumps(found.content))
    assert len(content["worst_cases"]) == 9
    assert len(content["initial_gradients"]) == 3
    assert (content["failed"], content["missing"]) == ({}, [])


def test_a_frame_has_the_gradients_of_the_table_and_the_csv() -> None:
    seeds = (1, 2)
    initial = [gradient_cell(mu, seeds=seeds) for mu in SCALES]
    study = make_study("init_scaling", [*CELLS, *initial])
    frame = StudyFrame.of(study, {}, {})
    text = csv_of(curves_of(study), norms_of(study))
    rows = list(csv.DictReader(io.StringIO(text)))
    for column in COLUMNS.values():
        written = {
            (float(row["mu"]), int(row["seed"])): float(row["value"])
            for row in rows
            if row["what"] == column
        }
        assert len(written) == len(SCALES) * len(seeds)
        for table_ in (frame, frame.cells):
            means = [fmean(written[mu, seed] for seed in seeds) for mu in table_["scale"]]
            assert list(table_[column]) == pytest.approx(means, abs=1e-12)
        of_gradients = frame.runs[frame.runs["cell"].str.startswith("initial")]
        assert list(of_gradients[column]) == list(written.values())
        assert frame.runs[column].notna().sum() == len(written)
    assert set(frame["method"]) == {"DSGD", "no clipping", "ARC"}
    assert "initial_gradient_mean" not in StudyFrame.of(make_study("sweep", CELLS), {}, {})


def test_each_row_of_a_frame_has_the_gradients_of_its_own_problem() -> None:
    """Also where a problem's own are not there: those of another one are not taken for them."""
    names = ["model=cnn", "model=mlp", ""]
    initial = [gradient_cell(1.0, "", [1]), gradient_cell(1.0, "model=cnn", [2])]
    known: dict[int, Known] = {1: None}
    nothing = {"problem": "model=mlp", "scale": 1.0}
    initial.append(make_cell("none", {"none": known}, "initial_gradients", **nothing))
    methods = [", ".join(filter(None, ("ARC", "rule=gm", name))) for name in names]
    methods += [", ".join(filter(None, ("DSGD", name))) for name in names]
    cells = [curve_cell(method, 1.0, {"sf": {1: 0.5}}) for method in methods]
    frame = StudyFrame.of(make_study("init_scaling", [*cells, *initial]), {}, {})
    assert list(frame["initial_gradient_mean"].fillna(0)) == [2, 0, 1, 2, 0, 1]


def test_csv_has_the_ends_beside() -> None:
    cell = with_ends(curve_cell("ARC", 1.0, {"sf": {1: 0.5, 2: 0.7}, "foe": {1: 0.6, 2: ">= 0.8"}}))
    rows = list(csv.DictReader(io.StringIO(csv_of({"ARC": {1.0: cell}}, NORMS))))
    assert ends_in(rows) == ends_in(csv.DictReader(io.StringIO(worst_case_table.csv_of([cell]))))
    gradients = [row for row in rows if row["what"].startswith("initial")]
    assert {row["last_accuracy_kind"] for row in gradients} == {""}
