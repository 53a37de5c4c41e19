"""Grids: one config with lists in it, and the many configs that it stands for.

A grid is written as the section ``grid`` of an experiment file::

    grid:
      axes: {clip: [none, static, arc], attack: [sf, foe], seed: [1, 2]}
      when: [{if: {clip: static}, axes: {clip.C: [0.5, 5]}}]      # axes of some points only
      zip: [{workers.honest: [10, 30], workers.f: [1, 3]}]        # axes that move together
      exclude: [{clip: none, attack: sf}]
      also: [{workers.f: 0, attack: none, rule: average}]         # single points beside the product

or on the command line: ``attack=[sf,foe] seed=[1,2]`` makes axes, a single value removes one. A
cell is everything but attack and seed.
"""

import copy
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from lit_byz.errors import BadRequest
from lit_byz.experiment import layers
from lit_byz.experiment.components import GROUPS
from lit_byz.experiment.config import compose, identity
from lit_byz.registry import nearest

PARTS = ("axes", "when", "zip", "exclude", "also")
MOST_POINTS = 100_000
# Keys of the fixed part whose values are lists themselves: an axis over one is a list of lists.
LIST_KEYS = frozenset({"train.lr_milestones", "train.lr_values", "trainer.callbacks"})

Values = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One run of a grid: the values of its axes, and its config."""

    values: Values
    config: DictConfig
    identity: str

    @property
    def cell(self) -> str:
        """What the run's cell is called: its axes but for attack and seed."""
        return ", ".join(f"{k}={_shown(v)}" for k, v in self.values.items() if not _inner(k))

    @property
    def attack(self) -> str:
        """What the run's attack is called."""
        extra = {k: v for k, v in self.values.items() if k.startswith("attack.")}
        name = _shown(self.values.get("attack", self.config.attack.name))
        return ", ".join([name, *(f"{k[7:]}={_shown(v)}" for k, v in extra.items())])

    @property
    def seed(self) -> int:
        return int(self.config.seed)

    @property
    def label(self) -> str:
        return " | ".join(part for part in (self.cell, self.attack, f"seed {self.seed}") if part)


@dataclass
class Grid:
    """A grid as it is written."""

    base: dict[str, Any] = field(default_factory=dict)
    axes: dict[str, list[Any]] = field(default_factory=dict)
    when: list[dict[str, Any]] = field(default_factory=list)
    zip: list[dict[str, list[Any]]] = field(default_factory=list)
    exclude: list[Values] = field(default_factory=list)
    also: list[Values] = field(default_factory=list)

    def values(self) -> Iterator[Values]:
        """The axes' values of every point, excluded ones left out."""
        zipped = [_zipped(group) for group in self.zip]
        plain = [[{key: value} for value in values] for key, values in self.axes.items()]
        if self.also and not (plain or zipped):
            yield from self.also  # nothing but single points
            return
        for parts in itertools.product(*plain, *zipped):
            point = {key: value for part in parts for key, value in part.items()}
            for more in self._conditional(point):
                full = {**point, **more}
                if not any(_matches(full, rule) for rule in self.exclude):
                    yield full
        yield from self.also

    def _conditional(self, point: Values) -> Iterator[Values]:
        axes: dict[str, list[Any]] = {}
        for condition in self.when:
            if _matches(point, condition["if"]):
                axes |= condition["axes"]
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values, strict=True))


def read_grid(settings: Sequence[str], default: str) -> Grid:
    """The grid of a command line: its ``experiment=`` or ``config=`` file, changed by the rest."""
    asked = layers.parse(settings, GROUPS)
    named = {
        key: asked.content.pop(key) for key in ("experiment", "config") if key in asked.content
    }
    if "config" in named:
        layer = layers.load(Path(str(named["config"])))
    else:
        layer = layers.experiment(str(named.get("experiment", default)))
    content = copy.deepcopy(layer.content)
    grid = _parse(content.pop("grid", {}), layer.prefix)
    grid.base = content
    for key, value in _flat(asked.content):
        _override(grid, key, value)
    return grid


def points(grid: Grid) -> list[Point]:
    """Every run of a grid, composed and checked, each once."""
    found: dict[str, Point] = {}
    used = list(itertools.islice(grid.values(), MOST_POINTS + 1))
    if len(used) > MOST_POINTS:
        raise BadRequest(f"the grid has more than {MOST_POINTS:,} points; take some axes out")
    for values in used:
        try:
            config = compose(beneath=_layered(grid.base, values))
        except BadRequest as error:
            where = ", ".join(f"{k}={_shown(v)}" for k, v in values.items())
            raise BadRequest(f"grid point {where}: {error}" if where else str(error)) from error
        key = identity(config)
        found.setdefault(key, Point(values, config, key))
    if not found:
        raise BadRequest("the grid is empty: exclude leaves no point")
    for condition in grid.when:
        if not any(_matches(values, condition["if"]) for values in used):
            raise BadRequest(f"grid.when: no point has {_pairs(condition['if'])}")
    everything = list(Grid(grid.base, grid.axes, grid.when, grid.zip).values())
    for rule in grid.exclude:
        if not any(_matches(values, rule) for values in everything):
            raise BadRequest(f"grid.exclude: no point has {_pairs(rule)}")
    return list(found.values())


