"""Grids from the command line: where they begin, what wins, and where arguments go."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from lit_byz.config.components import GROUPS
from lit_byz.config.compose import compose
from lit_byz.config.grid import Point, points
from lit_byz.config.grid_source import as_file, read_grid, shared_settings
from lit_byz.config.identity import identity
from lit_byz.errors import BadRequest

BASE = {"dataset": "digits", "model": "logreg", "train": {"steps": 5}}
QUICKSTART = "experiment=quickstart"


def read(*settings: str) -> list[Point]:
    return points(read_grid(settings, "quickstart"))


def cells(found: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(point.cell for point in found))


def refused(*settings: str) -> str:
    with pytest.raises(BadRequest) as caught:
        read(*settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def write(folder: Path, grid: dict[str, Any], **base: object) -> str:
    path = folder / "grid.yaml"
    path.write_text(yaml.safe_dump({**BASE, **base, "grid": grid}, sort_keys=False))
    return f"config={path}"


def test_nothing_typed_is_the_commands_own_experiment() -> None:
    assert [p.identity for p in read()] == [p.identity for p in read(QUICKSTART)]


def test_what_is_typed_is_what_train_would_do() -> None:
    for settings in (["seed=2"], ["dataset=mnist", "clip=none"], ["train.steps=7"]):
        (found,) = read(*settings)
        assert found.identity == identity(compose(settings))
    two = read("attack=[sf,foe]", "train.steps=7")
    expected = [identity(compose([f"attack={a}", "train.steps=7"])) for a in ("sf", "foe")]
    assert [point.identity for point in two] == expected


def test_usual_axes_of_a_study() -> None:
    usual = {"attack": ["sf", "lf"], "workers.f": [1, 2]}
    assert len(points(read_grid(["train.steps=5"], "quickstart", usual))) == 4
    assert len(points(read_grid(["attack=foe"], "quickstart", usual))) == 2
    assert len(points(read_grid(["workers.f=[1,2,3]"], "quickstart", usual))) == 6
    assert len(points(read_grid([QUICKSTART], "quickstart", usual))) == 20


@pytest.mark.parametrize("start", [[], [QUICKSTART]])
def test_an_argument_goes_to_every_option_that_has_it(start: list[str]) -> None:
    found = read(*start, "clip=[none,arc]", "clip.zeta=1.0", "attack=sf")
    assert [point.plain["clip"].get("zeta") for point in found] == [None, 1.0]
    found = read(*start, "clip=[arc,static]", "clip.C=5", "attack=sf")
    assert [point.plain["clip"].get("C") for point in found] == [None, 5.0]
    (one,) = read(*start, "clip=static", "clip.C=5", "attack=sf")
    assert one.plain["clip"] == {"name": "static", "C": 5.0}
    chosen = ["rule=[cwtm,krum,average]", "rule.f=1", "workers.f=2", "attack=sf", "clip=none"]
    found = read(*start, *chosen)
    assert [point.plain["rule"].get("f") for point in found] == [1, 1, None]


@pytest.mark.parametrize("start", [[], [QUICKSTART]])
def test_values_of_an_argument_make_cells_where_it_is_one(start: list[str]) -> None:
    found = read(*start, "clip=[none,static]", "clip.C=[1,2]")
    assert cells(found) == ["clip=none", "clip=static, clip.C=1", "clip=static, clip.C=2"]
    found = read(*start, "clip.C=[1,2]", "clip=[none,static]")
    assert len(cells(found)) == 3


@pytest.mark.parametrize("start", [[], [QUICKSTART]])
def test_an_argument_that_no_option_has_is_refused(start: list[str]) -> None:
    said = refused(*start, "attack=[sf,foe]", "attack.nonsense=1")
    assert said.startswith("attack.nonsense: no option of attack=[sf,foe] has it; there is ")
    said = refused(*start, "clip=[none,arc]", "clip.zetta=[1,2]")
    assert said == "clip.zetta: no option of clip=[none,arc] has it; did you mean 'zeta'?"
    assert "unknown key 'C' of clip=arc" in refused(*start, "clip=arc", "clip.C=1")


def test_arguments_that_a_file_gives_without_choosing(tmp_path: Path) -> None:
    source = write(tmp_path, {"axes": {"clip": ["none", "arc"]}}, clip={"zeta": 0.5})
    assert [p.plain["clip"].get("zeta") for p in read(source)] == [None, 0.5]
    assert [p.plain["clip"].get("zeta") for p in read(source, "clip.zeta=1")] == [None, 1.0]


def test_an_options_own_arguments_are_nearer() -> None:
    settings = ["clip=[{name: static, C: 1}, static]", "clip.C=5"]
    assert [point.plain["clip"]["C"] for point in read(*settings)] == [1.0, 5.0]


def test_the_command_line_wins_over_conditions(tmp_path: Path) -> None:
    """A file's conditions are checked against the file: what is typed may leave them idle."""
    assert cells(read(QUICKSTART, "clip=[none,arc]")) == ["clip=none", "clip=arc"]
    assert cells(read(QUICKSTART, "clip.C=3")) == ["clip=none", "clip=static", "clip=arc"]
    assert len(cells(read(QUICKSTART, "clip.C=[3,4,5]"))) == 5
    grid = {"axes": {"clip": ["none", "arc"], "attack": ["sf", "lf"]}}
    grid["exclude"] = [{"clip": "none", "attack": "lf"}]  # type: ignore[assignment]
    source = write(tmp_path, grid)
    assert len(read(source)) == 3
    assert len(read(source, "attack=[sf,mimic]")) == 4
    assert len(read(source, "clip=none")) == 1
    idle = write(tmp_path, {**grid, "exclude": [{"clip": "static"}]})
    assert refused(idle, "clip=[none,arc]") == "grid.exclude: no point has clip=static"


