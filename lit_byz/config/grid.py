"""Grids: one config with lists in it, and the many runs that it stands for.

A grid is written as the section ``grid`` of an experiment file::

    grid:
      axes: {clip: [none, static, arc], attack: [sf, foe], seed: [1, 2]}
      when: [{if: {clip: static}, axes: {clip.C: [0.5, 5]}}]      # axes of some points only
      zip: [{workers.honest: [10, 30], workers.f: [1, 3]}]        # axes that move together
      exclude: [{clip: none, attack: sf}]
      also: [{workers.f: 0, attack: none, rule: average}]         # points beside the product; a
                                                                  # list makes several of one entry

or on the command line (see ``grid_source``). Where a group is an axis, an argument goes to those
of its options that have it: ``clip=[none,static] clip.C=[1,2]`` makes three cells. A cell is
everything but attack and seed.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from omegaconf import DictConfig

from lit_byz.config.components import GROUPS, option_fields
from lit_byz.config.compose import Plain, as_config
from lit_byz.config.identity import Identity, identify
from lit_byz.config.labels import attack_name, pairs, shown
from lit_byz.config.plain_yaml import DEEPEST
from lit_byz.config.settled import settled
from lit_byz.config.variants import Variants
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

MOST_POINTS = 100_000

Values = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One run of a grid: the values of its axes, and its config.

    ``title`` names its cell where that is not the values of its axes.
    """

    values: Values
    plain: Plain
    code: Identity
    title: str | None = None

    @cached_property
    def identity(self) -> str:
        return self.code.digest

    @cached_property
    def config(self) -> DictConfig:
        return as_config(self.plain)

    @property
    def steps(self) -> int:
        return int(self.plain["train"]["steps"])

    @cached_property
    def cell(self) -> str:
        """What the run's cell is called: its axes but for attack and seed."""
        if self.title is not None:
            return self.title
        return ", ".join(f"{k}={shown(v)}" for k, v in self.values.items() if not _inner(k))

    @cached_property
    def attack(self) -> str:
        """What the run's attack is called, with its strength however that was set."""
        beside = {k[7:]: v for k, v in self.values.items() if k.startswith("attack.")}
        return attack_name(self.plain, self.values.get("attack"), beside)

    @property
    def seed(self) -> int:
        return int(self.plain["seed"])

    @property
    def label(self) -> str:
        return " | ".join(part for part in (self.cell, self.attack, f"seed {self.seed}") if part)

    def without(self, keys: Sequence[str]) -> "Point":
        """The same run with fewer values in the name of its cell."""
        return replace(self, values={k: v for k, v in self.values.items() if k not in keys})


def nested(settings: Mapping[str, Any], key: str) -> Any:
    """The value of a dotted key; None where there is none."""
    inner: Any = settings
    for part in key.split("."):
        inner = inner.get(part) if isinstance(inner, Mapping) else None
    return inner


