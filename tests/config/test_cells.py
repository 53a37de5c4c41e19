"""Which runs a cell of a grid has: all that were asked for, whoever else has them."""

from typing import Any

from lit_byz.cli.many_runs import make_record
from lit_byz.config.grid import Grid, Point, points

BASE: dict[str, Any] = {"dataset": "digits", "model": "logreg"}


def attacks(found: list[Point]) -> dict[str, list[str]]:
    cells: dict[str, list[str]] = {}
    for point in found:
        cells.setdefault(point.cell, []).append(point.attack)
    return cells


def test_points_beside_the_product_belong_to_its_cells() -> None:
    """Whatever the order of their keys."""
    axes = {"rule": ["gm"], "clip": ["none", "arc"], "attack": ["sf", "foe"], "seed": [1]}
    also = [{"clip": "arc", "rule": "gm", "attack": ["sf", "foe", "span"], "seed": [1]}]
    assert attacks(points(Grid(BASE, axes, also=also))) == {
        "rule=gm, clip=none": ["sf", "foe"],
        "rule=gm, clip=arc": ["sf", "foe", "span"],
    }


def test_single_points_are_of_one_cell_whatever_the_order_of_their_keys() -> None:
    also = [{"clip": "arc", "rule": "gm", "attack": "sf"}]
    also += [{"attack": "foe", "rule": "gm", "clip": "arc"}]
    assert attacks(points(Grid(BASE, also=also))) == {"clip=arc, rule=gm": ["sf", "foe"]}


def test_other_names_of_cells_stay() -> None:
    also = [{"workers.f": 0, "attack": "none", "rule": "average", "clip": "none"}]
    found = points(Grid(BASE, {"clip": ["none"], "attack": ["sf"]}, also=also))
    assert list(attacks(found)) == ["clip=none", "workers.f=0, rule=average, clip=none"]


def test_a_run_of_two_cells_is_in_both() -> None:
    """A cell that lost it to another would take its worst case over fewer attacks."""
    axes = {"clip": ["arc"], "attack": ["sf", "foe"]}
    also = [{"clip": "arc", "workers.f": 1, "attack": ["sf", "foe", "span"]}]
    found = points(Grid(BASE, axes, also=also))
    assert attacks(found) == {
        "clip=arc": ["sf", "foe"],
        "clip=arc, workers.f=1": ["sf", "foe", "span"],
    }
    once = points(Grid(BASE, {**axes, "attack": ["sf", "foe", "span"]}))
    keys = {make_record("sweep", "a sweep", each).key for each in (found, once)}
    assert len(keys) == 1  # a study is known by its runs
