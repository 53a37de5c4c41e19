"""What a tuning study searches: keys and their ranges, for one cell under attacks and seeds.

It is written as the section ``tune`` of an experiment file, or on the command line::

    tune:
      space: {clip.C: {low: 0.01, high: 100, log: true}, rule: {choices: [cwtm, gm]}}
      trials: 20
      compare: [none, arc]          # ways of clipping that are shown beside the best trial

The lists ``attack=[…]`` and ``seed=[…]`` are what the worst case is taken over.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lit_byz.config.grid import Grid, Point, Values, nested, points
from lit_byz.config.grid_source import read_grid
from lit_byz.config.ranges import Choice, Range
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

PARTS = ("space", "trials", "compare")
RANGE, CHOICES = ("low", "high", "log"), ("choices",)
THRESHOLD = "clip.C"
DEFAULTS: dict[str, dict[str, Any]] = {THRESHOLD: {"low": 0.01, "high": 100.0, "log": True}}
ATTACKS = ["sf", "lf", "mimic", "foe", "alie"]
MOST_CHOICES = 100


@dataclass(frozen=True)
class Problem:
    """A cell, the keys that are tuned, and the attacks and seeds of its worst case."""

    base: Values
    runs: dict[str, list[Any]]
    space: dict[str, Range | Choice]
    trials: int
    compare: dict[str, Values]
    given: Values = field(default_factory=dict)

    def trial(self, number: int, params: Values) -> list[Point]:
        """The runs of a trial."""
        shown = ", ".join(f"{key}={shown_value(value)}" for key, value in params.items())
        return self._points(f"trial {number}, {shown}", params)

    def comparisons(self) -> list[Point]:
        """The runs of what the trials are compared with."""
        return [
            point for name, values in self.compare.items() for point in self._points(name, values)
        ]

    def reference(self) -> list[Point]:
        """The runs of one possible trial, the same in every process."""
        return self.trial(0, {key: part.ends()[0] for key, part in self.space.items()})

    def at_ends(self) -> list[Point]:
        """The runs of that trial, and of those that differ from it in one key: every end of it."""
        first = {key: part.ends()[0] for key, part in self.space.items()}
        turned = [{**first, key: end} for key, part in self.space.items() for end in part.ends()]
        return [point for params in turned for point in self.trial(0, params)]

    @property
    def grid(self) -> Grid:
        """The cell's runs as a grid, the tuned keys left out."""
        return Grid(self.base, dict(self.runs), given=self.given)

    @property
    def section(self) -> dict[str, Any]:
        """The section ``tune`` that asks for the same."""
        space = {key: part.section for key, part in self.space.items()}
        compare = list(self.compare.values())
        return {"space": space, "trials": self.trials, "compare": compare}

    @property
    def identity(self) -> str:
        """A hash of all that changes what a trial's value is, or which trials there can be."""
        space = {key: repr(part) for key, part in self.space.items()}
        runs = sorted(point.identity for point in self.reference())
        return hashlib.sha256(json.dumps([space, runs], sort_keys=True).encode()).hexdigest()

    @property
    def size(self) -> float:
        """How many different trials there can be."""
        return math.prod(part.size for part in self.space.values())

    def _points(self, title: str, values: Values) -> list[Point]:
        axes = {key: [value] for key, value in values.items()}
        found = points(Grid(self.base, {**axes, **self.runs}, given=self.given))
        return [replace(point, title=title) for point in found]


