"""Strengths by name."""

import re

import pytest
import torch

from lit_byz.attacks import (
    ALIE,
    ATTACKS,
    FOE,
    STRENGTHS,
    SearchedAttack,
    parse_strength,
    strength_label,
)
from lit_byz.errors import BadRequest
from lit_byz.robust import CWTM, NNM, RobustAggregator

SEARCHED = {name: ATTACKS[name] for name in ATTACKS if issubclass(ATTACKS[name], SearchedAttack)}
EVERY = [(name, search) for name, attack in SEARCHED.items() for search in attack.searches()]


def test_every_search_is_described() -> None:
    assert {search for _, search in EVERY} == set(STRENGTHS)
    assert all(text and "\n" not in text for text in STRENGTHS.values())


@pytest.mark.parametrize(("name", "search"), EVERY)
def test_there_and_back(name: str, search: str) -> None:
    assert parse_strength(f"{name}@{search}") == (name, search)
    label = strength_label(name, search)
    assert label == (name if search == "grid" else f"{name}@{search}")
    assert SEARCHED[name](search=parse_strength(label)[1] or "grid").search == search


@pytest.mark.parametrize("name", list(ATTACKS))
def test_a_name_alone(name: str) -> None:
    assert parse_strength(name) == (name, None)
    assert strength_label(name, None) == name


def test_a_dotted_path_has_strengths_too() -> None:
    assert parse_strength("lit_byz.attacks.FOE@coarse") == ("lit_byz.attacks.FOE", "coarse")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "attack '': must be NAME or NAME@SEARCH, such as foe@published"),
        ("@published", "attack '@published': must be NAME or NAME@SEARCH, such as foe@published"),
        ("foe@", "attack 'foe@': must be NAME or NAME@SEARCH, such as foe@published"),
        ("fo@published", "unknown attack 'fo': did you mean 'foe'?"),
        ("fo", "unknown attack 'fo': did you mean 'foe'?"),
        (
            "foe@publised",
            "attack 'foe@publised': unknown search 'publised': did you mean 'published'?",
        ),
        (
            "foe@z_max",
            "attack 'foe@z_max': unknown search 'z_max': there is coarse, grid, line, published",
        ),
        ("foe@grid@line", "attack 'foe@grid@line': unknown search 'grid@line': "),
        ("sf@grid", "attack 'sf@grid': sf has no search, so it must be sf"),
    ],
)
def test_what_is_not_a_strength(text: str, message: str) -> None:
    with pytest.raises(BadRequest, match=f"^{re.escape(message)}"):
        parse_strength(text)


@pytest.mark.parametrize(
    ("attack", "effort"),
    [
        (FOE(), {"low": 0.0, "high": 1e5, "points": 320}),
        (FOE(search="line"), {"low": 0.0, "high": 1e5, "points": 320, "evaluations": 16}),
        (FOE(search="published"), {"start": 1.0, "evaluations": 20}),
        (ALIE(search="published"), {"start": 0.0, "evaluations": 20}),
        (FOE(search="coarse"), {"low": 0.5, "high": 10.0, "points": 20}),
        (ALIE(search="coarse"), {"low": 0.5, "high": 5.0, "points": 20, "mirrored": True}),
        (ALIE(search="z_max"), {}),
        (FOE(low=-1, points=30), {"low": -1.0, "high": 1e5, "points": 30}),
    ],
    ids=repr,
)
def test_every_search_has_its_own_defaults(
    attack: SearchedAttack, effort: dict[str, object]
) -> None:
    assert attack.effort == effort


@pytest.mark.parametrize("attack", [FOE, ALIE])
@pytest.mark.parametrize("search", ["grid", "line", "published", "coarse"])
def test_a_default_that_is_given_changes_nothing(attack: type[SearchedAttack], search: str) -> None:
    x = torch.randn(8, 40, generator=torch.Generator().manual_seed(3))
    server = RobustAggregator(CWTM(2), mix=NNM(2))
    own = attack(search=search)
    names = ("low", "high", "points", "evaluations")
    given = {name: value for name, value in own.effort.items() if name in names}
    assert torch.equal(own(x, 2, server), attack(search=search, **given)(x, 2, server))
