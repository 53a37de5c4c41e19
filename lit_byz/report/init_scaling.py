"""Worst-case accuracy and initial gradients against the scale of the initial parameters, μ."""

import csv
import io
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lit_byz.report.worst_case_table import Accuracy, Summary, worst_cases

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table


@dataclass(frozen=True)
class InitialGradients:
    """Norms of the honest workers' gradients at the initial parameters.

    ``largest`` is the theorem's ζ, the maximum over the workers; ``mean`` their mean.
    """

    largest: float
    mean: float


# Method to μ to attack to seed.
Curves = Mapping[str, Mapping[float, Mapping[str, Mapping[int, Accuracy]]]]
# Problem (data and model, "" where there is one) to μ to seed.
Norms = Mapping[str, Mapping[float, Mapping[int, InitialGradients]]]


def scales(curves: Curves) -> list[float]:
    return sorted({scale for by_scale in curves.values() for scale in by_scale})


def growth(by_scale: Mapping[float, Mapping[int, InitialGradients]]) -> float | None:
    """The power of μ that fits ζ best: the slope of log ζ (mean over seeds) against log μ."""
    points = [
        (math.log(scale), statistics.fmean(math.log(found.largest) for found in by_seed.values()))
        for scale, by_seed in by_scale.items()
        if by_seed and all(0 < found.largest < math.inf for found in by_seed.values())
    ]
    if len(points) < 2:
        return None
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def table(curves: Curves, norms: Norms, title: str) -> "Table":
    """For a terminal: a row per μ, a column per method, and ζ."""
    from rich.table import Table

    made = Table(
        title=title,
        title_justify="left",
        caption="worst-case maximal test accuracy in %; ζ: largest initial honest gradient",
    )
    made.add_column("μ", justify="right")
    for method in curves:
        made.add_column(method, justify="right")
    for problem in norms:
        made.add_column(f"ζ {problem}".strip(), justify="right")
        made.add_column(f"mean norm {problem}".strip(), justify="right")
    for scale in scales(curves):
        row = [f"{scale:g}"]
        for by_scale in curves.values():
            found = worst_cases(by_scale.get(scale, {}))
            row.append("incomplete" if found is None else str(found))
        for by_mu in norms.values():
            seen = by_mu.get(scale, {}).values()
            row += [_mean([n.largest for n in seen]), _mean([n.mean for n in seen])]
        made.add_row(*row)
    return made


def as_csv(curves: Curves, norms: Norms) -> str:
    """Every number: a line per method, μ, attack and seed, per worst case, and per gradient."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["what", "method", "mu", "attack", "seed", "value", "lower_bound"])
    for method, by_scale in curves.items():
        for scale, by_attack in by_scale.items():
            for attack, by_seed in by_attack.items():
                for seed, found in by_seed.items():
                    row = ["max_accuracy", method, scale, attack, seed]
                    writer.writerow([*row, found.value, found.lower_bound])
            worst = worst_cases(by_attack)
            if worst is not None:
                for what, value in (("mean", worst.mean), ("std", worst.std)):
                    row = ["worst_case", method, scale, "", what]
                    writer.writerow([*row, value, worst.lower_bound])
    for problem, by_mu in norms.items():
        for scale, by_worker_seed in by_mu.items():
            for seed, norm in by_worker_seed.items():
                for what, value in (("largest", norm.largest), ("mean", norm.mean)):
                    writer.writerow([f"initial_gradient_{what}", problem, scale, "", seed, value])
    return text.getvalue()


def figure(curves: Curves, norms: Norms, title: str, path: Path) -> None:
    """Left the worst case against μ, one line per method; right the initial gradients."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = drawn.subplots(1, 2)
    _draw_accuracy(left, curves)
    _draw_norms(right, norms)
    for axes in (left, right):
        axes.set_xlabel("scale of the initial parameters, μ")
        axes.set_xticks(scales(curves), [f"{scale:g}" for scale in scales(curves)])
        axes.grid(alpha=0.3)
    drawn.suptitle(title, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, dpi=140)


def _draw_accuracy(axes: "Axes", curves: Curves) -> None:
    for place, (method, by_scale) in enumerate(curves.items()):
        found: list[tuple[float, Summary]] = [
            (scale, worst)
            for scale in sorted(by_scale)
            if (worst := worst_cases(by_scale[scale])) is not None
        ]
        if not found:
            continue
        x = [scale for scale, _ in found]
        means = [worst.mean for _, worst in found]
        low = [worst.mean - worst.std for _, worst in found]
        high = [worst.mean + worst.std for _, worst in found]
        marker = "osDv^P*X<>"[place % 10]
        (line,) = axes.plot(x, means, marker=marker, markersize=5, label=method)
        axes.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set(ylabel="worst-case maximal accuracy", ylim=(0, 1))
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
    axes.set(yscale="log", ylabel="norm of an initial honest gradient")
    if axes.lines:
        axes.legend(fontsize=8)


def _mean(values: list[float]) -> str:
    return f"{statistics.fmean(values):.3g}" if values else ""
