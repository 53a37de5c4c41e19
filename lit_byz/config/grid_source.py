"""Reading a grid: the experiment's file, changed by what stands on the command line.

``attack=[sf,foe] seed=[1,2]`` makes axes, a single value removes one; ``scale=smoke`` makes any
grid small. Without ``experiment=`` or
``config=`` the grid begins from the defaults, as ``train.py`` does: a sweep trains what is typed.
"""

import copy
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lit_byz.config import sources
from lit_byz.config.components import GROUPS, option_fields
from lit_byz.config.compose import FILES
from lit_byz.config.grid import Grid, Values, layered, nested
from lit_byz.config.labels import pairs
from lit_byz.config.own_data import forget_data, is_own
from lit_byz.config.scale import scaled
from lit_byz.config.schema import NOT_IDENTITY
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

# The section of an experiment's file that says what the paper has of it; reports read it.
PAPER = "paper"
PARTS = ("axes", "when", "zip", "exclude", "also")
MOST_ENTRIES = 1000  # of each part: every point is compared with all of them
# Keys of the fixed part whose values are lists themselves: an axis over one is a list of lists.
LIST_KEYS = frozenset({"train.lr_milestones", "train.lr_values", "trainer.callbacks"})


def read_grid(settings: Sequence[str], bare: str, usual: Mapping[str, Any] | None = None) -> Grid:
    """The grid of a command line.

    ``bare`` is the experiment of a command that is typed without any setting. ``usual`` are values
    of a study's own axes, taken where neither a file nor the command line speaks of their keys.
    """
    forget_data()  # a user's own may have changed since the last command of this process
    asked = sources.parse(settings, GROUPS)
    scale = asked.content.pop("scale", "full")
    named = {key: asked.content.pop(key) for key in FILES if key in asked.content}
    for key, value in named.items():
        if not isinstance(value, str):
            raise BadRequest(f"{key} = {value!r}: must be text")
    if "config" in named:
        found = sources.load(Path(named["config"]))
    elif "experiment" in named or not asked.content:
        found = sources.experiment(named.get("experiment", bare))
    else:
        found = sources.Settings("", {})
    content = copy.deepcopy(found.content)
    content.pop(PAPER, None)
    grid = _parse(content.pop("grid", {}), found.prefix)
    grid.base = content
    _check_conditions(grid)
    # Its own options first: which keys are arguments of a group with several depends on them.
    for key, value in sorted(_flat(asked.content), key=lambda pair: pair[0] not in GROUPS):
        _override(grid, key, value)
    if not named and asked.content:
        for key, value in (usual or {}).items():
            if key not in grid.keys and not _is_chosen(grid.base, key):
                grid.axes[key] = list(value)
    _spread_arguments(grid)
    grid = scaled(grid, scale)
    _drop_idle_conditions(grid)
    for key in grid.keys:
        idle = key in NOT_IDENTITY or key.partition(".")[0] in NOT_IDENTITY
        if idle and not (key == "data.root" and any(map(is_own, _options(grid, "dataset")))):
            raise BadRequest(f"{key}: changes no result, so it cannot have several values")
    return grid


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
        if len(entries) > MOST_ENTRIES:
            raise BadRequest(f"{prefix}grid.{name}: must have at most {MOST_ENTRIES:,} entries")
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
        shown = Counter(_written(value) for value in values)
        for value, count in shown.most_common(1):
            if count > 1:
                raise BadRequest(f"{where}: {key} has the value {value} twice")
    return dict(axes)


