"""Breakdown points: worst-case accuracy against f."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.report.drawing import (
    chance_of,
    draw_chance,
    in_percent,
    legend_below,
    pictures,
    save,
)
from lit_byz.report.rendering import (
    Reader,
    Rendered,
    Summary,
    as_csv,
    caption,
    files_in,
    of_cell,
    problems,
    setting,
)
from lit_byz.report.words import WORST_CASE, cell_words, told_apart
from lit_byz.report.worst_case_table import END_COLUMNS, ends_of_cell
from lit_byz.tracking.records import CellResult, StudyResult
from lit_byz.tracking.worst_case import WorstCase

if TYPE_CHECKING:
    from rich.table import Table

MARKS = {"exact": "o", "at most": "v", "at least": "^"}

# A worst case at one f, mean over seeds.
Level = Summary
# f to what the runs ended with.
Ends = Mapping[int, Sequence[Any]]


def level(found: WorstCase, threshold: float) -> Level:
    """The worst case as far as it is known: from the side that decides, where runs are missing."""
    if found.exact or found.kind == "unknown":
        return Level(found.mean, found.std, found.seeds, found.kind)
    if found.at_least >= threshold:
        return Level(found.at_least, None, found.seeds, "at least")
    return Level(found.at_most, None, found.seeds, "at most")


@dataclass(frozen=True)
class ArmResult:
    """What is known of one arm: its levels by f, and its answer.

    ``breakdown`` is the smallest f below the threshold, None if there is none up to the largest f;
    an arm that is not ``decided`` has no answer yet. ``scanned`` is the full grid's answer, and
    ``ends`` are the worst cases of what the runs ended with, as a file of numbers has them.
    """

    levels: Mapping[int, Level]
    breakdown: int | None
    decided: bool = True
    scanned: "FullAnswer | None" = None
    ends: Ends = field(default_factory=dict)


@dataclass(frozen=True)
class FullAnswer:
    """The answer of the full grid; ``monotone`` says whether every larger f is below too."""

    breakdown: int | None
    monotone: bool
    levels: Mapping[int, Level]
    ends: Ends = field(default_factory=dict)


Arms = Mapping[str, ArmResult]


def render(result: StudyResult, folder: Path, read: Reader) -> Rendered:
    """What the search found, beside the full grid's answer where that was computed."""
    facts = result.record.facts
    most, threshold, used = facts["most"], facts["threshold"], facts["runs_used"]
    whole, honest = facts["runs_full_grid"], facts["honest"]
    full = read(facts["full_grid"]) if "full_grid" in facts else None
    arms = arms_of(result, full)
    title = f"{setting(result)}: {used} runs, full grid {whole}"
    picture, numbers = files_in(folder, "breakdown")
    figure(arms, most, threshold, title, picture, chance_of(str(facts["dataset"])))
    numbers.write_text(csv_of(arms))
    lines = [f"{name or 'one arm'}: {_verdict(arm, most, honest)}" for name, arm in arms.items()]
    lines.append(f"bisection: {used} runs, {100 * used / whole:.0f} % of the full grid's {whole}")
    if full is not None:
        lines.append(_comparison(arms))
    content = {
        "arms": [_plain(name, arm) for name, arm in arms.items()],
        "threshold": threshold,
        "max_f": most,
        "runs_used": used,
        "runs_full_grid": whole,
        **problems(result),
    }
    answers = {f"breakdown/{name or 'f'}": arm.breakdown for name, arm in arms.items()}
    metrics = {name: float(f) for name, f in answers.items() if f is not None}
    metrics["breakdown/runs_used"] = float(used)
    made = table(arms, most, threshold, title)
    return Rendered([made, *lines], [*pictures(picture), numbers], content, metrics)