def shown_value(value: Any) -> str:
    """A value as titles of trials show it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_problem(settings: Sequence[str], bare: str, trials: int | None = None) -> Problem:
    """What a command line asks to tune, checked before anything starts.

    ``bare`` is the experiment of a command without settings; ``trials`` counts before the file's
    number.
    """
    grid = read_grid(settings, bare, {"attack": ATTACKS})
    section = _section(grid)
    found = section.get("trials", 20) if trials is None else trials
    where = "tune.trials" if trials is None else "--trials"
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise BadRequest(f"{where} = {found!r}: must be a whole number, at least 1")
    space = _space(section.get("space", {}) or {THRESHOLD: {}})
    base, runs = _cell(grid, space)
    compare = _compare(section.get("compare", ["none", "arc"]))
    problem = _typed(Problem(base, runs, space, found, compare, grid.given))
    for point in [*problem.reference(), *problem.comparisons()]:
        if not point.plain["tracking"]["enabled"]:
            raise BadRequest("tracking.enabled = False: a study keeps its runs in the store")
    return replace(problem, trials=int(min(found, problem.size)))


def _section(grid: Grid) -> dict[str, Any]:
    """The section ``tune``, taken out of a grid; lists of the command line are axes by then."""
    section = grid.base.pop("tune", {})
    if not isinstance(section, dict):
        raise BadRequest(f"tune = {section!r}: must be a section with space and trials")
    for key in [key for key in grid.axes if key.startswith("tune.")]:
        inner = section
        *parents, leaf = key.split(".")[1:]
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise BadRequest(f"{key}: '{parent}' is a value, not a section")
        inner[leaf] = grid.axes.pop(key)
    for key in section:
        if key not in PARTS:
            raise BadRequest(f"unknown key '{key}' in tune: {nearest(str(key), PARTS)}")
    return section


def _space(section: Any) -> dict[str, Range | Choice]:
    if not isinstance(section, dict):
        raise BadRequest(f"tune.space = {section!r}: must map keys to ranges or choices")
    entries: dict[str, dict[str, Any]] = {}
    for key, entry in _entries(section, ""):
        entries[key] = {**entries.get(key, {}), **entry}
    found: dict[str, Range | Choice] = {}
    for key, entry in entries.items():
        where = f"tune.space: {key}"
        if key.split(".")[0] in ("attack", "seed", "tracking", "resume"):
            raise BadRequest(f"{where}: cannot be tuned; attacks and seeds make the worst case")
        if "choices" in entry:
            # A range that a file gives is replaced by the choices of the command line.
            found[key] = _choice(where, entry["choices"])
        else:
            found[key] = _range(where, {**DEFAULTS.get(key, {}), **entry})
    return found


def _entries(section: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """``section.key`` and what is said of it, however deep it was written."""
    for name, entry in section.items():
        key = f"{prefix}{name}"
        if not isinstance(entry, dict):
            raise BadRequest(
                f"tune.space: {key} = {entry!r}: must be a range {{low, high, log}} or {{choices}}"
            )
        words = {word: value for word, value in entry.items() if not isinstance(value, dict)}
        for word in words:
            if word not in (*RANGE, *CHOICES):
                allowed = nearest(str(word), (*RANGE, *CHOICES))
                raise BadRequest(f"tune.space: {key}: unknown key '{word}': {allowed}")
        deeper = {word: value for word, value in entry.items() if isinstance(value, dict)}
        if words or not deeper:
            yield key, words
        yield from _entries(deeper, f"{key}.")


def _choice(where: str, options: Any) -> Choice:
    if not isinstance(options, list) or not options:
        raise BadRequest(f"{where}: choices = {options!r}: must be a list with something in it")
    if len(options) > MOST_CHOICES:
        raise BadRequest(f"{where}: must have at most {MOST_CHOICES} choices, not {len(options)}")
    for option in options:
        if not isinstance(option, str | int | float | bool | None):
            raise BadRequest(f"{where}: {option!r} cannot be a choice: must be a text or a number")
        if options.count(option) > 1:
            raise BadRequest(f"{where}: the choice {option!r} is there twice")
    return Choice(tuple(options))


def _range(where: str, entry: Mapping[str, Any]) -> Range:
    for end in ("low", "high"):
        value = entry.get(end)
        if value is None:
            raise BadRequest(f"{where}: {end} is missing: a range has low and high")
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise BadRequest(f"{where}: {end} = {value!r}: must be a number")
        if not math.isfinite(value):
            raise BadRequest(f"{where}: {end} = {value!r}: must be finite")
    low, high, log = entry["low"], entry["high"], entry.get("log", False)
    if not isinstance(log, bool):
        raise BadRequest(f"{where}: log = {log!r}: must be true or false")
    if low >= high:
        raise BadRequest(f"{where}: low = {low:g}: must be less than high = {high:g}")
    if log and low <= 0:
        raise BadRequest(f"{where}: low = {low:g}: must be greater than 0 on a log scale")
    return Range(low, high, log)


def _cell(grid: Grid, space: Mapping[str, Any]) -> tuple[Values, dict[str, list[Any]]]:
    """The settings below the tuned keys, and the axes of attacks and seeds."""
    tuned = {key.split(".")[0] for key in space}

    def replaced(keys: Mapping[str, Any]) -> bool:
        """Whether part of a grid is about what is tuned now."""
        return any(key.split(".")[0] in tuned for key in keys)

    runs = {k: v for k, v in grid.axes.items() if k.split(".")[0] in ("attack", "seed")}
    others = [key for key in grid.axes if key not in runs and not replaced({key: None})]
    others += [key for group in grid.zip for key in group]
    others += [key for c in grid.when if not replaced(c["if"] | c["axes"]) for key in c["axes"]]
    if others:
        raise BadRequest(
            f"{others[0]}: has several values; a study tunes one cell, only attack and seed may be "
            f"lists: say {others[0]}=VALUE"
        )
    base = dict(grid.base)
    if THRESHOLD in space:
        base.setdefault("clip", "static")
    return base, runs


def _compare(entries: Any) -> dict[str, Values]:
    if not isinstance(entries, list):
        raise BadRequest(f"tune.compare = {entries!r}: must be a list, such as [none, arc]")
    found = {}
    for entry in entries:
        values = entry if isinstance(entry, dict) else {"clip": entry}
        if not values:
            raise BadRequest("tune.compare: an entry is empty; say which clip, or which settings")
        found[", ".join(f"{key}={shown_value(value)}" for key, value in values.items())] = values
    return found


def _typed(problem: Problem) -> Problem:
    """The problem with its ranges in their keys' types, after every end has been composed."""
    first = {key: part.ends()[0] for key, part in problem.space.items()}
    typed: dict[str, Range | Choice] = {}
    for key, part in problem.space.items():
        seen = []
        for end in part.ends():
            for point in problem.trial(0, {**first, key: end}):
                seen.append(nested(point.plain, key))
        typed[key] = part
        if isinstance(part, Range):
            integer = all(isinstance(value, int) for value in seen)
            kind = int if integer else float
            low, high = kind(part.low), kind(part.high)
            typed[key] = replace(part, low=low, high=high, integer=integer)
    return replace(problem, space=typed)