def _parse(section: Any, prefix: str) -> Grid:
    if not isinstance(section, dict):
        raise BadRequest(f"{prefix}grid = {section!r}: must be a section with axes")
    for key in section:
        if key not in PARTS:
            raise BadRequest(f"{prefix}unknown key '{key}' in grid: {nearest(str(key), PARTS)}")
    grid = Grid()
    grid.axes = _checked_axes(section.get("axes", {}), f"{prefix}grid.axes")
    for name in ("when", "zip", "exclude", "also"):
        entries = section.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(e, dict) and e for e in entries):
            raise BadRequest(f"{prefix}grid.{name} = {entries!r}: must be a list of sections")
    for entry in section.get("when", []):
        if set(entry) != {"if", "axes"} or not isinstance(entry["if"], dict):
            raise BadRequest(f"{prefix}grid.when = {entry!r}: must have the keys if and axes")
        axes = _checked_axes(entry["axes"], f"{prefix}grid.when.axes")
        grid.when.append({"if": entry["if"], "axes": axes})
    for group in section.get("zip", []):
        axes = _checked_axes(group, f"{prefix}grid.zip")
        if len({len(values) for values in axes.values()}) > 1:
            lengths = ", ".join(f"{key} has {len(values)}" for key, values in axes.items())
            raise BadRequest(
                f"{prefix}grid.zip: axes that move together need one length: {lengths}"
            )
        grid.zip.append(axes)
    grid.exclude, grid.also = section.get("exclude", []), section.get("also", [])
    taken = [*grid.axes, *(key for group in grid.zip for key in group)]
    for key in taken:
        if taken.count(key) > 1:
            raise BadRequest(f"{prefix}grid: the axis {key} is there twice")
    return grid


def _checked_axes(axes: Any, where: str) -> dict[str, list[Any]]:
    if not isinstance(axes, dict):
        raise BadRequest(f"{where} = {axes!r}: must map keys to lists")
    for key, values in axes.items():
        if not isinstance(values, list):
            raise BadRequest(f"{where}: {key} = {values!r}: must be a list of values")
        if not values:
            raise BadRequest(f"{where}: {key} has no values")
        shown = [json.dumps(value, sort_keys=True, default=str) for value in values]
        for value in shown:
            if shown.count(value) > 1:
                raise BadRequest(f"{where}: {key} has the value {value} twice")
    return dict(axes)


def _override(grid: Grid, key: str, value: Any) -> None:
    """A setting of the command line: a list makes or replaces an axis, a value removes it."""
    for group in grid.zip:
        if key in group:
            raise BadRequest(f"{key}: that axis is zipped with others in this grid; edit its file")
    is_axis = isinstance(value, list) and (
        key not in LIST_KEYS or all(isinstance(item, list) for item in value)
    )
    if is_axis:
        grid.axes |= _checked_axes({key: value}, "the command line")
        return
    grid.axes.pop(key, None)
    grid.base = _layered(grid.base, {key: value})


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """``section.key`` and value pairs of nested settings; a chosen option stands first."""
    for key, value in content.items():
        if isinstance(value, dict) and not prefix and key in GROUPS:
            rest = dict(value)
            if "name" in rest:
                yield key, rest.pop("name")
            yield from _flat(rest, f"{key}.")
        elif isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _layered(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings with the values of a point put over them."""
    content: dict[str, Any] = copy.deepcopy(dict(base))
    for key, value in values.items():
        if key in GROUPS:
            content[key] = dict(value) if isinstance(value, dict) else {"name": value}
    for key, value in values.items():
        if key in GROUPS:
            continue
        section = content
        *parents, leaf = key.split(".")
        for parent in parents:
            inner = section.get(parent, {})
            section[parent] = dict(inner) if isinstance(inner, dict) else {"name": inner}
            section = section[parent]
        section[leaf] = value
    return content


def _zipped(group: Mapping[str, list[Any]]) -> list[Values]:
    return [dict(zip(group, row, strict=True)) for row in zip(*group.values(), strict=True)]


def _matches(point: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(key in point and _same(point[key], value) for key, value in wanted.items())


def _same(value: Any, wanted: Any) -> bool:
    """Equal, or an option with arguments against its name alone."""
    if isinstance(value, dict) and not isinstance(wanted, dict):
        return bool(value.get("name") == wanted)
    return bool(value == wanted)


def _inner(key: str) -> bool:
    return key == "seed" or key.split(".", maxsplit=1)[0] == "attack"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        extra = ", ".join(f"{k}={v}" for k, v in value.items() if k != "name")
        return f"{value.get('name', '')}({extra})" if extra else str(value.get("name"))
    return str(value)


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={_shown(value)}" for key, value in values.items())
