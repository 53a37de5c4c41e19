"""Seeds that are begun and not complete: they count nowhere while another seed is complete."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from lit_byz.report.drawing import columns_of
from lit_byz.report.paper.claims import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Claim
from lit_byz.report.paper.experiment import Experiment, find
from lit_byz.report.paper.measures import Measured
from lit_byz.report.paper.render import csv_of
from lit_byz.report.paper.scorecard import judge, table
from lit_byz.report.paper.survey import Cell, Survey, complete
from lit_byz.report.paper.tables import tables
from lit_byz.report.paper.worst_cases import draw, draw_gain
from lit_byz.tracking.worst_case import Accuracy
from tests._each import each
from tests.report.paper._small import furnish
from tests.report.paper.test_render import made_up

# Of GM with ARC, the strongest attack on the second seed.
MISSING = "rule=gm, clip=arc | foe@coarse | seed 2"


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    furnish(tmp_path, monkeypatch)
    return find("paper/lines", ["attack=[sf,foe@coarse]"])


def cell_of(found: Survey, name: str) -> Cell:
    return next(cell for cell in found.methods if cell.example.cell == name)


def arc(found: Survey, f: int = 1) -> Cell:
    return cell_of(found, f"workers.f={f}, rule=gm, clip=arc")


def claim(relation: str, value: float, **settings: Any) -> Claim:
    where = {"rule": "gm", "clip": "arc", "workers.f": 1}
    return Claim("c", "", "", "", "paper/lines", relation, value, 0.0, where=where, **settings)


@pytest.mark.parametrize("how", ["without", "failed"])
def test_the_complete_seed_alone_counts(lines: Experiment, how: str) -> None:
    """An attack on seed 2 is missing or failed: seed 1 is the number, in every place."""
    found = made_up(lines, **{how: MISSING})
    worst = arc(found).at("coarse")
    assert (worst.kind, worst.bounds) == ("exact", {1: (0.81, 0.81)})
    (made,) = tables(found)
    assert made.rows[0][4] == "81.0 (1), 2 begun"
    assert made.rows[0][3] == "31.5 ± 0.7 (2)"
    assert "begun and left out until complete: 2 seeds of 2 cells" in made.title
    rows = list(csv.reader(io.StringIO(csv_of(found))))
    name = ["workers.f=1, rule=gm, clip=arc", "worst case, coarse"]
    values = {row[2]: row[3:] for row in rows if row[:2] == name}
    assert values["mean"] == ["0.81", "False", "exact"]
    assert (values["seeds"][0], values["seeds begun"][0]) == ("1", "2")
    judged = claim("above", 0.7)
    (verdict,) = judge([judged], {"paper/lines": found})
    assert (verdict.verdict, verdict.measured) == (REPRODUCED, "81.0 % (1), 2 begun")
    assert (verdict.plain["seeds"], verdict.plain["begun"]) == (1, 2)
    assert "81.0 % (1), 2 begun" in table([verdict]).markdown()


@pytest.mark.parametrize("how", ["without", "failed"])
def test_without_a_complete_seed_there_is_a_bound(lines: Experiment, how: str) -> None:
    found = made_up(lines, **{how: "rule=gm, clip=arc | foe@coarse"})
    worst = arc(found).at("coarse")
    assert (worst.kind, worst.seeds) == ("at most", 2)
    assert worst.bounds[2] == (0.0, pytest.approx(0.82))
    assert tables(found)[0].rows[0][4] == "≤ 81.5 (2)"
    rows = list(csv.reader(io.StringIO(csv_of(found))))
    name = ["workers.f=1, rule=gm, clip=arc", "worst case, coarse", "std"]
    assert [row[3:] for row in rows if row[:3] == name] == [["", "False", "at most"]]
    assert found.left_out() == ""
    for relation, value, verdict in (
        ("above", 0.7, UNDECIDED),
        ("above", 0.9, NOT_REPRODUCED),  # whatever the missing attack does
    ):
        one = claim(relation, value)
        assert one.verdict(one.measured(found, "coarse")) == verdict


def test_the_figures_draw_what_the_tables_say(lines: Experiment) -> None:
    found = made_up(lines, without=MISSING)
    figure = draw(found)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert not any("at most" in text for text in legend)
    assert "begun and left out" in figure.get_suptitle().replace("\n", " ")
    bound = draw(made_up(lines, without="rule=gm, clip=arc | foe@coarse"))
    legend = [text.get_text() for text in bound.legends[0].get_texts()]
    assert "at most: attacks are missing" in legend


def test_the_gain_is_that_of_complete_seeds(lines: Experiment) -> None:
    experiment = find("paper/gain", ["attack=[sf,foe@coarse]"])

    def texts(without: str) -> list[list[str]]:
        panels = draw_gain(made_up(experiment, without=without)).axes[:2]
        return [[text.get_text() for text in panel.texts] for panel in panels]

    # 31.5 and 81.5 with both seeds, 81 with the first alone.
    assert texts(MISSING) == [["32 → 82"] * 2, ["32 → 81"] * 2]
    assert texts("rule=gm, clip=arc | foe@coarse") == [["32 → 82"] * 2, ["no complete seed"]]


def test_a_difference_is_of_seeds_that_are_complete_on_both_sides(lines: Experiment) -> None:
    against = {"rule": "gm", "clip": "none", "workers.f": 1}
    one = claim("about", 0.5, against=against)
    half = one.measured(made_up(lines, without=MISSING), "coarse")
    assert half is not None
    assert half.by_seed == {1: (pytest.approx(0.5), pytest.approx(0.5))}
    assert half.begun == 2
    # Seed 1 is complete on one side, seed 2 on the other: only bounds are left.
    apart = Measured({1: (0.8, 0.8), 2: (0.0, 0.9)}, {2}).minus(
        Measured({1: (0.0, 0.4), 2: (0.3, 0.3)}, {1})
    )
    assert apart.settled() == apart
    assert apart.by_seed[1] == (pytest.approx(0.4), 0.8)


@each(
    "runs, expected",
    [
        ({"sf": Accuracy(0.9), "foe": Accuracy(0.5)}, True),
        ({"sf": Accuracy(0.9), "foe": None}, False),
        ({"sf": Accuracy(0.0), "foe": None}, False),  # no attack can do worse, but one is missing
        ({"sf": Accuracy(0.9, lower_bound=True), "foe": Accuracy(0.5)}, True),  # cannot matter
        ({"sf": Accuracy(0.4, lower_bound=True), "foe": Accuracy(0.5)}, False),
        ({"sf": None, "foe": None}, False),
    ],
)
def test_when_a_seed_is_complete(runs: dict[str, Accuracy | None], expected: bool) -> None:
    assert complete(runs) == expected


def test_a_legend_is_no_wider_than_its_figure() -> None:
    long = "at most: attacks are missing"
    assert columns_of([long] * 5, 8.4) == 3
    assert columns_of([long], 1.0) == 1
