"""Worst-case accuracy and initial gradients against the scale of the initial parameters, μ."""

import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz._counted import counted
from lit_byz.report.drawing import chance_of, draw_chance, in_percent, pictures, save
from lit_byz.report.initial_gradients import KIND, Norms, columns_of, growth, mean_of, norms_of
from lit_byz.report.rendering import (
    MARKERS,
    SIGNS,
    Reader,
    Rendered,
    as_csv,
    caption,
    files_in,
    plain_worst_case,
    problems,
    setting,
    shown_worst_case,
)
from lit_byz.report.words import WORST_CASE, cell_words, told_apart
from lit_byz.report.worst_case_table import END_COLUMNS, ends_of_cell, ends_of_run
from lit_byz.tracking.records import CellResult, StudyResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table


OF_THE_GRADIENTS = "ζ, mean norm: largest and mean norm of the honest workers' initial gradients"

# Method to μ.
Curves = Mapping[str, Mapping[float, CellResult]]


def render(result: StudyResult, folder: Path, read: Reader) -> Rendered:
    """A study's table, figure and numbers."""
    curves, norms = curves_of(result), norms_of(result)
    title = f"{setting(result)}: {_counted(result)}"
    picture, numbers = files_in(folder, "init_scaling")
    figure(curves, norms, title, picture, chance_of(str(result.record.facts["dataset"])))
    numbers.write_text(csv_of(curves, norms))
    powers = {problem: growth(by_scale) for problem, by_scale in norms.items()}
    lines = [
        f"ζ grows as μ^{power:.2f}{f' ({problem})' if problem else ''}, "
        "the slope of log ζ against log μ"
        for problem, power in powers.items()
        if power is not None
    ]
    metrics = {f"initial_gradient/power {p}".strip(): v for p, v in powers.items() if v is not None}
    content = {**_plain(curves, norms), "power_of_mu": powers, **problems(result)}
    return Rendered(
        [table(curves, norms, title), *lines], [*pictures(picture), numbers], content, metrics
    )


def _counted(result: StudyResult) -> str:
    """All runs, as the command counts them: an initial gradient is found by one of its own."""
    initial = {r.identity for c in result.of_kind(KIND) for r in c.record.runs}
    beside = f", {len(initial)} of them for the initial gradients" if initial else ""
    return f"{counted(len(result.runs), 'run')}{beside}"


def curves_of(result: StudyResult) -> Curves:
    """The cells by method and scale; the baseline comes last."""
    found: dict[str, dict[float, CellResult]] = {}
    cells = sorted(result.of_kind("cell"), key=lambda cell: cell.facts["method"].startswith("DSGD"))
    for cell in cells:
        found.setdefault(cell.facts["method"], {})[cell.facts["scale"]] = cell
    return found


def scales(curves: Curves) -> list[float]:
    """Every μ, in order."""
    return sorted({scale for by_scale in curves.values() for scale in by_scale})


def table(curves: Curves, norms: Norms, title: str) -> "Table":
    """For a terminal: a row per μ, a column per method, and ζ."""
    from rich.table import Table

    made = Table(title=title, title_justify="left")
    made.add_column("μ", justify="right")
    for method in curves:
        made.add_column(method, justify="right")
    for problem in norms:
        made.add_column(f"ζ {problem}".strip(), justify="right")
        made.add_column(f"mean norm {problem}".strip(), justify="right")
    for scale in scales(curves):
        row = [f"{scale:g}"]
        for by_scale in curves.values():
            cell = by_scale.get(scale)
            row.append("" if cell is None else shown_worst_case(cell))
        for by_mu in norms.values():
            mean = mean_of(by_mu.get(scale, {}).values())
            row += ["", ""] if mean is None else [f"{mean.largest:.3g}", f"{mean.mean:.3g}"]
        made.add_row(*row)
    made.caption = caption(made, WORST_CASE, *([OF_THE_GRADIENTS] if norms else []))
    return made