def arms_of(result: StudyResult, full: StudyResult | None) -> dict[str, ArmResult]:
    """What is known of every arm."""
    facts = result.record.facts
    threshold = facts["threshold"]
    found = {}
    for name, answered in facts["arms"].items():
        cells = [cell for cell in result.of_kind("cell") if cell.facts["arm"] == name]
        levels = {cell.facts["f"]: _level_of(cell, threshold) for cell in cells}
        seen = None
        if full is not None:
            at_f = [cell for cell in full.of_kind("cell") if cell.facts.get("arm") == name]
            seen = scan(at_f, facts["most"], threshold)
        ends = {cell.facts["f"]: ends_of_cell(cell) for cell in cells}
        found[name] = ArmResult(levels, answered["breakdown"], answered["decided"], seen, ends)
    return found


def _level_of(cell: CellResult, threshold: float) -> Level:
    lacks = of_cell(cell)
    found = level(cell.worst_case, threshold)
    return replace(found, failed=lacks.failed, missing=lacks.missing)


def scan(cells: Iterable[CellResult], most: int, threshold: float) -> "FullAnswer | None":
    """The answer of the full grid: the smallest f below the threshold; None if runs are missing."""
    found = {cell.facts["f"]: cell for cell in cells}
    if not found or any(cell.worst_case.missing for cell in found.values()):
        return None
    levels = {f: level(cell.worst_case, threshold) for f, cell in found.items()}
    below = [f for f, reached in sorted(levels.items()) if reached.mean < threshold]
    first = below[0] if below else None
    monotone = first is None or below == list(range(first, most + 1))
    return FullAnswer(first, monotone, levels, {f: ends_of_cell(c) for f, c in found.items()})


def _verdict(arm: ArmResult, most: int, honest: int | None) -> str:
    where = answer(arm.breakdown, arm.decided, most)
    if arm.breakdown is None:
        return where
    of = "" if honest is None else f" of {honest + arm.breakdown} workers"
    return f"breaks down at {where}{of}"


def _comparison(arms: Arms) -> str:
    if any(arm.scanned is None or not arm.decided for arm in arms.values()):
        return "full grid: incomplete"
    scans = {name: arm.scanned for name, arm in arms.items() if arm.scanned is not None}
    other = [name or "one arm" for name, s in scans.items() if s.breakdown != arms[name].breakdown]
    if not other:
        return "full grid: the same answer for every arm"
    return f"full grid: another answer for {', '.join(other)}: not monotone in f"


def _plain(name: str, arm: ArmResult) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "arm": name,
        "breakdown_f": arm.breakdown,
        "decided": arm.decided,
        "levels": _plain_levels(arm.levels),
    }
    if arm.scanned is not None:
        entry["full_grid"] = {
            "breakdown_f": arm.scanned.breakdown,
            "monotone": arm.scanned.monotone,
            "levels": _plain_levels(arm.scanned.levels),
        }
    return entry


def _plain_levels(levels: Mapping[int, Level]) -> dict[str, Any]:
    return {str(f): {**vars(found), "mean": found.value} for f, found in sorted(levels.items())}


def answer(breakdown: int | None, decided: bool, most: int) -> str:
    """An arm's answer in words."""
    if not decided:
        return "undecided"
    return f"f = {breakdown}" if breakdown is not None else f"holds to f = {most}"


def table(arms: Arms, most: int, threshold: float, title: str) -> "Table":
    """A row per arm: what was found at each f that was probed, and where it breaks down."""
    from rich.table import Table

    made = Table(title=title, title_justify="left")
    made.add_column("arm", no_wrap=True)
    probed = sorted({f for arm in arms.values() for f in arm.levels})
    for f in probed:
        made.add_column(f"f={f}", justify="right", no_wrap=True)
    made.add_column("breaks down", justify="right")
    full = any(arm.scanned for arm in arms.values())
    if full:
        made.add_column("full grid", justify="right")
    for name, arm in arms.items():
        row = [_cell(arm.levels.get(f), threshold) for f in probed]
        row.append(f"[bold]{answer(arm.breakdown, arm.decided, most)}[/bold]")
        if full:
            seen = arm.scanned
            row.append("" if seen is None else _scan_answer(seen, most))
        made.add_row(name or "one arm", *row)
    made.caption = caption(made, WORST_CASE, f"threshold {100 * threshold:g}")
    return made


