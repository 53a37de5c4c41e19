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


def test_a_study_is_known_by_its_cells_and_their_runs() -> None:
    """The same runs in cells of other names would stand twice in one study."""
    axes = {"clip": ["none", "arc"], "rule": ["cwtm", "gm"], "attack": ["sf"]}
    turned = dict(reversed(axes.items()))

    def key(axes: dict[str, Any], **base: Any) -> str:
        return make_record("sweep", "a sweep", points(Grid({**BASE, **base}, axes))).key

    assert key(axes) == key({**axes, "clip": ["arc", "none"]})
    others = [key(turned), key({**axes, "workers.f": [1]}), key({**axes, "attack": ["foe"]})]
    assert len({key(axes), *others}) == 4


def test_a_study_says_of_its_runs_what_holds_for_all_of_them() -> None:
    """A title that names the first run's rule or data would be wrong for the others."""
    one = points(Grid(BASE, {"clip": ["none", "arc"], "attack": ["sf", "foe"]}))
    assert make_record("sweep", "a sweep", one).facts == {
        "dataset": "digits",
        "partition": "extreme",
        "honest": 10,
        "cell": "digits, extreme, f=1, cwtm∘nnm",
    }
    axes: dict[str, Any] = {"rule": ["cwtm", "gm"], "workers.f": [1, 2], "attack": ["sf"]}
    assert make_record("sweep", "a sweep", points(Grid(BASE, axes))).facts["cell"] == (
        "digits, extreme"
    )
    partitions = [{"name": "dirichlet", "alpha": alpha} for alpha in (0.5, 0.1)]
    axes = {"dataset": ["digits", "mnist"], "partition": partitions, "workers.honest": [10, 20]}
    assert make_record("sweep", "a sweep", points(Grid(BASE, axes))).facts == {
        "dataset": "digits and mnist",
        "partition": "dirichlet 0.5 and dirichlet 0.1",
        "honest": None,
        "cell": "f=1, cwtm∘nnm",
    }
