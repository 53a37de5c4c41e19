"""Before a study starts: what its runs share, what varies, how many there are, what they cost."""

import argparse
import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from lit_byz._counted import counted
from lit_byz._versions import this_torch
from lit_byz.cli import answer, saying
from lit_byz.cli.printed import write_config
from lit_byz.config.advice import slow_rules
from lit_byz.config.apart import NAMED, apart
from lit_byz.config.components import GROUPS
from lit_byz.config.compose import as_written
from lit_byz.config.grid import Grid, Point, nested
from lit_byz.config.grid_source import as_file, shared_settings
from lit_byz.config.labels import shown
from lit_byz.config.search_space import Problem
from lit_byz.execution.board import Board
from lit_byz.execution.runner import Memory
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.names import clip_name, declared, partition_name, rule_name

# So many values of an axis are named; of more, the first and the last.
MOST_VALUES = 8


def describe(
    points: Sequence[Point], given: Mapping[str, Any] | None = None, tuned: Sequence[str] = ()
) -> list[str]:
    """What all runs have in common, and what varies between them; ``tuned`` keys are neither."""
    plains = [point.plain for point in points]
    same = _without(shared_settings(plains), tuned)
    train, workers = same.get("train", {}), same.get("workers", {})
    parts: list[str] = []
    for group, text in (("dataset", _name), ("partition", partition_name), ("model", _name)):
        if "name" in same.get(group, {}):
            parts.append(text(same[group]))
    if "steps" in train:
        parts.append(f"{train['steps']} steps")
    if "honest" in workers:
        parts.append(f"{workers['honest']} honest workers")
    if "f" in workers:
        parts.append(f"f = {workers['f']}")
    kept = {*tuned, *(given or {})}
    parts += [f"{key} = {f}" for key, f in declared(plains).items() if key not in kept]
    if all("name" in same.get(group, {}) for group in ("rule", "mix")):
        parts.append(rule_name(plains[0]))
    if "name" in same.get("clip", {}):
        parts.append(f"clip {clip_name(same['clip'])}")
    if same.get("attack") == plains[0]["attack"]:
        parts.append(points[0].attack)
    seeds = list(dict.fromkeys(point.seed for point in points))
    parts.append(f"seed{'s' if len(seeds) > 1 else ''} {_listed(seeds)}")
    lines = [f"shared: {', '.join(parts)}"]
    named = {*kept, *declared(plains), *NAMED}
    if more := [f"{k} = {shown(v)}" for k, v in _apart(plains[0], same).items() if k not in named]:
        lines.append(f"not the default: {', '.join(more)}")
    varies = [f"{key} {_listed(values)}" for key, values in _varying(points).items()]
    varies += [f"{key} = {shown(value)} where it applies" for key, value in (given or {}).items()]
    if varies:
        lines.append(f"varies: {'; '.join(varies)}")
    brought = [f"{key} {_listed(values)}" for key, values in _brought(points).items()]
    if brought:
        lines.append(f"with the data set: {'; '.join(brought)}")
    return [*lines, *slow_rules(plains)]


def _apart(plain: Mapping[str, Any], same: Mapping[str, Any]) -> dict[str, Any]:
    """What all runs have otherwise than their data set and options have it by themselves."""
    return {key: value for key, value in apart(plain).items() if nested(same, key) == value}


