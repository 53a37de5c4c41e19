"""Figures and tables of every kind, from made-up results of runs."""

import math
from pathlib import Path

import pytest
import yaml

from lit_byz.report.paper.experiment import Experiment, find
from lit_byz.report.paper.render import render
from lit_byz.report.paper.survey import Survey, survey
from lit_byz.report.paper.tables import Table, latex, tables
from lit_byz.report.paper.worst_cases import draw
from lit_byz.tracking.outcome import Outcome
from tests.report.paper._small import EXPERIMENTS, furnish

# What the worst of all attackers leave of each method, but for the strongest search.
LEFT = {"none": 0.3, "arc": 0.8, "static": 0.5}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return furnish(tmp_path, monkeypatch)


def accuracy(experiment: Experiment, place: int) -> float:
    point = experiment.points[place]
    if point.plain["workers"]["f"] == 0:
        return 0.95
    stronger = 0.1 if point.attack == "foe" else 0.0
    return LEFT[point.plain["clip"]["name"]] - stronger + 0.01 * point.seed


def made_up(
    experiment: Experiment, *, without: str = "", diverged: str = "", failed: str = ""
) -> Survey:
    """Every run done, but for those whose label holds ``without`` or ``failed``."""
    outcomes, metrics = {}, {}
    for place, point in enumerate(experiment.points):
        if without and without in point.label:
            continue
        if failed and failed in point.label:
            outcomes[point.identity] = Outcome(point.identity, "failed", error="it broke")
            continue
        status = "diverged" if diverged and diverged in point.label else "finished"
        value = accuracy(experiment, place)
        outcomes[point.identity] = Outcome(
            point.identity, status, value, run_id=f"{status} {value}"
        )
        metrics[point.identity] = {"test/max_accuracy": value, "test/accuracy": value}

    def history(run_id: str, key: str) -> list[tuple[int, float]]:
        status, value = run_id.split()
        steps = range(0, 100 if status == "finished" else 20, 4)
        if key == "test/accuracy":
            return [(step, float(value)) for step in steps]
        return [(step, math.exp(-step / 50)) for step in steps]

    return survey(experiment, outcomes, metrics, history)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_kind(name: str, here: Path) -> None:
    part = render(made_up(find(f"paper/{name}")), here / "out", ["png"])
    assert part.partial == ""
    assert all(path.stat().st_size > 50 for path in part.files)
    assert (part.picture is None) == (EXPERIMENTS[name]["paper"].get("form") == "table")
    for table in part.tables:
        assert all(len(row) == len(table.header) for row in table.rows)


def test_worst_cases_at_both_strengths(here: Path) -> None:
    coarse, grid = render(made_up(find("paper/lines")), here, ["png"]).tables
    names = ["CWTM, no clipping", "CWTM, ARC", "GM, no clipping", "GM, ARC", "DSGD, f = 0"]
    assert coarse.header == ["", *names]
    spread = "± 0.7 (2)"
    row = ["f = 1", f"31.5 {spread}", f"81.5 {spread}", f"31.5 {spread}", f"81.5 {spread}"]
    assert coarse.rows[0][:5] == row
    assert grid.rows[0][2] == f"71.5 {spread}"


def test_a_baseline_of_other_honest_workers_is_called_so(here: Path) -> None:
    path = here / "configs" / "experiment" / "paper" / "lines.yaml"
    content = yaml.safe_load(path.read_text())
    (dsgd,) = content["grid"]["also"]
    content["grid"]["zip"] = [{"workers.honest": [6, 7], "workers.f": [1, 2]}]
    del content["grid"]["axes"]["workers.f"]

    def drawn(*honest: int) -> tuple[list[str], list[str]]:
        content["grid"]["also"] = [{**dsgd, "workers.honest": number} for number in honest]
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        found = made_up(find("paper/lines"))
        legend = [text.get_text() for text in draw(found).legends[0].get_texts()]
        return [row[-1] for row in tables(found)[0].rows], [t for t in legend if "DSGD" in t]

    reached = "95.0 ± 0.0 (2)"
    other = "DSGD, f = 0, 6 honest workers"
    assert drawn(6) == ([reached, f"{reached}, 6 honest"], ["DSGD, f = 0", other])
    assert drawn(6, 7) == ([reached, reached], ["DSGD, f = 0"])


def test_a_seed_that_was_not_begun_at_a_strength_is_not_there(here: Path) -> None:
    found = made_up(find("paper/lines"), without="clip=arc | foe@coarse | seed 2")
    part = render(found, here, ["png"])
    assert part.partial == "partial: 30 of 34 runs, 2 of 2 seeds"
    cell = next(c for c in found.methods if c.example.cell == "workers.f=1, rule=gm, clip=arc")
    assert cell.at("coarse").kind == "exact"
    assert cell.at("coarse").seeds == 1
    assert cell.at("grid").exact
    assert found.left_out() == ""


def test_a_diverged_run_keeps_its_last_value_in_the_mean(here: Path) -> None:
    from lit_byz.report.paper.curves import curve_of

    found = made_up(find("paper/curves"), diverged="rule=gm, clip=none | foe | seed 1")
    cell = next(c for c in found.methods if c.example.cell == "rule=gm, clip=none")
    curve = curve_of(found, cell.runs("foe"), cell, "test/accuracy")
    assert {len(values) for values in curve.values()} == {2}
    assert max(curve) == 97
    assert render(found, here, ["png"]).picture is not None


def test_tables_in_every_form() -> None:
    table = Table("50 % & more", ["", "C = 2"], [["α = 0.1 | x", "≤ 31.5 ± 0.7 (2)"]])
    assert table.markdown().splitlines() == [
        *("**50 % & more**", "", "|  | C = 2 |", "| --- | ---: |"),
        "| α = 0.1 \\| x | ≤ 31.5 ± 0.7 (2) |",
    ]
    assert r"\caption{50 \% \& more}" in table.latex()
    assert r"$\alpha$ = 0.1 | x & $\leq$ 31.5 $\pm$ 0.7 (2) \\" in table.latex()
    assert "<td>≤ 31.5 ± 0.7 (2)</td>" in table.html()
    assert "50 % &amp; more" in table.html()
    assert latex("a_b^c~{}\\") == r"a\_b\textasciicircum c\textasciitilde \{\}\textbackslash "
