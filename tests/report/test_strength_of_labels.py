"""The strength that an attack's label names, in records of now and of before."""

import pytest

from lit_byz.report import strengths
from tests.report._results import make_cell


@pytest.mark.parametrize(
    ("label", "strength"),
    [
        ("foe", "grid"),
        ("foe@coarse", "coarse"),
        ("foe(search=coarse)", "coarse"),
        ("foe, search=coarse", "coarse"),
        ("alie@coarse, points=40", "coarse"),
        ("foe, assumed_rule=cwtm", "grid"),
        ("mine.Attack@published", "published"),
        ("foe, tau=2", None),
        ("foe(tau=2.5)", None),
        ("foe@coarse, tau=2", None),
        ("foe, tau=None", "grid"),
        ("mine.Attack, my_tau=2", None),
        ("span, budget=9", "span"),
        ("mimic", None),
    ],
)
def test_strength_of(label: str, strength: str | None) -> None:
    assert strengths.strength_of(label) == strength


def test_a_fixed_factor_counts_at_every_strength() -> None:
    cell = make_cell(
        "", {"foe@published": {1: 0.9}, "foe": {1: 0.5}, "foe, tau=2": {1: 0.7}, "sf": {1: 0.95}}
    )
    found = {s: strengths.at_strength(cell, s) for s in strengths.strengths_of([cell])}
    assert {s: worst.mean for s, worst in found.items() if worst is not None} == {
        "published": 0.7,
        "grid": 0.5,
    }
