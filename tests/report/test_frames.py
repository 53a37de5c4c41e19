"""A study as tables: what is not certain is not said."""

import pytest

from lit_byz.report.frames import StudyFrame
from tests.report._results import Known, make_cell, make_study


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
