"""Worst-case maximal accuracy: lines against x, bars by method, and ARC's gain as a heat map."""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lit_byz.report.drawing import draw_chance, in_percent
from lit_byz.report.paper.style import (
    ARC,
    BASELINE,
    bar_of,
    canvas,
    chance_in,
    finish,
    line_of,
    panel_title,
    say_empty,
)
from lit_byz.report.paper.survey import BASELINE as DSGD
from lit_byz.report.paper.survey import Cell, Survey, grouped
from lit_byz.report.paper.words import AXES
from lit_byz.tracking.worst_case import WorstCase

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# How far methods stand beside each other, where the values of x are one apart.
ASIDE = 0.05
PALE = 0.3


def draw(found: Survey) -> "Figure":
    """The figure of an experiment of worst cases: a column for each strength of the attacks."""
    panels = [
        (title, cells, strength)
        for title, cells in found.panels().items()
        for strength in found.strengths
    ]
    bars = found.experiment.form == "bars"
    figure, axes = canvas(len(panels), len(found.strengths), width=5.2 if bars else 4.2)
    for place, (title, cells, strength) in zip(axes, panels, strict=True):
        (_bars if bars else _lines)(place, found, cells, strength)
        place.set_title(panel_title(title, strength), fontsize=8)
        place.set_ylim(0, 1.02)
        place.set_xlim(-0.5, len(places_of(found)) - 0.5)
        if not any(cell.at(strength).bounds for cell in cells):
            say_empty(place)
        place.grid(axis="y", alpha=0.3)
        place.set_xlabel(AXES.get(found.experiment.x, found.experiment.x), fontsize=8)
        place.set_ylabel("worst-case maximal accuracy in %", fontsize=7.5)
        in_percent(place.yaxis)
        draw_chance(place, chance_in(cells))
        place.tick_params(labelsize=8)
    finish(figure, found, axes)
    return figure


def places_of(found: Survey) -> list[str]:
    """The values of x in the order of the experiment."""
    return list(dict.fromkeys(cell.word(found.experiment.x) for cell in found.methods))


def _lines(axes: "Axes", found: Survey, cells: Sequence[Cell], strength: str | None) -> None:
    places = places_of(found)
    by_method = {found.method(cell): cell for cell in cells}
    for number, (name, example) in enumerate(by_method.items()):
        members = [cell for cell in cells if found.method(cell) == name]
        # A little beside each other: methods often have the same value.
        aside = (number - (len(by_method) - 1) / 2) * ASIDE
        known = sorted(
            ((places.index(c.word(found.experiment.x)) + aside, c.at(strength)) for c in members),
            key=lambda pair: pair[0],
        )
        _line(axes, [(x, w) for x, w in known if w.bounds], name, line_of(example, found))
    _baseline(axes, found, cells, places)
    axes.set_xticks(range(len(places)), [_bare(place) for place in places])


def _line(
    axes: "Axes", known: Sequence[tuple[float, WorstCase]], name: str, style: dict[str, Any]
) -> None:
    """A method's points; what a bound is part of is pale, and a bound has no spread."""
    if not known:
        return
    axes.plot([], [], markersize=5, label=name, **style)
    for (x, one), (next_x, other) in itertools.pairwise(known):
        alpha = 1.0 if one.exact and other.exact else PALE
        between = {"color": style["color"], "linestyle": style["linestyle"], "alpha": alpha}
        axes.plot([x, next_x], [one.mean, other.mean], **between)
    for x, worst in known:
        point = {**style, "linestyle": "none"}
        axes.errorbar(x, worst.mean, yerr=worst.std, capsize=2, markersize=5, **point)
        if not worst.exact:
            _mark_bound(axes, x, worst.mean, worst.kind, style["color"])


def _bare(place: str) -> str:
    """``f = 3`` as the axis writes it."""
    return place.removeprefix("f = ").removeprefix("μ = ")


def _mark_bound(axes: "Axes", x: float, y: float, kind: str, colour: str) -> None:
    """An arrow in the direction where the value may lie: attacks are missing or were stopped."""
    down = kind == "at most"
    axes.annotate(
        "",
        (x, max(0.0, y - 0.09) if down else y + 0.09),
        (x, y),
        arrowprops={"arrowstyle": "->", "color": colour},
        annotation_clip=False,
    )
    sign = r"$\downarrow$" if down else r"$\uparrow$"
    why = "at most: attacks are missing" if down else "at least: runs were stopped early"
    axes.plot([], [], color="black", marker=sign, linestyle="none", label=why)