@dataclass
class Grid:
    """A grid as it is written.

    ``given`` are arguments of groups that are axes: they go to every option that has them.
    """

    base: dict[str, Any] = field(default_factory=dict)
    axes: dict[str, list[Any]] = field(default_factory=dict)
    when: list[dict[str, Any]] = field(default_factory=list)
    zip: list[dict[str, list[Any]]] = field(default_factory=list)
    exclude: list[Values] = field(default_factory=list)
    also: list[Values] = field(default_factory=list)
    given: Values = field(default_factory=dict)

    @property
    def keys(self) -> set[str]:
        """The keys that have several values, in all points."""
        return {*self.axes, *(key for group in self.zip for key in group)}

    def values(self) -> list[Values]:
        """The axes' values of every point, excluded ones left out."""
        if not (found := list(self.each())):
            raise BadRequest("the grid is empty: exclude leaves no point")
        return found

    def each(self) -> Iterator[Values]:
        """The same, for those who may not need all of them."""
        for tried, (values, kept) in enumerate(self._tried(), 1):
            _refuse_many(tried)
            if kept:
                yield values

    def _tried(self) -> Iterator[tuple[Values, bool]]:
        """All points, and whether they are left when the excluded ones are out."""
        arguments = [key for key in self.axes if self._is_argument(key)]
        plain = [[{k: v} for v in vs] for k, vs in self.axes.items() if k not in arguments]
        zipped = [_zipped(group) for group in self.zip]
        # The order of the keys by which cells are called, for each set of them.
        orders: dict[frozenset[str], list[str]] = {}
        if self.also and not (self.axes or zipped):
            yield from self._beside(orders)  # nothing but single points
            return
        _refuse_many(math.prod(map(len, [*plain, *zipped])))
        order = cache(_in_order)
        for parts in itertools.product(*plain, *zipped):
            point = {key: value for part in parts for key, value in part.items()}
            for more in self._conditional(point, arguments):
                full = {**point, **more}
                full = {key: full[key] for key in order(tuple(full))}
                if self.also:
                    orders.setdefault(_outer(full), list(full))
                yield full, not any(self.matches(full, rule) for rule in self.exclude)
        yield from self._beside(orders)

    def _beside(self, orders: dict[frozenset[str], list[str]]) -> Iterator[tuple[Values, bool]]:
        """The points of ``also``; those of a cell of the product are called as that is."""
        for entry in self.also:
            known = orders.setdefault(_outer(entry), list(entry))
            keys = [k for k in known if k in entry] + [k for k in entry if k not in known]
            axes = [entry[key] if isinstance(entry[key], list) else [entry[key]] for key in keys]
            for values in itertools.product(*axes):
                yield dict(zip(keys, values, strict=True)), True

    def _is_argument(self, key: str) -> bool:
        """Whether a key is an argument of a group that has several options here."""
        group, dot, _ = key.partition(".")
        return bool(dot) and group in GROUPS and group in self.keys

    def _conditional(self, point: Values, arguments: Sequence[str]) -> Iterator[Values]:
        """The values of axes that only some points have."""
        axes = {key: self.axes[key] for key in arguments if has_argument(point, key)}
        for condition in self.when:
            if self.matches(point, condition["if"]):
                axes |= condition["axes"]
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values, strict=True))

    def matches(self, point: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
        """Whether a point has these values, on an axis or as what all points share."""
        pairs = ((point[k] if k in point else nested(self.base, k), v) for k, v in wanted.items())
        return all(_same(value, other) for value, other in pairs)

    def settings(self, values: Values) -> dict[str, Any]:
        """Nested settings of the point with these values."""
        given = {key: v for key, v in self.given.items() if has_argument(values, key)}
        return layered(self.base, {**given, **values})


def has_argument(values: Mapping[str, Any], key: str) -> bool:
    """Whether the option that a point has chosen takes the argument ``group.name``."""
    group, _, name = key.partition(".")
    option = values.get(group)
    if isinstance(option, Mapping):
        if name in option:
            return False  # set by the option's own value, which is nearer
        option = option.get("name")
    if not isinstance(option, str):
        return False
    fields, takes_others = option_fields(group, option)
    return takes_others or any(field.name == name for field in fields)


@settled()
def points(grid: Grid) -> list[Point]:
    """Every run of a grid, composed and checked, once in each cell that it belongs to.

    They share sections that are alike.
    """
    used = grid.values()
    _refuse_lost_arguments(grid, used)
    found: dict[tuple[str, str], Point] = {}
    composed = Variants(grid.settings)
    for values in used:
        try:
            plain = composed.plain(values)
        except BadRequest as error:
            where = pairs(values)
            raise BadRequest(f"grid point {where}: {error}" if where else str(error)) from error
        point = Point(values, plain, identify(plain))
        # A cell without a run that another has too would take its worst case over fewer attacks.
        found.setdefault((point.cell, point.identity), point)
    return list(found.values())


def _refuse_lost_arguments(grid: Grid, used: Sequence[Values]) -> None:
    """An argument that no option of its group has would be dropped without a word."""
    arguments = [key for key in grid.axes if grid._is_argument(key)]
    for key in [*grid.given, *arguments]:
        if any(key in values or has_argument(values, key) for values in used):
            continue
        group, _, name = key.partition(".")
        options = list(dict.fromkeys(shown(values.get(group)) for values in used))
        known = {
            field.name
            for values in used
            if isinstance(values.get(group), str)
            for field in option_fields(group, values[group])[0]
        }
        hint = nearest(name, known)
        raise BadRequest(f"{key}: no option of {group}=[{','.join(options)}] has it; {hint}")


def layered(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings with the values of a point put over them."""
    content: dict[str, Any] = dict(base)
    for key, value in values.items():
        if key in GROUPS:
            content[key] = dict(value) if isinstance(value, dict) else {"name": value}
    for key, value in values.items():
        if key in GROUPS:
            continue
        section = content
        *parents, leaf = key.split(".")
        if len(parents) > DEEPEST:
            raise BadRequest(f"unknown key '{key}': it has {len(parents) + 1} parts")
        for parent in parents:
            inner = section.get(parent, {})
            section[parent] = dict(inner) if isinstance(inner, dict) else {"name": inner}
            section = section[parent]
        section[leaf] = value
    return content


def _in_order(keys: tuple[str, ...]) -> list[str]:
    """An argument right after its group, whichever axis came first."""
    ordered = []
    for key in keys:
        group = key.partition(".")[0]
        if key == group or group not in GROUPS or group not in keys:
            ordered += [key, *(k for k in keys if key in GROUPS and k.startswith(f"{key}."))]
    return ordered


def _refuse_many(points: int) -> None:
    if points > MOST_POINTS:
        raise BadRequest(f"the grid has more than {MOST_POINTS:,} points; take some axes out")


def _zipped(group: Mapping[str, list[Any]]) -> list[Values]:
    return [dict(zip(group, row, strict=True)) for row in zip(*group.values(), strict=True)]


def _same(value: Any, wanted: Any) -> bool:
    """Equal, or an option with arguments against its name alone."""
    if isinstance(value, dict) and not isinstance(wanted, dict):
        return bool(value.get("name") == wanted)
    return bool(value == wanted)


def _inner(key: str) -> bool:
    return key == "seed" or key.split(".", maxsplit=1)[0] == "attack"


def _outer(keys: Iterable[str]) -> frozenset[str]:
    """The keys that tell cells apart."""
    return frozenset(key for key in keys if not _inner(key))