def _written(value: Any) -> str:
    """A value in one spelling: 2.0 is 2."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, default=str)


def _check_conditions(grid: Grid) -> None:
    """A condition that holds for no point of its own file is a slip; the command line may win."""
    when, exclude = _idle(grid)
    for condition in when:
        raise BadRequest(f"grid.when: no point has {pairs(condition['if'])}")
    for rule in exclude:
        raise BadRequest(f"grid.exclude: no point has {pairs(rule)}")


def _drop_idle_conditions(grid: Grid) -> None:
    """Forget the conditions that the command line has left without points.

    A grid that is printed is then one that can be read back.
    """
    when, exclude = _idle(grid)
    grid.when = [condition for condition in grid.when if condition not in when]
    grid.exclude = [rule for rule in grid.exclude if rule not in exclude]


def _idle(grid: Grid) -> tuple[list[Values], list[Values]]:
    """The entries of ``when`` and of ``exclude`` that hold for no point."""
    if not (grid.when or grid.exclude):
        return [], []
    bare = Grid(grid.base, grid.axes, [], grid.zip)
    every = Grid(grid.base, grid.axes, grid.when, grid.zip)
    when = _never(grid, [condition["if"] for condition in grid.when], bare)
    exclude = _never(grid, grid.exclude, every)
    return [grid.when[place] for place in when], [grid.exclude[place] for place in exclude]


def _never(grid: Grid, rules: Sequence[Values], tried: Grid) -> list[int]:
    """The places of the rules that hold for no point; looks no further once all have held."""
    left = {place: rule for place, rule in enumerate(rules) if not _surely(tried, rule)}
    for values in tried.each() if left else ():
        left = {place: r for place, r in left.items() if not grid.matches(values, r)}
        if not left:
            break
    return list(left)


def _surely(grid: Grid, rule: Values) -> bool:
    """Whether a rule holds for some point, as far as axes that are free of each other show it."""
    free = {k: v for k, v in grid.axes.items() if k.partition(".")[0] not in grid.keys - {k}}
    return all(
        any(grid.matches({key: one}, {key: value}) for one in free.get(key, ()))
        for key, value in rule.items()
    )


def _override(grid: Grid, key: str, value: Any) -> None:
    """A setting of the command line: a list makes or replaces an axis, a value removes it."""
    for group in grid.zip:
        if key in group:
            raise BadRequest(f"{key}: that axis is zipped with others in this grid; edit its file")
    for entry in grid.also:
        if isinstance(entry.get(key), list):
            entry[key] = value
    for condition in grid.when:
        condition["axes"].pop(key, None)  # the command line wins
    grid.when = [condition for condition in grid.when if condition["axes"]]
    if isinstance(value, list) and not _is_one_value(grid, key, value):
        grid.axes |= _checked_axes({key: value}, "the command line")
        return
    grid.axes.pop(key, None)
    if key in GROUPS:
        # A chosen option replaces the whole section, and with it axes over its arguments.
        for other in [other for other in grid.axes if other.startswith(f"{key}.")]:
            del grid.axes[other]
    if key.partition(".")[0] in grid.keys:
        grid.given[key] = value
    else:
        grid.base = layered(grid.base, {key: value})


def _is_one_value(grid: Grid, key: str, value: list[Any]) -> bool:
    """Whether a list is a value of its key, not several: where the key takes lists."""
    if value and all(isinstance(item, list) for item in value):
        return False
    if key in LIST_KEYS:
        return True
    group, dot, name = key.partition(".")
    if not dot or group not in GROUPS:
        return False
    options = _options(grid, group)
    names = [o.get("name") if isinstance(o, Mapping) else o for o in options]
    if not any(isinstance(n, str) for n in names):
        names = [sources.load(sources.config_dir() / "base.yaml").content[group]]
    return any(
        field.takes_lists
        for option in names
        if isinstance(option, str)
        for field in option_fields(group, option)[0]
        if field.name == name
    )


def _options(grid: Grid, group: str) -> list[Any]:
    """What a grid chooses of a group, as it is written; None where it does not."""
    zipped = [value for axes in grid.zip for value in axes.get(group, [])]
    return [*grid.axes.get(group, []), *zipped, nested(grid.base, group)]


def _spread_arguments(grid: Grid) -> None:
    """Arguments that a file gives to a group without choosing, where the group is an axis."""
    for group in GROUPS:
        section = grid.base.get(group)
        if group in grid.keys and isinstance(section, Mapping):
            if "name" not in section:
                for name, value in section.items():
                    grid.given.setdefault(f"{group}.{name}", value)
            grid.base.pop(group)


def _is_chosen(base: Mapping[str, Any], key: str) -> bool:
    """Whether settings have a value for a key; arguments alone choose no option of a group."""
    found = nested(base, key)
    if key in GROUPS and isinstance(found, Mapping):
        return "name" in found
    return found is not None


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


def as_file(grid: Grid, shared: Mapping[str, Any]) -> dict[str, Any]:
    """A grid as a file that ``config=`` reads back: what all runs share, and the section grid."""
    section: dict[str, Any] = {}
    axes = {**{key: [value] for key, value in grid.given.items()}, **grid.axes}
    for name, part in (("axes", axes), ("when", grid.when), ("zip", grid.zip)):
        if part:
            section[name] = part
    for name, entries in (("exclude", grid.exclude), ("also", grid.also)):
        if entries:
            section[name] = entries
    content: dict[str, Any] = dict(shared)
    if section:
        content["grid"] = section
    return content


def shared_settings(plains: Sequence[Values]) -> Values:
    """The keys on which all configs agree; a section or group stays as far as it is the same."""
    first, *others = plains
    found: Values = {}
    for key, value in first.items():
        if all(other.get(key) == value for other in others):
            found[key] = value
        elif isinstance(value, dict):
            inner = shared_settings([plain[key] for plain in plains])
            # Arguments without the option that they belong to would say nothing.
            if inner and (key not in GROUPS or "name" in inner):
                found[key] = inner
    return found
