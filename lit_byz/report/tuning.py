"""A tuning study as a table, as numbers and as figures."""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.report.worst_case_table import Accuracy, summarise, worst_cases

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

# Attack to seed.
Runs = Mapping[str, Mapping[int, Accuracy]]
COLOURS = {"arc": "tab:green", "none": "tab:red"}


@dataclass(frozen=True)
class TrialResult:
    """A trial: its worst case, or what that is at most where the trial was pruned."""

    number: int
    params: Mapping[str, Any]
    state: str  # complete, pruned, failed or running
    value: float | None
    runs: Runs
    pruned_runs: int = 0

    @property
    def settings(self) -> str:
        return ", ".join(f"{key} = {shown(value)}" for key, value in self.params.items())

    @property
    def percent(self) -> str:
        if self.value is None:
            return self.state
        return f"{'≤ ' if self.state == 'pruned' else ''}{100 * self.value:.1f} %"


@dataclass(frozen=True)
class Comparison:
    """What the trials are compared with, such as ARC."""

    name: str
    runs: Runs

    @property
    def value(self) -> float | None:
        worst = worst_cases(self.runs)
        return None if worst is None else worst.mean


@dataclass(frozen=True)
class Cost:
    """What the trials took; ``steps_saved`` of ``steps`` were not needed."""

    runs: int
    computed: int
    found: int
    bounded: int
    pruned: int
    steps: int
    steps_saved: int
    seconds: float

    @property
    def pruned_share(self) -> float:
        return self.pruned / self.runs if self.runs else 0.0


@dataclass(frozen=True)
class StudyResult:
    """A study of ``keys``; those in ``log`` are searched on a log scale."""

    title: str
    keys: Sequence[str]
    attacks: Sequence[str]
    trials: Sequence[TrialResult]
    comparisons: Sequence[Comparison]
    cost: Cost
    log: frozenset[str] = frozenset()

    @property
    def best(self) -> TrialResult | None:
        done = [trial for trial in self.trials if trial.state == "complete"]
        return max(done, key=lambda trial: trial.value or 0.0, default=None)

    @property
    def worst(self) -> TrialResult | None:
        known = [trial for trial in self.trials if trial.value is not None]
        return min(known, key=lambda trial: trial.value or 0.0, default=None)


def shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def table(study: StudyResult) -> "Table":
    """For a terminal: a row per trial and per comparison, the best one standing out."""
    from rich.table import Table

    caption = "maximal test accuracy in %; ≤: pruned, ≥: stopped when it could not matter any more"
    made = Table(title=study.title, title_justify="left", caption=caption)
    made.add_column("trial", justify="right")
    for key in study.keys:
        made.add_column(key, justify="right")
    for attack in study.attacks:
        made.add_column(attack, justify="right")
    made.add_column("worst case", justify="right")
    best = study.best
    for trial in study.trials:
        settings = [shown(trial.params.get(key, "")) for key in study.keys]
        worst = "" if trial.value is None else trial.percent.removesuffix(" %")
        style = "bold green" if trial is best else "dim" if trial.state != "complete" else None
        last = worst if trial.state in ("complete", "pruned") else trial.state
        row = [str(trial.number), *settings, *_accuracies(study, trial.runs), last]
        made.add_row(*row, style=style)
    made.add_section()
    for comparison in study.comparisons:
        blank = [""] * (len(study.keys) - 1)
        worst = "incomplete" if comparison.value is None else f"{100 * comparison.value:.1f}"
        row = ["", comparison.name, *blank, *_accuracies(study, comparison.runs), worst]
        made.add_row(*row[: len(made.columns)], style="bold")
    return made


def verdict(study: StudyResult) -> list[str]:
    """The study in a few lines: the best, what stands beside it, and what it cost."""
    lines = []
    best, worst = study.best, study.worst
    if best is not None:
        lines.append(f"best: {best.settings} (trial {best.number}), worst case {best.percent}")
    for comparison in study.comparisons:
        if comparison.value is not None:
            runs = sum(len(by_seed) for by_seed in comparison.runs.values())
            lines.append(
                f"{comparison.name}, not tuned: worst case {100 * comparison.value:.1f} % "
                f"({runs} runs)"
            )
    if worst is not None and worst is not best:
        lines.append(
            f"worst that was tried: {worst.settings} (trial {worst.number}), worst case "
            f"{worst.percent}"
        )
    cost = study.cost
    if cost.runs:
        found = f", {cost.found} found in the store" if cost.found else ""
        lines.append(
            f"cost of tuning: {cost.computed} attack runs computed{found}, {cost.seconds / 60:.1f} "
            f"minutes of one core; pruned: {cost.pruned} of {cost.runs} runs "
            f"({100 * cost.pruned_share:.0f} %), stopped early: {cost.bounded}; "
            f"{100 * cost.steps_saved / cost.steps:.0f} % of the steps were not needed"
        )
    return lines