def csv_of(curves: Curves, norms: Norms) -> str:
    """Every number: a line per method, μ, attack and seed, per worst case, and per gradient."""
    rows: list[list[Any]] = []
    for method, by_scale in curves.items():
        for scale, cell in by_scale.items():
            runs = {(run.attack, run.seed): run for run in cell.record.runs}
            for attack in cell.attacks:
                for seed, found in cell.of_attack(attack).items():
                    row = ["max_accuracy", method, scale, attack, seed]
                    kind = "at least" if found.lower_bound else "exact"
                    ends = ends_of_run(cell, runs[attack, seed])
                    rows.append([*row, found.value, found.lower_bound, kind, *ends])
            for kind, without in (("failed", cell.failed), ("missing", cell.missing)):
                for run in without:
                    row = ["max_accuracy", method, scale, run.attack, run.seed]
                    rows.append([*row, "", "", kind, *ends_of_run(cell, run)])
            worst = cell.worst_case
            for what, value in (("mean", worst.mean), ("std", worst.std)):
                if worst.kind != "unknown":
                    row = ["worst_case", method, scale, "", what]
                    row += [value, worst.lower_bound, worst.kind]
                    rows.append([*row, *ends_of_cell(cell, what)])
    for problem, by_mu in norms.items():
        for scale, by_seed in by_mu.items():
            for seed, norm in by_seed.items():
                for name, value in columns_of(norm).items():
                    row = [name, problem, scale, "", seed, value, False, "exact"]
                    rows.append([*row, *("" for _ in END_COLUMNS)])
    header = ["what", "method", "mu", "attack", "seed", "value", "lower_bound", "kind"]
    return as_csv([*header, *END_COLUMNS], rows)


def figure(
    curves: Curves, norms: Norms, title: str, path: Path, chance: float | None = None
) -> None:
    """Left the worst case against μ, one line per method; right the initial gradients."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = drawn.subplots(1, 2)
    _draw_accuracy(left, curves, chance)
    _draw_norms(right, norms)
    for axes in (left, right):
        axes.set_xlabel("factor of the initial parameters μ")
        axes.set_xticks(scales(curves), [f"{scale:g}" for scale in scales(curves)])
        axes.grid(alpha=0.3)
    drawn.suptitle(title, fontsize=9)
    save(drawn, path)


def _draw_accuracy(axes: "Axes", curves: Curves, chance: float | None) -> None:
    names = told_apart(list(curves), cell_words)
    bounds = set()
    for place, (words, by_scale) in enumerate(zip(names, curves.values(), strict=True)):
        known = {scale: cell.worst_case for scale, cell in sorted(by_scale.items())}
        found = {scale: worst for scale, worst in known.items() if worst.kind != "unknown"}
        if not found:
            continue
        x = list(found)
        means = [worst.mean for worst in found.values()]
        spreads = [math.nan if worst.std is None else worst.std for worst in found.values()]
        low = [mean - spread for mean, spread in zip(means, spreads, strict=True)]
        high = [mean + spread for mean, spread in zip(means, spreads, strict=True)]
        marker = MARKERS[place % len(MARKERS)]
        (line,) = axes.plot(x, means, marker=marker, markersize=5, label=words)
        axes.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        for scale, worst in found.items():
            if not worst.exact:
                sign = SIGNS[worst.kind].strip()
                bounds.add(f"{sign} {worst.kind}")
                axes.annotate(sign, (scale, worst.mean), ha="right", va="bottom", fontsize=8)
    draw_chance(axes, chance)
    in_percent(axes.yaxis)
    signs = f" ({', '.join(sorted(bounds))})" if bounds else ""
    axes.set(ylabel=f"{WORST_CASE}{signs}", ylim=(0, 1.02))
    if axes.lines:
        axes.legend(fontsize=8)


def _draw_norms(axes: "Axes", norms: Norms) -> None:
    for problem, by_scale in norms.items():
        x = [scale for scale in sorted(by_scale) if by_scale[scale]]
        if not x:
            continue
        power = growth(by_scale)
        fitted = "" if power is None else f", grows as $\\mu^{{{power:.1f}}}$"
        for what, label, style in (
            ("largest", f"$\\zeta$: largest{fitted}", "o-"),
            ("mean", "mean over the workers", "s--"),
        ):
            values = [[getattr(n, what) for n in by_scale[scale].values()] for scale in x]
            means = [statistics.fmean(value) for value in values]
            name = f"{label} {problem}".strip()
            (line,) = axes.plot(x, means, style, markersize=4, label=name)
            axes.fill_between(
                x,
                [min(value) for value in values],
                [max(value) for value in values],
                color=line.get_color(),
                alpha=0.2,
                linewidth=0,
            )
    axes.set(yscale="log", ylabel="Euclidean norm of an initial honest gradient")
    if axes.lines:
        axes.legend(fontsize=8)


def _plain(curves: Curves, norms: Norms) -> dict[str, Any]:
    rows = [
        {"method": method, "mu": scale, "worst_case": plain_worst_case(cell.worst_case)}
        for method, by_scale in curves.items()
        for scale, cell in sorted(by_scale.items())
    ]
    gradients = [
        {"problem": problem, "mu": scale, "seed": seed}
        | {name: _finite(value) for name, value in vars(initial).items()}
        for problem, by_scale in norms.items()
        for scale, by_seed in sorted(by_scale.items())
        for seed, initial in by_seed.items()
    ]
    return {"worst_cases": rows, "initial_gradients": gradients}


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
