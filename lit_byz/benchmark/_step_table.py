"""The benchmark of steps as tables: on a terminal, or as Markdown for a page."""

from typing import Literal

from rich.console import Console
from rich.table import Table

from lit_byz.benchmark import _harness
from lit_byz.benchmark._ratio import Ratio
from lit_byz.benchmark._step_rows import Row, TrackingCost, goals

TIMES = ("floor, ms", "ours, ms", "without C++", "by hand, ms", "byzfl, ms")
RATIOS = ("ours / floor", "by hand / ours", "byzfl / ours")


def show(console: Console, rows: list[Row], cost: TrackingCost | None) -> None:
    """Print a table for each size, and the verdicts."""
    for key in _groups(rows):
        table = Table(title=_title(key))
        table.add_column("attack")
        for heading in (*TIMES, *RATIOS):
            table.add_column(heading, justify="right")
        table.add_column("gradients: ours, floor's")
        for row in (row for row in rows if _key(row) == key):
            floor = _verdict(row.over, row.over_floor_goal, "≤")
            before = _verdict(row.before, row.ahead_goal, "≥")
            hand = f"{row.ahead_of_hand:.1f}×"
            methods = f"{row.gradient_method}; {row.floor_method}"
            table.add_row(_attack(row), *_times(row), floor, hand, before, methods)
        console.print(table)
    if cost is not None:
        console.print(_tracking(cost))
    _harness.print_verdicts(console, goals(rows, cost))


def markdown(rows: list[Row], cost: TrackingCost | None, instructions: str) -> str:
    """The same for a page."""
    lines = []
    for key in _groups(rows):
        headings = ("attack", *TIMES, *RATIOS)
        lines += [f"**{_title(key)}, {instructions}**", "", f"| {' | '.join(headings)} |"]
        lines.append(f"|---{'|---:' * (len(headings) - 1)}|")
        for row in (row for row in rows if _key(row) == key):
            floor = _ratio(row.over, row.over_floor_goal, "≤")
            before = _ratio(row.before, row.ahead_goal, "≥")
            cells = (_attack(row), *_times(row), floor, f"{row.ahead_of_hand:.1f}×", before)
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    for goal, verdict in goals(rows, cost).items():
        said = verdict if isinstance(verdict, str) else "reached" if verdict else "missed"
        if said != "reached":
            lines.append(f"- {goal}: {said}")
    if cost is not None:
        lines += ["", _tracking(cost)]
    return "\n".join(lines)


def _key(row: Row) -> tuple[str, int, int, int]:
    return row.model, row.honest, row.f, row.batch_size


def _groups(rows: list[Row]) -> list[tuple[str, int, int, int]]:
    return list(dict.fromkeys(map(_key, rows)))


def _title(key: tuple[str, int, int, int]) -> str:
    model, honest, f, batch_size = key
    return f"{model}, h = {honest}, f = {f}, b = {batch_size}"


def _attack(row: Row) -> str:
    return row.attack if row.rule == "cwtm" else f"{row.attack} on {row.rule}"


def _times(row: Row) -> list[str]:
    seconds = (row.floor, row.ours, row.uncompiled, row.by_hand, row.byzfl)
    return ["" if t is None else f"{1e3 * t:.1f}" for t in seconds]


def _ratio(ratio: Ratio | None, goal: float | None, sign: str) -> str:
    """A ratio with its interval, and its goal."""
    if ratio is None:
        return ""
    shown = f"{_short(ratio.median)}× [{_short(ratio.low)}, {_short(ratio.high)}]"
    return shown if goal is None else f"{shown} ({sign} {goal:g})"


def _verdict(ratio: Ratio | None, goal: float | None, sign: Literal["≤", "≥"]) -> str:
    """The same in the colour of the verdict."""
    text = _ratio(ratio, goal, sign).replace("[", r"\[")
    if ratio is None or goal is None:
        return text
    colour = _harness.COLOURS[ratio.verdict(goal, sign).partition(":")[0]]
    return f"[{colour}]{text}[/{colour}]"


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _tracking(cost: TrackingCost) -> str:
    return (
        f"tracking: {1e3 * cost.metrics:.0f} ms of {cost.run:.1f} s for {cost.steps} steps, "
        f"{cost.share:.2%}; the same run untracked takes {cost.untracked:.1f} s"
    )
