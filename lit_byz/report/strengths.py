"""How much of a defence is its attacker's weakness: worst cases by the strength of the attack.

A strength is how hard the attackers search: ``foe@published``, ``foe@coarse``, ``foe`` (our grid),
``span``. Attacks that do not search, those with a fixed τ among them, count at every strength: a
stronger attacker can do what a weaker one does.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.report.drawing import draw_chance, in_percent, legend_below, save
from lit_byz.report.rendering import (
    SIGNS,
    Summary,
    as_csv,
    caption,
    is_drawn,
    mark_of,
    shown_worst_case,
)
from lit_byz.report.words import WORST_CASE, cell_words, told_apart
from lit_byz.tracking.records import CellResult
from lit_byz.tracking.worst_case import WorstCase

if TYPE_CHECKING:
    from rich.table import Table

# From the weakest to the strongest, as far as they are named.
ORDER = ("published", "coarse", "line", "grid", "span")
SEARCHED = ("foe", "alie")
IN_WORDS = {
    "published": "published line search",
    "coarse": "20 factors",
    "line": "climbing from the grid's peaks",
    "grid": "refined grid",
    "span": "span: all that can be made",
}


def strength_of(attack: str) -> str | None:
    """The strength that an attack's label names; None for attacks that do not search.

    >>> [strength_of(label) for label in ("foe@published", "alie", "span, objective=drift", "sf")]
    ['published', 'grid', 'span', None]
    >>> strength_of("foe, tau=2"), strength_of("alie@coarse, points=40")
    (None, 'coarse')
    """
    name, at, search = re.split(r"[,(]", attack, maxsplit=1)[0].partition("@")
    # Records of before have what was set in brackets, or the search among it: foe(search=coarse).
    given = dict(re.findall(r"\b(search|tau)=([^,)]+)", attack))
    if given.get("tau", "None") != "None":
        return None
    if name == "span":
        return "span"
    if at or "search" in given:
        return search or given["search"]
    return "grid" if name in SEARCHED else None


def strengths_of(cells: Sequence[CellResult]) -> list[str]:
    """The strengths that the cells' attacks have, the weakest first."""
    labels = {strength_of(attack) for cell in cells for attack in cell.attacks} - {None}
    named = [str(label) for label in labels]
    return sorted(named, key=lambda s: (ORDER.index(s) if s in ORDER else len(ORDER), s))


def against(cell: CellResult, strength: str) -> CellResult | None:
    """A cell with its runs against attackers of one strength; None where it was tried by none."""
    if all(strength_of(attack) != strength for attack in cell.attacks):
        return None
    runs = [run for run in cell.record.runs if strength_of(run.attack) in (None, strength)]
    return replace(cell, record=replace(cell.record, runs=runs))


def at_strength(cell: CellResult, strength: str) -> WorstCase | None:
    """A cell's worst case against attackers of one strength; None where it was tried by none."""
    tried = against(cell, strength)
    return None if tried is None else tried.worst_case


def table(cells: Sequence[CellResult]) -> "Table":
    """A row per cell, a column per strength."""
    from rich.table import Table

    made = Table(title="by strength of the attack", title_justify="left")
    made.add_column("cell")
    strengths = strengths_of(cells)
    for strength in strengths:
        made.add_column(strength, justify="right")
    for cell in cells:
        tried = [against(cell, strength) for strength in strengths]
        texts = ["" if part is None else shown_worst_case(part) for part in tried]
        made.add_row(cell.name or "one cell", *texts)
    for name, members in static_groups(cells).items():
        texts = [_best(best_static(members, strength)) for strength in strengths]
        made.add_row(", ".join([*([name] if name else []), "best static"]), *texts)
    made.caption = caption(made, f"{WORST_CASE}, by how hard the attackers search")
    return made


def static_groups(cells: Sequence[CellResult]) -> dict[str, list[CellResult]]:
    """Cells that differ in their static threshold alone, by what else their names say."""
    found: dict[str, list[CellResult]] = {}
    for cell in cells:
        if "clip=static" in cell.name:
            rest = [part for part in cell.name.split(", ") if not part.startswith("clip")]
            found.setdefault(", ".join(rest), []).append(cell)
    return {name: members for name, members in found.items() if len(members) > 1}


