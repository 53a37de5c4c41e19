"""Runs that belong to several cells: computed once, and far enough for each of them."""

from typing import Any

import pytest

from lit_byz.config.grid import Grid, Point, points
from lit_byz.studies.grid import GridStudy, WorstCaseStudy
from tests.studies._simulate import BASE, by_table, simulate

ACCURACIES = {"sf": 0.9, "lf": 0.6, "foe": 0.8, "alie": 0.3}


def two_cells() -> list[Point]:
    """The second has one run more, and its worst case there: that of the first is higher."""
    axes: dict[str, Any] = {"clip": ["arc"], "attack": ["alie", "foe", "sf"]}
    also = [{"clip": "arc", "workers.f": 1, "attack": ["lf", "foe", "sf"]}]
    return points(Grid(BASE, axes, also=also))


@pytest.mark.parametrize("width", [1, 2, 6])
@pytest.mark.parametrize("kind", [GridStudy, WorstCaseStudy])
def test_each_run_is_computed_once_and_both_cells_are_exact(
    kind: type[GridStudy], width: int
) -> None:
    study = kind(two_cells())
    asked = simulate(study, by_table(ACCURACIES), width)
    assert len(asked) == len({point.identity for point in asked}) == 4
    found = {name: study.board.worst_case(name) for name in study.board.cells}
    assert {name: (worst.kind, worst.mean) for name, worst in found.items()} == {
        "clip=arc": ("exact", 0.3),
        "clip=arc, workers.f=1": ("exact", 0.6),
    }
    assert study.board.missing == []