def test_strengths_of_attacks() -> None:
    (short,) = read("attack=foe@published")
    assert short.identity == identity(compose(["attack=foe", "attack.search=published"]))
    assert short.attack == "foe@published"
    found = read("attack=[sf,foe@published,foe]")
    assert [point.attack for point in found] == ["sf", "foe@published", "foe"]
    assert len({point.identity for point in found}) == 3
    assert cells(found) == [""]


def test_lists_that_are_one_value() -> None:
    (found,) = read("model.hidden=[10,20]")
    assert found.plain["model"]["hidden"] == [10, 20]
    assert [p.plain["model"]["hidden"] for p in read("model.hidden=[[10],[20]]")] == [[10], [20]]
    (found,) = read("model.hidden=[]")
    assert found.plain["model"]["hidden"] == []
    both = read("model=[mlp,logreg]", "model.hidden=[10,20]")
    assert [p.plain["model"].get("hidden") for p in both] == [[10, 20], None]
    callback = "lit_byz.training.DissimilarityLogger"
    assert len(read(f"trainer.callbacks=[{callback}]")) == 1
    assert len(read(f"trainer.callbacks=[[],[{callback}]]")) == 2


@pytest.mark.parametrize(
    "key", ["data.root", "tracking.uri", "resume", "train.checkpoint_every", "trainer.accelerator"]
)
def test_what_changes_no_result_is_no_axis(key: str, tmp_path: Path) -> None:
    message = f"{key}: changes no result, so it cannot have several values"
    assert refused(f"{key}=[cpu,auto]") == message
    assert refused(write(tmp_path, {"axes": {key: ["cpu", "auto"]}})) == message


ROUND_TRIPS = {
    "defaults": [],
    "conditions left idle": [QUICKSTART, "clip=[none,arc]"],
    "an axis removed": [QUICKSTART, "clip=arc"],
    "an argument of some options": [QUICKSTART, "clip.C=3"],
    "an argument of no axis": ["clip=[arc,static]", "clip.C=5"],
    "arguments that vary": ["clip=[none,static]", "clip.C=[1,.inf]"],
    "lists as values": ["model=[mlp,logreg]", "model.hidden=[10,20]"],
    "strengths": ["attack=[sf,foe@published,foe]", "seed=[1,2]"],
    "what follows other keys": ["workers.f=[0,1,2]", "mix=[nnm,bucketing]", "seed=[1,2]"],
    "an option with arguments": ["partition=[extreme,{name: dirichlet, alpha: 0.5}]"],
    "recommended settings": ["dataset=[digits,mnist]"],
    "another experiment": ["experiment=init_scaling_digits", "seed=3"],
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_a_printed_grid_reads_back(name: str, tmp_path: Path) -> None:
    grid = read_grid(ROUND_TRIPS[name], "quickstart")
    found = points(grid)
    shared = shared_settings([point.plain for point in found])
    kept = {k: v for k, v in shared.items() if k not in GROUPS or k not in grid.keys}
    path = tmp_path / "printed.yaml"
    path.write_text(yaml.safe_dump(as_file(grid, kept), sort_keys=False, allow_unicode=True))
    again = points(read_grid([f"config={path}"], "quickstart"))
    assert [p.identity for p in again] == [p.identity for p in found]
    assert [p.attack for p in again] == [p.attack for p in found]


def test_five_hundred_points_take_seconds() -> None:
    begin = time.process_time()
    found = read("experiment=paper/fig1a", "attack=[sf,lf,mimic,foe,alie]")
    assert len(found) == len({point.identity for point in found}) == 500 + 5
    assert len(cells(found)) == 20 + 1
    assert time.process_time() - begin < 30


def test_a_small_form_of_what_cannot_be_scaled(tmp_path: Path) -> None:
    needs = "scale = smoke: needs train.steps beside train.lr_milestones"
    for train in ({"lr_milestones": [5]}, {"lr_milestones": 5}, {"lr_milestones": [5], "steps": 0}):
        assert refused(write(tmp_path, {}, train=train), "scale=smoke") == needs
    assert refused("train=5", "scale=smoke") == "train = 5: train is a section, set its keys"


def test_endless_grids_are_refused_at_once(tmp_path: Path) -> None:
    axes = {f"x{number}": [1, 2, 3] for number in range(40)}
    begin = time.process_time()
    for grid in (
        {"axes": axes, "exclude": [{"x0": 1}]},
        {"axes": {"seed": [1]}, "when": [{"if": {"seed": 1}, "axes": axes}]},
        {"also": [axes]},
    ):
        said = refused(write(tmp_path, grid))
        assert said == "the grid has more than 100,000 points; take some axes out"
    assert refused(write(tmp_path, {"exclude": [{"seed": 1}] * 1001})).endswith("1,000 entries")
    deep = {"axes": {".".join(100 * "a"): [1]}}
    assert refused(write(tmp_path, deep)).endswith("it has 100 parts")
    assert time.process_time() - begin < 10