def best_static(
    members: Sequence[CellResult], strength: str
) -> tuple[CellResult | None, list[Summary]]:
    """The highest worst case at a strength, and the cell that has it; each may have another.

    No cell, and what it is at least and at most, where another could still be higher.
    """
    found = [(cell, worst) for cell in members if (worst := at_strength(cell, strength))]
    if not any(worst.known for _, worst in found):
        return None, []
    lowest = max((worst for _, worst in found), key=lambda worst: worst.at_least)
    highest = max((worst for _, worst in found), key=lambda worst: worst.at_most)
    for cell, worst in found:
        if worst.exact and worst.mean >= highest.at_most:
            return cell, [Summary(worst.mean, worst.std, worst.seeds)]
    bounds = []
    if lowest.at_least > 0:
        bounds.append(Summary(lowest.at_least, None, lowest.seeds, "at least"))
    if highest.at_most < 1:
        bounds.append(Summary(highest.at_most, None, highest.seeds, "at most"))
    return None, bounds


def _best(found: tuple[CellResult | None, list[Summary]]) -> str:
    cell, summaries = found
    text = ", ".join(str(summary) for summary in summaries)
    return text if cell is None else f"{text} at {_threshold(cell)}"


def _threshold(cell: CellResult) -> str:
    found = re.search(r"C=([^,)]+)", cell.name)
    return f"C = {found[1]}" if found else cell.name


def csv_of(cells: Sequence[CellResult]) -> str:
    """A line per cell and strength."""
    rows: list[list[Any]] = []
    for cell in cells:
        for strength in strengths_of(cells):
            worst = at_strength(cell, strength)
            if worst is not None and worst.kind != "unknown":
                row = [cell.name, strength, worst.mean, worst.std, worst.seeds, worst.kind]
                rows.append(row)
    for name, members in static_groups(cells).items():
        for strength in strengths_of(cells):
            best, summaries = best_static(members, strength)
            at = [] if best is None else [_threshold(best)]
            label = ", ".join([*([name] if name else []), "best static", *at])
            rows += [[label, strength, s.mean, s.std, s.seeds, s.kind] for s in summaries]
    return as_csv(["cell", "strength", "worst_case", "std", "seeds", "kind"], rows)


def figure(
    cells: Sequence[CellResult], title: str, path: Path, chance: float | None = None
) -> None:
    """A group of bars per cell, one for each strength; a bound is hatched and has its sign."""
    mark = mark_of(__file__, title, csv_of(cells), repr(chance))
    if is_drawn(path, mark):
        return
    from matplotlib.figure import Figure

    strengths = strengths_of(cells)
    width = 0.8 / max(len(strengths), 1)
    drawn = Figure(figsize=(2.8 + 1.5 * len(cells), 4.4), layout="constrained")
    axes = drawn.subplots()
    for place, strength in enumerate(strengths):
        found = [(x, at_strength(cell, strength)) for x, cell in enumerate(cells)]
        known = [(x, worst) for x, worst in found if worst is not None and worst.known]
        places = [x + (place - (len(strengths) - 1) / 2) * width for x, _ in known]
        axes.bar(
            places,
            [worst.mean for _, worst in known],
            width,
            yerr=[math.nan if worst.std is None else worst.std for _, worst in known],
            hatch=["" if worst.exact else "//" for _, worst in known],
            label=IN_WORDS.get(strength, strength),
            edgecolor="white",
        )
        for x, (_, worst) in zip(places, known, strict=True):
            if not worst.exact:
                sign = SIGNS[worst.kind].strip()
                axes.annotate(sign, (x, worst.mean), ha="center", va="bottom", fontsize=9)
    names = told_apart([cell.name for cell in cells], cell_words)
    names = [name.replace(", ", ",\n").replace(" (", "\n(") for name in names]
    axes.set_xticks(range(len(cells)), names, fontsize=7)
    axes.set_xlim(-0.6, max(len(cells), 1) - 0.4)
    draw_chance(axes, chance)
    in_percent(axes.yaxis)
    axes.set(ylabel=WORST_CASE, ylim=(0, 1.02))
    axes.set_title(f"{title}, by how hard the attackers search (hatched: a bound)", fontsize=9)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    legend_below(drawn, [axes])
    save(drawn, path, mark)
