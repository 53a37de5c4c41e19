"""Accuracy over the steps of training, and the adaptive threshold beside the honest mean."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lit_byz.report.drawing import draw_chance, in_percent
from lit_byz.report.paper.style import (
    canvas,
    chance_in,
    finish,
    line_of,
    panel_title,
    say_empty,
)
from lit_byz.report.paper.survey import Cell, Survey, attack_panels, complete_runs, mean_and_std
from lit_byz.report.words import STEPS
from lit_byz.tracking.evaluations import INITIAL
from lit_byz.tracking.records import PlannedRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = dict[int, list[float]]


def draw_accuracy(found: Survey) -> "Figure":
    """A panel for each setting and attack, a line for each method: mean and one deviation."""
    panels = [
        (_title(title, word, found), cells, label, strength)
        for title, cells in found.panels().items()
        for word, label, strength in attack_panels(found)
    ]
    figure, axes = canvas(len(panels), 2 if len(found.strengths) > 1 else 3)
    for place, (title, cells, label, strength) in zip(axes, panels, strict=True):
        drawn: list[Cell] = []
        for cell in cells:
            _curve(place, found, cell, label, found.method(cell))
            baseline = found.baseline_of(cell)
            if baseline is not None and baseline not in drawn:
                drawn.append(baseline)
                name = found.baseline_name(cell)
                _curve(place, found, baseline, baseline.result.attacks[0], name)
        place.set(ylim=(0, 1.02), xlim=(0, _longest(cells)))
        if not any(complete_runs(cell, label) for cell in cells):
            say_empty(place)
        draw_chance(place, chance_in(cells))
        in_percent(place.yaxis)
        _label(place, panel_title(title, strength), "test accuracy in %")
    finish(figure, found, axes)
    return figure


def _longest(cells: Sequence[Cell]) -> float:
    """The steps of the longest run, and room for its last mark."""
    return 1.03 * max(run.steps for cell in cells for run in cell.result.record.runs)


def _label(axes: "Axes", title: str, quantity: str) -> None:
    axes.set_title(title, fontsize=8)
    axes.set_xlabel(STEPS, fontsize=8)
    axes.set_ylabel(quantity, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)


def _title(title: str, attack: str, found: Survey) -> str:
    several = "attack" in found.experiment.panels
    return ", ".join(part for part in (title, attack if several else "") if part)


def curve_of(found: Survey, runs: Sequence[PlannedRun], cell: Cell, key: str) -> Curve:
    """Step, counted from 1, to the values that the seeds have there.

    At 0 stands the accuracy of the initial parameters, of runs that have measured it.
    Where one seed was evaluated and another was not, the other has the value of its evaluation
    before. So a run that ended early, as it diverged, keeps its last value: a mean over those that
    went on would flatter.
    """
    each: list[dict[int, float]] = []
    for run in runs:
        outcome = cell.result.outcome(run)
        if outcome is not None and outcome.complete and outcome.run_id is not None:
            known = {step + 1: value for step, value in found.history(outcome.run_id, key)}
            if known and key == "test/accuracy":
                initial = found.history(outcome.run_id, INITIAL)
                known = {0: initial[0][1], **known} if initial else known
            if known:
                each.append(known)
    values: Curve = {}
    for step in sorted({step for known in each for step in known}):
        before = ([own for own in known if own <= step] for known in each)
        values[step] = [known[max(b)] for known, b in zip(each, before, strict=True) if b]
    return values


def _curve(axes: "Axes", found: Survey, cell: Cell, attack: str, name: str) -> None:
    curve = curve_of(found, cell.runs(attack), cell, "test/accuracy")
    if not curve:
        return
    style = line_of(cell, found)
    steps = list(curve)
    middles, spreads = zip(*(mean_and_std(curve[step]) for step in steps), strict=True)
    axes.plot(steps, middles, label=name, markersize=3, **style)
    if max(len(values) for values in curve.values()) > 1:
        low = [middle - spread for middle, spread in zip(middles, spreads, strict=True)]
        high = [middle + spread for middle, spread in zip(middles, spreads, strict=True)]
        axes.fill_between(steps, low, high, color=style["color"], alpha=0.15, linewidth=0)
    if any(_diverged(cell, run) for run in cell.runs(attack)):
        cross: dict[str, Any] = {"marker": "x", "markersize": 8, "linestyle": "none"}
        axes.plot(steps[-1], middles[-1], color=style["color"], **cross)
        axes.plot([], [], color="black", label="a run diverged: its last value stays", **cross)


def _diverged(cell: Cell, run: PlannedRun) -> bool:
    outcome = cell.result.outcome(run)
    return outcome is not None and outcome.status == "diverged"


def draw_thresholds(found: Survey) -> "Figure":
    """C_t and ‖m̄‖ over the steps, a panel for each attack; the first seed that there is."""
    panels = [(cell, *rest) for cell in found.methods for rest in attack_panels(found)]
    figure, axes = canvas(len(panels), 3)
    for place, (cell, word, label, strength) in zip(axes, panels, strict=True):
        title = word
        for run in cell.runs(label):
            threshold = curve_of(found, [run], cell, "clip/threshold")
            if not threshold:
                continue
            norm = curve_of(found, [run], cell, "honest/mean_norm")
            place.plot(list(threshold), [v[0] for v in threshold.values()], label="$C_t$")
            mean = r"$\|\bar m_t\|$, norm of the honest mean"
            place.plot(list(norm), [v[0] for v in norm.values()], label=mean, alpha=0.8)
            title = f"{word}, seed {run.seed}"
            break
        else:
            say_empty(place)
        place.set(yscale="log", xlim=(0, _longest([cell])))
        _label(place, panel_title(title, strength), "Euclidean norm")
    finish(figure, found, axes)
    return figure
