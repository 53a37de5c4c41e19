"""Attacks that other sections choose or follow, against configs composed one by one."""

import json
from collections.abc import Callable
from pathlib import Path

from lit_byz.config.compose import compose_plain
from lit_byz.config.grid import Point, points
from lit_byz.config.grid_source import read_grid

Write = Callable[[str, str], Path]


def checked(*settings: str) -> list[Point]:
    grid = read_grid(["model=logreg", *settings], "none")
    found = points(grid)
    for point in found:
        alone = compose_plain(beneath=grid.settings(point.values))
        assert json.dumps(point.plain) == json.dumps(alone), point.label
    return found


def test_every_data_set_recommends_its_own_attack(write: Write) -> None:
    write("dataset/one.yaml", "name: digits\nrecommended: {attack: alie}\n")
    write("dataset/two.yaml", "name: digits\nrecommended: {attack: foe}\n")
    found = checked("dataset=[one,two]", "seed=[1,2,3]")
    assert [point.attack for point in found] == 3 * ["alie"] + 3 * ["foe"]
    found = checked("dataset=[one,two]", "attack.tau=[1,2]", "seed=[1,2,3]")
    assert [point.attack for point in found[2::3]] == [
        *("alie, tau=1", "alie, tau=2", "foe, tau=1", "foe, tau=2"),
    ]


def test_an_options_file_may_refer_to_the_attack(write: Write) -> None:
    write("clip/mine.yaml", "name: static\nC: ${attack.tau}\n")
    attacks = "attack=[{name: foe, tau: 2}, {name: foe, tau: 3}]"
    found = checked("dataset=digits", "clip=mine", attacks, "seed=[1,2,3]")
    assert [point.plain["clip"]["C"] for point in found] == [2, 2, 2, 3, 3, 3]
