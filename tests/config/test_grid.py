"""Grids: which runs they stand for, and what is said of a bad one."""

from pathlib import Path

import pytest
import yaml

from lit_byz.config.compose import compose_plain
from lit_byz.config.grid import Grid, points
from lit_byz.config.grid_source import read_grid
from lit_byz.config.identity import identify
from lit_byz.errors import BadRequest

BASE = {"dataset": "digits", "model": "logreg", "train": {"steps": 5}}


def write(folder: Path, grid: object, **base: object) -> str:
    path = folder / "grid.yaml"
    path.write_text(yaml.safe_dump({**BASE, **base, "grid": grid}, sort_keys=False))
    return f"config={path}"


def labels(folder: Path, grid: object, *settings: str) -> list[str]:
    return [point.label for point in points(read_grid([write(folder, grid), *settings], "none"))]


def test_product_of_axes_in_order(tmp_path: Path) -> None:
    grid = {"axes": {"clip": ["none", "arc"], "attack": ["sf", "foe"], "seed": [1, 2]}}
    found = labels(tmp_path, grid)
    assert len(found) == 8
    assert found[:3] == [
        "clip=none | sf | seed 1",
        "clip=none | sf | seed 2",
        "clip=none | foe | seed 1",
    ]


def test_a_cell_is_everything_but_attack_and_seed(tmp_path: Path) -> None:
    grid = {"axes": {"workers.f": [1, 2], "attack": ["sf", "foe"], "seed": [1, 2]}}
    found = points(read_grid([write(tmp_path, grid)], "none"))
    assert {point.cell for point in found} == {"workers.f=1", "workers.f=2"}
    assert {point.config.rule.f for point in found} == {1, 2}


def test_conditional_axes_belong_to_some_points_only(tmp_path: Path) -> None:
    grid = {
        "axes": {"clip": ["none", "static", "arc"], "attack": ["sf"]},
        "when": [{"if": {"clip": "static"}, "axes": {"clip.C": [0.5, 5.0]}}],
    }
    found = points(read_grid([write(tmp_path, grid)], "none"))
    assert [point.cell for point in found] == [
        "clip=none",
        "clip=static, clip.C=0.5",
        "clip=static, clip.C=5.0",
        "clip=arc",
    ]
    assert [point.config.clip.get("C") for point in found] == [None, 0.5, 5.0, None]


def test_options_with_arguments_are_values_too(tmp_path: Path) -> None:
    grid = {"axes": {"clip": ["arc", {"name": "static", "C": 2}], "attack": ["sf"]}}
    found = points(read_grid([write(tmp_path, grid)], "none"))
    assert found[1].cell == "clip=static(C=2)"
    assert found[1].config.clip.C == 2


def test_zipped_axes_move_together(tmp_path: Path) -> None:
    grid = {"zip": [{"workers.honest": [10, 30], "workers.f": [1, 9]}], "axes": {"attack": ["sf"]}}
    found = points(read_grid([write(tmp_path, grid)], "none"))
    assert [(p.config.workers.honest, p.config.workers.f) for p in found] == [(10, 1), (30, 9)]


def test_exclusions_and_single_points(tmp_path: Path) -> None:
    grid = {
        "axes": {"clip": ["none", "arc"], "attack": ["sf", "foe"]},
        "exclude": [{"clip": "none", "attack": "foe"}],
        "also": [{"workers.f": 0, "attack": "none", "rule": "average", "clip": "none"}],
    }
    found = labels(tmp_path, grid)
    assert len(found) == 4
    assert "clip=none | foe | seed 1" not in found
    assert found[-1] == "workers.f=0, rule=average, clip=none | none | seed 1"


def test_lists_on_the_command_line_make_axes_and_values_remove_them(tmp_path: Path) -> None:
    grid = {"axes": {"clip": ["none", "arc"], "attack": ["sf", "foe"]}}
    assert len(labels(tmp_path, grid, "seed=[1,2,3]")) == 12
    assert len(labels(tmp_path, grid, "attack=alie")) == 2
    assert len(labels(tmp_path, grid, "train.lr_milestones=[2,4]")) == 4
    assert len(labels(tmp_path, grid, "train.lr_milestones=[[2],[4]]")) == 8


def test_the_same_run_is_there_once(tmp_path: Path) -> None:
    grid = {"axes": {"attack": ["sf"]}, "also": [{"attack": "sf"}]}
    assert len(labels(tmp_path, grid)) == 1


def test_the_quickstart_has_twenty_runs() -> None:
    found = points(read_grid([], "quickstart"))
    assert len(found) == 20
    assert len({point.cell for point in found}) == 4
    assert len({point.attack for point in found}) == 5