def as_csv(study: StudyResult) -> str:
    """Every number: a line per trial or comparison, attack and seed, and one per worst case."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    keys = study.keys
    writer.writerow(["trial", "state", *keys, "attack", "seed", "max_accuracy", "bound"])
    for trial in study.trials:
        start = [trial.number, trial.state, *(trial.params.get(key, "") for key in keys)]
        _write_runs(writer, start, trial.runs)
        if trial.value is not None:
            bound = "at most" if trial.state == "pruned" else ""
            writer.writerow([*start, "worst case", "mean", trial.value, bound])
    for comparison in study.comparisons:
        start = [comparison.name, "comparison", *("" for _ in keys)]
        _write_runs(writer, start, comparison.runs)
        if comparison.value is not None:
            writer.writerow([*start, "worst case", "mean", comparison.value, ""])
    return text.getvalue()


def history_figure(study: StudyResult, path: Path) -> None:
    """Each trial's value in the order of the trials, and the best so far."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    drawn = Figure(figsize=(6.4, 4), layout="constrained")
    axes = drawn.subplots()
    _points(axes, study, lambda trial: trial.number)
    best, steps = 0.0, []
    for trial in study.trials:
        if trial.state == "complete" and trial.value is not None:
            best = max(best, trial.value)
        if best > 0:
            steps.append((trial.number, best))
    if steps:
        x, y = zip(*steps, strict=True)
        axes.step(x, y, where="post", color="tab:blue", linewidth=1.2, label="best so far")
    _lines(axes, study)
    axes.set(xlabel="trial")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _finish(drawn, axes, study, path)


def curve_figure(study: StudyResult, path: Path) -> None:
    """Worst case against each tuned key, with the comparisons as horizontal lines."""
    from matplotlib.figure import Figure

    keys = study.keys
    drawn = Figure(figsize=(1.6 + 4.8 * len(keys), 4), layout="constrained")
    panels = drawn.subplots(1, len(keys), sharey=True, squeeze=False)[0]
    for key, axes in zip(keys, panels, strict=True):
        _panel(axes, study, key)
    _finish(drawn, panels[0], study, path, panels[1:])


def _panel(axes: "Axes", study: StudyResult, key: str) -> None:
    values = [trial.params[key] for trial in study.trials]
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    places = {shown(value): place for place, value in enumerate(dict.fromkeys(values))}

    def place(trial: TrialResult) -> float:
        return float(trial.params[key]) if numeric else places[shown(trial.params[key])]

    if numeric and len(study.keys) == 1:  # with several keys neighbours differ in the others
        done = [trial for trial in study.trials if trial.state == "complete"]
        known = sorted((place(trial), trial.value or 0.0) for trial in done)
        axes.plot(*zip(*known, strict=True), color="tab:blue", linewidth=1.2, zorder=2)
    _points(axes, study, place)
    _lines(axes, study)
    if key in study.log:
        axes.set_xscale("log")
    if not numeric:
        axes.set_xticks(range(len(places)), list(places))
    axes.set(xlabel=f"{key} (log scale)" if key in study.log else key)


def _accuracies(study: StudyResult, runs: Runs) -> list[str]:
    found = [summarise(list(runs.get(attack, {}).values())) for attack in study.attacks]
    return ["" if summary is None else str(summary) for summary in found]


def _write_runs(writer: Any, start: list[Any], runs: Runs) -> None:
    for attack, by_seed in runs.items():
        for seed, accuracy in by_seed.items():
            bound = "at least" if accuracy.lower_bound else ""
            writer.writerow([*start, attack, seed, accuracy.value, bound])


def _points(axes: "Axes", study: StudyResult, place: Callable[[TrialResult], float]) -> None:
    """A dot for each complete trial, an open triangle for what a pruned one is at most."""
    for state, marker, colour, label in (
        ("complete", "o", "tab:blue", "worst case of a trial"),
        ("pruned", "v", "none", "pruned: at most"),
    ):
        found = [t for t in study.trials if t.state == state and t.value is not None]
        if found:
            x, y = zip(*((place(t), float(t.value or 0.0)) for t in found), strict=True)
            axes.scatter(
                x, y, marker=marker, s=34, c=colour, edgecolors="tab:blue", label=label, zorder=3
            )
            if state == "pruned":  # its worst case lies somewhere below
                axes.vlines(x, 0, y, color="tab:blue", alpha=0.15, linewidth=1.2, zorder=1)
    best = study.best
    if best is not None and best.value is not None:
        label = f"best: {best.settings}"
        at = [place(best)], [best.value]
        axes.scatter(*at, marker="*", s=190, c="gold", edgecolors="black", label=label, zorder=4)


def _lines(axes: "Axes", study: StudyResult) -> None:
    for number, comparison in enumerate(study.comparisons):
        if comparison.value is None:
            continue
        short = comparison.name.split("=")[-1]
        label = f"{comparison.name}: {100 * comparison.value:.1f} %"
        colour = COLOURS.get(short, f"C{number + 3}")
        style = "-" if number % 2 else "--"
        axes.axhline(comparison.value, color=colour, linestyle=style, linewidth=1.4, label=label)


def _finish(
    drawn: Any, axes: "Axes", study: StudyResult, path: Path, others: "Sequence[Axes]" = ()
) -> None:
    values = [t.value for t in study.trials if t.value is not None]
    values += [c.value for c in study.comparisons if c.value is not None]
    top = max(values, default=1.0)
    axes.set(ylabel="worst-case maximal test accuracy")
    axes.set_ylim(0, min(1.05, math.ceil(10 * top + 0.5) / 10))
    for each in (axes, *others):
        each.grid(alpha=0.3)
    drawn.suptitle(study.title, fontsize=9)
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        drawn.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, dpi=140)
