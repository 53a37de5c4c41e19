"""The table and the figure of a sweep: maximal accuracy by attack, worst case by cell."""

import csv
import io
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Accuracy:
    """A maximal accuracy; a lower bound of one where the run was stopped early."""

    value: float
    lower_bound: bool = False


# Cell to attack to seed.
Results = Mapping[str, Mapping[str, Mapping[int, Accuracy]]]


@dataclass(frozen=True)
class Summary:
    """Mean ± standard deviation over seeds, as it is shown."""

    mean: float
    std: float
    seeds: int
    lower_bound: bool = False

    def __str__(self) -> str:
        spread = f" ± {100 * self.std:.1f}" if self.seeds > 1 else ""
        return f"{'≥ ' if self.lower_bound else ''}{100 * self.mean:.1f}{spread}"


def summarise(accuracies: Sequence[Accuracy]) -> Summary | None:
    """The mean over seeds; a lower bound if any of them is one."""
    if not accuracies:
        return None
    values = [accuracy.value for accuracy in accuracies]
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    bound = any(accuracy.lower_bound for accuracy in accuracies)
    return Summary(statistics.fmean(values), spread, len(values), bound)


def worst_cases(by_attack: Mapping[str, Mapping[int, Accuracy]]) -> Summary | None:
    """Per seed the smallest over the attacks, then the mean: only over seeds with every attack."""
    seeds = set.intersection(*(set(found) for found in by_attack.values())) if by_attack else set()
    smallest = [
        min((found[seed] for found in by_attack.values()), key=lambda accuracy: accuracy.value)
        for seed in sorted(seeds)
    ]
    return summarise(smallest)


def attacks_of(results: Results) -> list[str]:
    return list(dict.fromkeys(attack for by_attack in results.values() for attack in by_attack))


def table(results: Results, title: str) -> "Table":
    """For a terminal: a row per cell, the weakest attack and the worst case standing out."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", caption="maximal test accuracy in %")
    made.add_column("cell")
    attacks = attacks_of(results)
    for attack in attacks:
        made.add_column(attack, justify="right")
    made.add_column("worst case", justify="right")
    best = max((s.mean for r in results.values() if (s := worst_cases(r))), default=None)
    for cell, by_attack in results.items():
        found = {a: summarise(list(by_attack.get(a, {}).values())) for a in attacks}
        low = min((s.mean for s in found.values() if s is not None), default=None)
        row = []
        for summary in found.values():
            text = "" if summary is None else str(summary)
            row.append(f"[red]{text}[/red]" if summary and summary.mean == low else text)
        worst = worst_cases(by_attack)
        if worst is None:
            row.append("incomplete")
        else:
            style = "bold green" if worst.mean == best else "bold"
            row.append(f"[{style}]{worst}[/{style}]")
        made.add_row(cell or "one cell", *row)
    return made


def as_csv(results: Results) -> str:
    """Every number: one line per cell, attack and seed, and one per cell's worst case."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["cell", "attack", "seed", "max_accuracy", "lower_bound"])
    for cell, by_attack in results.items():
        for attack, by_seed in by_attack.items():
            for seed, accuracy in by_seed.items():
                writer.writerow([cell, attack, seed, accuracy.value, accuracy.lower_bound])
        worst = worst_cases(by_attack)
        if worst is not None:
            writer.writerow([cell, "worst case", "mean", worst.mean, worst.lower_bound])
            writer.writerow([cell, "worst case", "std", worst.std, worst.lower_bound])
    return text.getvalue()


def figure(results: Results, title: str, path: Path) -> None:
    """A bar per cell for its worst case, and a mark for each attack above it."""
    from matplotlib.figure import Figure

    cells = [cell for cell in results if worst_cases(results[cell]) is not None]
    attacks = attacks_of(results)
    drawn = Figure(figsize=(7, 1.2 + 0.55 * max(len(cells), 1)), layout="constrained")
    axes = drawn.subplots()
    for row, cell in enumerate(cells):
        worst = worst_cases(results[cell])
        assert worst is not None
        error = worst.std if worst.seeds > 1 else None
        axes.barh(row, worst.mean, height=0.55, color="tab:blue", alpha=0.45, xerr=error)
        axes.annotate(f"{100 * worst.mean:.1f} %", (0.01, row), va="center", fontsize=8)
    for place, attack in enumerate(attacks):
        points = [
            (summary.mean, row)
            for row, cell in enumerate(cells)
            if (summary := summarise(list(results[cell].get(attack, {}).values()))) is not None
        ]
        if points:
            x, y = zip(*points, strict=True)
            axes.scatter(x, y, marker="osDv^P*X<>"[place % 10], s=28, label=attack, zorder=3)
    axes.set_yticks(range(len(cells)), [cell or "one cell" for cell in cells], fontsize=8)
    axes.set(xlabel="maximal test accuracy (bar: worst case)", xlim=(0, 1))
    axes.invert_yaxis()
    axes.set_title(title, fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    if cells:
        drawn.legend(loc="outside lower center", ncols=min(len(attacks), 6), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, dpi=140)