BAD = {
    "not a section": ([1], [], "grid = [1]: must be a section with axes"),
    "unknown part": ({"axis": {}}, [], "unknown key 'axis' in grid: did you mean 'axes'?"),
    "axis is no list": ({"axes": {"seed": 1}}, [], "grid.axes: seed = 1: must be a list of values"),
    "empty axis": ({"axes": {"seed": []}}, [], "grid.axes: seed has no values"),
    "value twice": ({"axes": {"seed": [1, 1]}}, [], "grid.axes: seed has the value 1 twice"),
    "one value in two spellings": (
        {"axes": {"train.lr": [1, 1.0]}},
        [],
        "grid.axes: train.lr has the value 1 twice",
    ),
    "axes are no mapping": ({"axes": [1]}, [], "grid.axes = [1]: must map keys to lists"),
    "zip of two lengths": (
        {"zip": [{"seed": [1], "workers.f": [1, 2]}]},
        [],
        "grid.zip: axes that move together need one length: seed has 1, workers.f has 2",
    ),
    "axis twice": (
        {"axes": {"seed": [1]}, "zip": [{"seed": [2]}]},
        [],
        "grid: the axis seed is there twice",
    ),
    "when without if": (
        {"when": [{"axes": {"seed": [1]}}]},
        [],
        "grid.when = {'axes': {'seed': [1]}}: must have the keys if and axes",
    ),
    "when that never holds": (
        {"axes": {"clip": ["arc"]}, "when": [{"if": {"clip": "static"}, "axes": {"clip.C": [1]}}]},
        [],
        "grid.when: no point has clip=static",
    ),
    "exclude that never holds": (
        {"axes": {"clip": ["arc"]}, "exclude": [{"clip": "none"}]},
        [],
        "grid.exclude: no point has clip=none",
    ),
    "exclude is no list": ({"exclude": {"clip": "none"}}, [], "must be a list of sections"),
    "nothing left": (
        {"axes": {"clip": ["arc"]}, "exclude": [{"clip": "arc"}]},
        [],
        "the grid is empty: exclude leaves no point",
    ),
    "unknown key": (
        {"axes": {"workers.honset": [1]}},
        [],
        "grid point workers.honset=1: unknown key 'honset' in workers: did you mean 'honest'?",
    ),
    "bad value": (
        {"axes": {"workers.f": [1, 20]}},
        [],
        "grid point workers.f=20: ",
    ),
    "unknown option": (
        {"axes": {"attack": ["sf", "fo"]}},
        [],
        "grid point attack=fo: unknown attack 'fo': did you mean 'foe'?",
    ),
    "zipped axis on the command line": (
        {"zip": [{"seed": [1, 2]}]},
        ["seed=3"],
        "seed: that axis is zipped with others in this grid; edit its file",
    ),
    "empty list on the command line": ({}, ["seed=[]"], "the command line: seed has no values"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_grids_are_one_clear_line(name: str, tmp_path: Path) -> None:
    grid, settings, message = BAD[name]
    with pytest.raises(BadRequest) as caught:
        labels(tmp_path, grid, *settings)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_many_points() -> None:
    axis = list(range(400))
    grid = Grid(dict(BASE), {"seed": axis, "workers.honest": axis})
    with pytest.raises(BadRequest, match="more than 100,000 points"):
        points(grid)


def test_unknown_experiment() -> None:
    with pytest.raises(BadRequest, match="unknown experiment 'quikstart': did you mean"):
        read_grid(["experiment=quikstart"], "quickstart")


def test_single_points_alone(tmp_path: Path) -> None:
    grid = {"also": [{"clip": "arc", "attack": "sf"}, {"clip": "none", "attack": "sf"}]}
    assert labels(tmp_path, grid) == ["clip=arc | sf | seed 1", "clip=none | sf | seed 1"]


def test_seeds_beyond_the_second_are_composed_like_the_first() -> None:
    """Followed seeds move with the run's own; one that is set stays."""
    axes = {"attack": ["mimic", {"name": "mimic", "seed": 2}], "seed": [1, 2, 3, 7]}
    for point in points(Grid({"workers": {"f": 2}}, axes)):
        expected = compose_plain(beneath=Grid({"workers": {"f": 2}}).settings(point.values))
        assert point.plain == expected
        assert point.code == identify(expected)


def test_also_makes_products_of_lists() -> None:
    also = [{"workers.f": 0, "rule": "average", "seed": [1, 2]}, {"workers.f": 0, "rule": "gm"}]
    found = points(Grid({}, {"rule": ["cwtm"], "seed": [1]}, also=also))
    named = [(p.plain["rule"]["name"], p.seed) for p in found]
    assert named == [("cwtm", 1), ("average", 1), ("average", 2), ("gm", 1)]
