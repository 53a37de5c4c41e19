"""``scale=smoke``: any grid in a form that takes minutes, to see that everything works.

Ten steps, one seed, the ends of every axis and one attack of each strength. The numbers mean
nothing, and the steps are part of a run's identity: no such run is taken for one of the grid's own.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lit_byz.config.grid import Grid, layered
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

SCALES = ("full", "smoke")
STEPS = 10
EVAL_EVERY = 5


def scaled(grid: Grid, scale: Any) -> Grid:
    """The grid at a scale: as it is written, or for a smoke test."""
    if scale not in SCALES:
        raise BadRequest(f"scale = {scale!r}: unknown; {nearest(str(scale), SCALES)}")
    if scale == "full":
        return grid
    train = {**_with_few_steps(grid.base.get("train", {})), "eval_every": EVAL_EVERY}
    return replace(
        grid,
        base=layered(grid.base, {"train": train}),
        axes={key: _few(key, values) for key, values in grid.axes.items()},
        when=[
            {**entry, "axes": {key: _few(key, values) for key, values in entry["axes"].items()}}
            for entry in grid.when
        ],
        zip=[{key: _ends(values) for key, values in group.items()} for group in grid.zip],
        also=[
            {k: _few(k, v) if isinstance(v, list) else v for k, v in entry.items()}
            for entry in grid.also
        ],
    )


def _with_few_steps(section: Any) -> dict[str, Any]:
    """The section ``train``, its milestones where they were in proportion."""
    if not isinstance(section, dict):
        raise BadRequest(f"train = {section!r}: train is a section, set its keys")
    train = {**section, "steps": STEPS}
    if section.get("lr_milestones"):
        milestones, steps = section["lr_milestones"], section.get("steps")
        numbers = [*milestones, steps] if isinstance(milestones, list) else [None]
        if not all(isinstance(number, int) and number > 0 for number in numbers):
            raise BadRequest("scale = smoke: needs train.steps beside train.lr_milestones")
        train["lr_milestones"] = [max(1, number * STEPS // steps) for number in milestones]
    return train


def _few(key: str, values: Sequence[Any]) -> list[Any]:
    if key == "seed":
        return list(values[:1])
    if key != "attack":
        return _ends(values)
    by_strength: dict[str, Any] = {}
    for value in values:
        name, _, search = str(value).partition("@")
        by_strength.setdefault(search or ("grid" if name in ("foe", "alie") else "none"), value)
    return list(by_strength.values())


def _ends(values: Sequence[Any]) -> list[Any]:
    return list(values) if len(values) <= 2 else [values[0], values[-1]]
