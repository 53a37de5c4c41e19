"""Points of a grid that share what they have in common, against configs composed one by one."""

import json
from pathlib import Path
from typing import Any

import pytest

from lit_byz.config.compose import compose_plain
from lit_byz.config.grid import Grid, points
from lit_byz.config.grid_source import read_grid
from lit_byz.config.identity import identify
from lit_byz.config.settled import once, settled
from lit_byz.errors import BadRequest

BASE: dict[str, Any] = {"dataset": "digits", "model": "logreg"}
ATTACKS = ["sf", "lf", "mimic", "foe@coarse", "alie", {"name": "foe", "tau": 2.0}, "gaussian"]
GRIDS = {
    "seeds and attacks": Grid(
        BASE,
        {
            "attack": ATTACKS,
            "clip": ["none", "arc", {"name": "static", "C": 2}],
            "mix": ["none", "bucketing"],
            "seed": [3, 1, 2, 0],
        },
    ),
    "seeds first": Grid(BASE, {"seed": [1, 2, 3], "rule": ["cwtm", "gm"], "attack": ["sf", "foe"]}),
    "arguments of attacks": Grid(
        BASE, {"attack": ["foe", "alie"], "attack.search": ["grid", "coarse"], "seed": [1, 2, 3]}
    ),
    "without Byzantine workers": Grid(
        BASE,
        {"attack": ["sf", "lf"], "seed": [1, 2, 3]},
        also=[{"workers.f": 0, "attack": "none", "seed": [1, 2, 3]}],
    ),
    "what refers to the seed": Grid(
        {**BASE, "train": {"steps": "${seed}", "lr": 0.1}}, {"seed": [4, 5, 6], "attack": ["sf"]}
    ),
    "what is made of the seed": Grid(
        {**BASE, "tracking": {"experiment": "number ${seed}"}},
        {"seed": [4, 5, 6], "attack": ["sf", "lf"]},
    ),
    "what refers to the attack": Grid(
        {**BASE, "tracking": {"experiment": "against ${attack.name}"}},
        {"seed": [4, 5, 6], "attack": ["sf", "lf", "foe"]},
    ),
    "an attack that refers to others": Grid(
        {**BASE, "attack": {"name": "foe", "tau": "${train.lr}"}},
        {"seed": [4, 5, 6], "train.lr": [0.1, 0.2]},
    ),
    "no seeds": Grid(BASE, {"attack": ["sf", "lf"], "train.lr": [0.1, 1]}),
}


@pytest.mark.parametrize("name", GRIDS)
def test_they_are_the_same(name: str) -> None:
    grid = GRIDS[name]
    found = points(grid)
    assert found
    for point in found:
        alone = compose_plain(beneath=grid.settings(point.values))
        assert json.dumps(point.plain) == json.dumps(alone)  # in the same order, too
        assert point.code == identify(alone)


@pytest.mark.parametrize("name", ["table1", pytest.param("fig1a", marks=pytest.mark.slow)])
def test_a_figure_of_the_paper(name: str) -> None:
    grid = read_grid([f"experiment=paper/{name}"], "none")
    for point in points(grid)[::17]:
        alone = compose_plain(beneath=grid.settings(point.values))
        assert json.dumps(point.plain) == json.dumps(alone)
        assert point.code == identify(alone)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_every_attack_is_checked_with_every_rest(place: int) -> None:
    """Whichever comes first: the wrong one may be the one that is put into another's config."""
    attacks: list[Any] = ["sf", "lf"]
    attacks.insert(place, {"name": "mimic", "worker": 7})
    axes = {"seed": [1, 2, 3], "workers.honest": [10, 5], "attack": attacks}
    with pytest.raises(BadRequest, match=r"grid point .*workers\.honest=5.*attack=mimic"):
        points(Grid(BASE, axes))


def test_once(tmp_path: Path) -> None:
    calls: list[Any] = []

    @once
    def twice(value: Any) -> dict[str, Any]:
        calls.append(value)
        return {"twice": [value, value]}

    assert twice(1) == twice(1)
    assert calls == [1, 1]  # outside, every time
    calls.clear()
    with settled():
        assert twice(1) is twice(1)
        with settled():
            assert twice(twice(1)) is twice(twice(1))
        for value in (1.0, True, "1", [1]):
            assert twice(value) == {"twice": [value, value]}
        assert calls == [1, {"twice": [1, 1]}, 1.0, True, "1", [1]]
    calls.clear()
    twice(1)
    assert calls == [1]