def _baseline(axes: "Axes", found: Survey, cells: Sequence[Cell], places: Sequence[str]) -> None:
    by_name: dict[str, dict[int, float]] = {}
    for cell in cells:
        baseline = found.baseline_of(cell)
        worst = None if baseline is None else baseline.at(None)
        if worst is not None and worst.bounds:
            values = by_name.setdefault(found.baseline_name(cell), {})
            values[places.index(cell.word(found.experiment.x))] = worst.mean
    for name, values in by_name.items():
        xs = sorted(values)
        mark = "." if name == DSGD else "x"  # of another number of honest workers
        axes.plot(xs, [values[x] for x in xs], f":{mark}", color=BASELINE, label=name)


def _bars(axes: "Axes", found: Survey, cells: Sequence[Cell], strength: str | None) -> None:
    places = places_of(found)
    methods = list(dict.fromkeys(found.method(cell) for cell in cells))
    width = 0.84 / len(methods)
    for cell in cells:
        worst = cell.at(strength)
        if not worst.bounds:
            continue
        place = methods.index(found.method(cell))
        x = places.index(cell.word(found.experiment.x)) + (place - (len(methods) - 1) / 2) * width
        axes.bar(
            x,
            worst.mean,
            width,
            yerr=worst.std,
            color=bar_of(cell, found),
            hatch="" if worst.exact else "//",
            edgecolor="white",
            label=found.method(cell),
            error_kw={"elinewidth": 0.8},
        )
        if not worst.exact:
            _mark_bound(axes, x, worst.mean, worst.kind, "black")
    _baseline(axes, found, cells, places)
    axes.set_xticks(range(len(places)), places)


def draw_gain(found: Survey) -> "Figure":
    """What ARC adds to the worst case: a heat map of x against y for each panel and strength."""
    panels = [
        (title, cells, strength)
        for title, cells in found.panels().items()
        for strength in found.strengths
    ]
    figure, axes = canvas(len(panels), len(found.strengths), width=5.0, height=2.8)
    experiment = found.experiment
    across = list(dict.fromkeys(cell.word(experiment.x) for cell in found.methods))
    along = list(dict.fromkeys(cell.word(experiment.y) for cell in found.methods))
    for place, (title, cells, strength) in zip(axes, panels, strict=True):
        rows = [[float("nan")] * len(across) for _ in along]
        for members in grouped(cells, [experiment.x, experiment.y]).values():
            gain, text = _gain(members, strength)
            x = across.index(members[0].word(experiment.x))
            y = along.index(members[0].word(experiment.y))
            if gain is not None:
                rows[y][x] = gain
                colour = "white" if abs(gain) > 0.55 else "black"
                place.text(x, y, text, ha="center", va="center", fontsize=7, color=colour)
        image = place.imshow(rows, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        if all(math.isnan(gain) for row in rows for gain in row):
            say_empty(place, "no complete seed")
        place.set_facecolor("0.92")
        place.set_xticks(range(len(across)), [_bare(word) for word in across], fontsize=8)
        place.set_yticks(range(len(along)), along, fontsize=8)
        place.set_xlabel(AXES[experiment.x], fontsize=8)
        place.set_ylabel(AXES[experiment.y], fontsize=8)
        place.set_title(panel_title(title, strength), fontsize=8)
    bar = figure.colorbar(image, ax=list(axes), shrink=0.7)
    bar.set_label("worst case with ARC − without clipping, in points", fontsize=8)
    bar.set_ticks([-1, -0.5, 0, 0.5, 1], labels=["−100", "−50", "0", "50", "100"], fontsize=8)
    finish(figure, found, axes)
    return figure


def _gain(members: Sequence[Cell], strength: str | None) -> tuple[float | None, str]:
    """ARC's worst case less that of no clipping, and both in per cent; None unless both exact."""
    found = {cell.example.plain["clip"]["name"]: cell.at(strength) for cell in members}
    arc, none = found.get("arc"), found.get("none")
    if arc is None or none is None or not (arc.bounds and none.bounds):
        return None, ""
    if not (arc.exact and none.exact):
        return None, ""
    return arc.mean - none.mean, f"{100 * none.mean:.0f} → {100 * arc.mean:.0f}"


__all__ = ["ARC", "draw", "draw_gain", "places_of"]