def _without(settings: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Settings without some keys: groups, or one of a section's."""
    left = {group: value for group, value in settings.items() if group not in keys}
    for section, _, key in (each.partition(".") for each in keys):
        if isinstance(left.get(section), dict):
            left[section] = {k: v for k, v in left[section].items() if k != key}
    return left


def _name(section: Mapping[str, Any]) -> str:
    return str(section["name"])


def _varying(points: Sequence[Point]) -> dict[str, list[Any]]:
    """The axes with more than one value, seeds left out."""
    found: dict[str, list[Any]] = {}
    for point in points:
        for key, value in point.values.items():
            values = found.setdefault(key, [])
            if value not in values:
                values.append(value)
    return {k: v for k, v in found.items() if k != "seed" and (len(v) > 1 or "." in k)}


def _brought(points: Sequence[Point]) -> dict[str, list[Any]]:
    """What differs from one data set to another though no axis has it, in their order.

    A data set recommends a model, a partition and how to train.
    """
    by_dataset = {shown(point.values.get("dataset")): point for point in points}
    if len(by_dataset) == 1:
        return {}
    told: dict[str, dict[str, Any]] = {
        name: {key: value for key, value in _leaves(point.plain) if key not in point.values}
        for name, point in by_dataset.items()
    }
    common = [key for key in next(iter(told.values())) if all(key in own for own in told.values())]
    for point in points:
        own = told[shown(point.values.get("dataset"))]
        here = dict(_leaves(point.plain))
        common = [key for key in common if key in here and here[key] == own[key]]
    found = {key: [own[key] for own in told.values()] for key in common}
    return {key: v for key, v in found.items() if any(value != v[0] for value in v)}


def _leaves(plain: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Keys and their values; a group's option has the group's name."""
    for section, value in plain.items():
        if section in ("dataset", "tracking", "data"):
            continue
        for key, inner in value.items() if isinstance(value, Mapping) else [("", value)]:
            yield (f"{section}.{key}" if key not in ("", "name") else section), inner


def _listed(values: Sequence[Any]) -> str:
    texts = [shown(value) for value in values]
    if len(texts) > MOST_VALUES:
        return f"{texts[0]} … {texts[-1]} ({len(texts)} values)"
    return ", ".join(texts)


def tell(console: Console, lines: Sequence[str]) -> None:
    """Print lines as they are."""
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def tell_changed_code(memory: Memory, points: Sequence[Point], console: Console) -> None:
    """Say which runs are not taken because they are other code's.

    And which are, though they were computed with another torch.
    """
    now = {point.identity: point.code.code for point in points}
    changed = {(old, now[i]) for i, old in memory.other_code.items() if i in now}
    for old, new in sorted(changed):
        count = sum(memory.other_code.get(i) == old and now[i] == new for i in now)
        line = f"{counted(count, 'run')} begun before by other code ({old or 'unknown'}): "
        tell(console, [f"{line}this one begins anew ({new})"])
    for torch, count in Counter(memory.other_torch.get(i) for i in now).items():
        if torch is not None:
            line = f"{counted(count, 'run')} computed before with torch {torch}: taken as they are"
            tell(console, [f"{line}, torch {this_torch()} may differ in their last bits"])


def counts(board: Board) -> list[str]:
    """How many runs there are, and how many are done."""
    points = board.points
    attacks = len({point.attack for point in points})
    seeds = len({point.seed for point in points})
    waiting, failed = len({point.identity for point in board.waiting}), len(board.failed)
    done = len(points) - waiting - failed
    return [
        f"{counted(len(points), 'run')}: {counted(len(board.cells), 'cell')}, "
        f"{counted(attacks, 'attack')}, {counted(seeds, 'seed')}",
        f"already done: {done}{failed_before(failed)}, to do: {waiting}",
    ]


def failed_before(count: int) -> str:
    """What is said of runs that failed, and are not tried again unless that is asked for."""
    return f", failed before: {count} (--retry-failed computes them again)" if count else ""


def show(
    board: Board,
    options: argparse.Namespace,
    ledger: Ledger | None,
    measured: Callable[[Point], bool] | None = None,
    *,
    at_most: bool = False,
) -> int:
    """A plan on standard output: the counts at once, the cost when it is known.

    It is ``at_most`` so much where runs end early.
    """
    waiting = list({p.identity: p for p in board.waiting}.values())
    bound = "at most " if at_most else ""
    found = partial(cost, waiting, ledger, options, measured, bound=bound)
    return write(counts(board), found, options.json)


def write(lines: Sequence[str], more: Callable[[], Sequence[str]], as_json: bool) -> int:
    """Write a plan's lines, and those that take a while to find out; returns the exit code."""
    if as_json:
        write_json({"plan": [*lines, *more()]})
        return 0
    console = Console()
    saying.over()
    tell(console, lines)
    tell(console, more())
    return 0


def cost(
    points: Sequence[Point],
    ledger: Ledger | None,
    options: argparse.Namespace,
    measured: Callable[[Point], bool] | None = None,
    *,
    bound: str = "",
) -> list[str]:
    """What computing these runs would take.

    With ``measured`` only such runs are timed, and the others taken to cost as much on average.
    """
    if not points:
        return []
    from lit_byz.execution.estimate import estimate

    timed = [point for point in points if measured is None or measured(point)] or list(points)
    saying.now("estimating what they cost")
    found, factor = estimate(timed, ledger), len(points) / len(timed)
    saying.over()
    time = spans(factor * found.seconds, options, len(points), found.longest)
    size = f"{factor * found.bytes / 1e6:.0f} MB in the store"
    return [f"estimated {found.source}: {bound}{time}, {size}"]


def spans(seconds: float, options: argparse.Namespace, runs: int, longest: float) -> str:
    """A time of one process, and what that comes to with as many as the command would take.

    No run is divided: more processes than runs are of no use, and the longest run takes its time.
    """
    from lit_byz.cli.options import processes

    many = min(processes(options), runs)
    with_many = f", {duration(max(seconds / many, longest))} with {many}" if many > 1 else ""
    return f"{duration(seconds)} of one process{with_many}"


def duration(seconds: float) -> str:
    """Seconds in hours, minutes or seconds."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{seconds / 60:.1f} min"


def print_config(grid: Grid, points: Sequence[Point], problem: Problem | None = None) -> int:
    """Write a grid, or what a study tunes, as a file that ``config=`` reads back."""
    shared = copy.deepcopy(shared_settings([point.plain for point in points]))
    # Groups with several options are axes; what they share would choose one for all.
    shared = {k: v for k, v in shared.items() if k not in GROUPS or k not in grid.keys}
    for key in () if problem is None else problem.space:
        section, _, name = key.partition(".")
        if not name:
            shared.pop(section, None)
        elif section in shared:
            shared[section].pop(name, None)
    written = as_written(shared, beneath=grid.settings(points[0].values))
    content = as_file(grid, written)
    if problem is not None:
        content["tune"] = problem.section
    write_config(content, shared)
    return 0


def write_json(content: Mapping[str, Any]) -> None:
    """Print results for a program to read."""
    output = answer.stream()
    json.dump(content, output, indent=1)
    output.write("\n")
    output.flush()
