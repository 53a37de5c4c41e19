"""A run's attack is called by its strength, however that was set."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lit_byz.cli.many_runs import make_record
from lit_byz.config.compose import compose
from lit_byz.config.grid import Grid, Point, points
from lit_byz.config.grid_source import read_grid
from lit_byz.report.strengths import strength_of
from lit_byz.tracking.names import name_in_study, run_name

BASE: dict[str, Any] = {"dataset": "digits", "model": "logreg"}


def read(*settings: str) -> list[Point]:
    return points(read_grid(["dataset=digits", "model=logreg", *settings], "none"))


def test_one_search_for_all_attacks_is_the_same_study_as_each_by_name() -> None:
    """And has the same names, so that neither renames what the other has recorded."""
    beside = read("attack=[sf,foe,alie]", "attack.search=coarse")
    by_name = read("attack=[sf,foe@coarse,alie@coarse]")
    assert [point.attack for point in beside] == ["sf", "foe@coarse", "alie@coarse"]
    assert [point.label for point in beside] == [point.label for point in by_name]
    assert [name_in_study(p) for p in beside] == [name_in_study(p) for p in by_name]
    one, other = (make_record("sweep", "a sweep", found) for found in (beside, by_name))
    assert one.key == other.key


WRITTEN: dict[str, list[Grid]] = {
    "foe@coarse": [
        Grid(BASE, {"attack": ["sf", "foe@coarse"]}),
        Grid(BASE, {"attack": ["sf", {"name": "foe", "search": "coarse"}]}),
        Grid(BASE, {"attack": ["sf", "foe"], "attack.search": ["coarse"]}),
        Grid(BASE, {"attack": ["sf", "foe"]}, given={"attack.search": "coarse"}),
        Grid({**BASE, "attack": {"name": "foe"}}, {"attack.search": ["coarse"]}),
        Grid({**BASE, "attack": {"name": "foe", "search": "coarse"}}, {"seed": [1]}),
    ],
    "foe, tau=2": [
        Grid(BASE, {"attack": ["sf", "foe"], "attack.tau": [2]}),
        Grid(BASE, {"attack": ["sf", "foe"]}, given={"attack.tau": 2.0}),
        Grid({**BASE, "attack": {"name": "foe", "tau": 2}}, {"seed": [1]}),
    ],
    "foe(tau=2)": [Grid(BASE, {"attack": ["sf", {"name": "foe", "tau": 2}]})],
    "foe@coarse(points=9)": [
        Grid(BASE, {"attack": ["sf", {"name": "foe@coarse", "points": 9}]}),
        Grid(BASE, {"attack": ["sf", {"name": "foe", "search": "coarse", "points": 9}]}),
    ],
    "span(budget=9)": [Grid(BASE, {"attack": ["sf", {"name": "span", "budget": 9}]})],
    "span, budget=9": [
        Grid(BASE, {"attack": ["sf", "span"], "attack.budget": [9]}),
        Grid(BASE, {"attack": ["sf", "span"]}, given={"attack.budget": 9}),
    ],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_run_says_its_strength_however_it_was_written(name: str) -> None:
    found = [points(grid)[-1] for grid in WRITTEN[name]]
    assert {point.attack for point in found} == {name}
    assert len({point.identity for point in found}) == 1


def test_the_usual_names_stay() -> None:
    usual = ["sf", "lf", "mimic", "foe", "alie", "foe@coarse", "alie@z_max", "span", "gaussian"]
    assert [point.attack for point in read(f"attack=[{','.join(usual)}]", "seed=3")] == usual
    drawn = read("attack=[mimic,{name: mimic, seed: 2}]", "seed=[2,3]")
    assert [p.attack for p in drawn] == ["mimic", "mimic", "mimic(seed=2)"]  # one is there twice
    searches = read("attack=[foe,foe@coarse]", "attack.tau=2")
    assert [point.attack for point in searches] == ["foe, tau=2", "foe@coarse, tau=2"]


def test_an_option_of_a_users_own_file(write: Callable[[str, str], Path]) -> None:
    write("attack/weak.yaml", "name: foe\nsearch: coarse\n")
    assert [point.attack for point in read("attack=[weak,foe]")] == ["weak@coarse", "foe"]


def test_single_runs_say_it_too() -> None:
    named = run_name(compose(["dataset=digits", "attack=foe", "attack.tau=2.5"]))
    assert named.startswith("foe, tau=2.5 · seed 1 · ")


def test_an_own_class_says_that_it_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name alone a report would take it for an attack that counts at every strength."""
    (tmp_path / "searching.py").write_text(
        "from lit_byz.attacks import FOE, SignFlip\n"
        "class Mine(FOE): ...\n"
        "class Plain(SignFlip): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = read("attack=[sf,foe@published,searching.Mine,searching.Plain]")
    labels = [point.attack for point in found]
    assert labels == ["sf", "foe@published", "searching.Mine@grid", "searching.Plain"]
    assert [strength_of(label) for label in labels] == [None, "published", "grid", None]
    (fixed,) = read("attack=[searching.Mine]", "attack.tau=2")
    assert strength_of(fixed.attack) is None
