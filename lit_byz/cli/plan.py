"""Before a study starts: what its runs share, what varies, how many there are, what they cost."""

import copy
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console

from lit_byz._passwords import without_passwords
from lit_byz.config import plain_yaml
from lit_byz.config.components import GROUPS
from lit_byz.config.grid import Grid, Point, shown
from lit_byz.config.grid_source import as_file, shared_settings
from lit_byz.config.search_space import Problem
from lit_byz.execution.board import Board
from lit_byz.execution.runner import Memory
from lit_byz.tracking.names import clip_name, partition_name, rule_name

# So many values of an axis are named; of more, the first and the last.
MOST_VALUES = 8


def describe(
    points: Sequence[Point], given: Mapping[str, Any] | None = None, tuned: Sequence[str] = ()
) -> list[str]:
    """What all runs have in common, and what varies between them; ``tuned`` keys are neither."""
    plains = [point.plain for point in points]
    same = shared_settings(plains)
    train, workers = same.get("train", {}), same.get("workers", {})
    parts: list[str] = []
    for group, text in (("dataset", _name), ("partition", partition_name), ("model", _name)):
        if "name" in same.get(group, {}):
            parts.append(text(plains[0][group]))
    if "steps" in train:
        parts.append(f"{train['steps']} steps")
    if "honest" in workers:
        parts.append(f"{workers['honest']} honest workers")
    if "f" in workers:
        parts.append(f"f = {workers['f']}")
    if all("name" in same.get(group, {}) for group in ("rule", "mix")):
        parts.append(rule_name(plains[0]))
    if "name" in same.get("clip", {}):
        known = "clip" in same and "clip.C" not in tuned
        parts.append(f"clip {clip_name(plains[0]['clip']) if known else same['clip']['name']}")
    if "attack" in same:
        parts.append(points[0].attack)
    seeds = list(dict.fromkeys(point.seed for point in points))
    parts.append(f"seed{'s' if len(seeds) > 1 else ''} {_listed(seeds)}")
    lines = [f"shared: {', '.join(parts)}"]
    varies = [f"{key} {_listed(values)}" for key, values in _varying(points).items()]
    varies += [f"{key} = {shown(value)} where it applies" for key, value in (given or {}).items()]
    if varies:
        lines.append(f"varies: {'; '.join(varies)}")
    return lines


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


def _listed(values: Sequence[Any]) -> str:
    texts = [shown(value) for value in values]
    if len(texts) > MOST_VALUES:
        return f"{texts[0]} … {texts[-1]} ({len(texts)} values)"
    return ", ".join(texts)


def tell(console: Console, lines: Sequence[str]) -> None:
    """Print lines as they are."""
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def tell_changed_code(memory: Memory, points: Sequence[Point], console: Console) -> None:
    """Say which results are not taken because other code has computed them."""
    now = {point.identity: point.code.code for point in points}
    changed = {(old, now[i]) for i, old in memory.other_code.items() if i in now}
    for old, new in sorted(changed):
        count = sum(memory.other_code.get(i) == old and now[i] == new for i in now)
        line = f"{count} runs were computed before by other code ({old or 'unknown'}): "
        tell(console, [f"{line}computed again by this one ({new})"])


def counts(board: Board) -> list[str]:
    """How many runs there are, and how many are done."""
    points = board.points
    attacks = len({point.attack for point in points})
    seeds = len({point.seed for point in points})
    done = len(points) - len({point.identity for point in board.waiting})
    return [
        f"{len(points)} runs: {len(board.cells)} cells, {attacks} attacks, {seeds} seeds",
        f"already done: {done}, to do: {len(points) - done}",
    ]


def show(
    board: Board, lines: Sequence[str], measured: Callable[[Point], bool] | None = None
) -> None:
    """A plan on standard output: the counts at once, the cost when it is known."""
    console = Console()
    tell(console, lines)
    tell(console, cost(list({p.identity: p for p in board.waiting}.values()), measured))


def cost(points: Sequence[Point], measured: Callable[[Point], bool] | None = None) -> list[str]:
    """What computing these runs would take.

    With ``measured`` only such runs are timed, and the others taken to cost as much on average.
    """
    from lit_byz.execution.estimate import estimate

    if not points:
        return []
    timed = [point for point in points if measured is None or measured(point)] or list(points)
    found, factor = estimate(timed), len(points) / len(timed)
    return [
        f"estimated from a few measured steps: {duration(factor * found.seconds)} of one "
        f"process as this one, {factor * found.bytes / 1e6:.0f} MB in the store"
    ]


def duration(seconds: float) -> str:
    """Seconds in hours or minutes."""
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
    content = as_file(grid, shared)
    if problem is not None:
        content["tune"] = problem.section
    sys.stdout.write(plain_yaml.write(without_passwords(content)))
    return 0


def write_json(content: Mapping[str, Any]) -> None:
    """Print results for a program to read."""
    json.dump(content, sys.stdout, indent=1)
    sys.stdout.write("\n")