def _scan_answer(seen: FullAnswer, most: int) -> str:
    text = answer(seen.breakdown, True, most)
    return text if seen.monotone else f"{text}, not monotone"


def _cell(level: Level | None, threshold: float) -> str:
    if level is None:
        return ""
    return f"[red]{level}[/red]" if level.mean < threshold else str(level)


def csv_of(arms: Arms) -> str:
    """A line per arm and f: of the search, and of the full grid where it was computed."""
    rows: list[list[Any]] = []
    for name, arm in arms.items():
        sources: list[tuple[str, ArmResult | FullAnswer]] = [("search", arm)]
        if arm.scanned is not None:
            sources.append(("full grid", arm.scanned))
        for by, source in sources:
            for f, found in sorted(source.levels.items()):
                row = [name, by, f, found.value, found.std, found.seeds, found.kind]
                row.append("" if source.breakdown is None else source.breakdown)
                rows.append([*row, *source.ends.get(f, [""] * len(END_COLUMNS))])
    header = ["arm", "by", "f", "worst_case", "std", "seeds", "kind", "breakdown_f"]
    return as_csv([*header, *END_COLUMNS], rows)


def figure(
    arms: Arms, most: int, threshold: float, title: str, path: Path, chance: float | None = None
) -> None:
    """Worst-case accuracy against f: the probed points, the threshold, and where an arm breaks."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(6.6, 4.4), layout="constrained")
    axes = drawn.subplots()
    kinds: dict[str, None] = {}
    names = told_apart(list(arms), partial(cell_words, empty="one arm"))
    for place, (words, arm) in enumerate(zip(names, arms.values(), strict=True)):
        colour = f"C{place % 10}"
        full = arm.scanned is not None
        levels = arm.scanned.levels if arm.scanned is not None else arm.levels
        known = {f: found for f, found in sorted(levels.items()) if found.value is not None}
        means = [found.mean for found in known.values()]
        verdict = answer(arm.breakdown, arm.decided, most)
        verdict = f"breaks down at {verdict}" if arm.breakdown is not None else verdict
        label = f"{words}: {verdict}"
        style = "-" if full else ":"
        axes.plot(list(known), means, style, color=colour, label=label, linewidth=1.3)
        for f, level in sorted(arm.levels.items()):
            if level.value is None:
                continue
            kinds[level.kind] = None
            axes.errorbar(
                f, level.mean, yerr=level.std, fmt=MARKS[level.kind], color=colour, markersize=6
            )
        if arm.breakdown is not None:
            # In turns where two arms break at the same f.
            dashes = (4 * place, (4, 4 * len(arms) - 4 or 4))
            axes.axvline(arm.breakdown, color=colour, linestyle=dashes, alpha=0.7)
    for kind in kinds:
        axes.plot([], [], MARKS[kind], color="0.3", markersize=6, label=f"worst case: {kind}")
    axes.axhline(threshold, color="black", linewidth=0.8)
    text = f"threshold {100 * threshold:g} %"
    axes.annotate(text, (0.73, threshold), ha="left", va="bottom", fontsize=8)
    draw_chance(axes, chance)
    in_percent(axes.yaxis)
    axes.set(xlabel="number of Byzantine workers f", ylabel=WORST_CASE, ylim=(0, 1.02))
    axes.set_xticks(range(1, most + 1))
    axes.set_xlim(0.7, most + 0.3)
    axes.set_title(f"{title}\ndashed: where it breaks down", fontsize=9)
    axes.grid(alpha=0.3)
    legend_below(drawn, [axes])
    save(drawn, path)
