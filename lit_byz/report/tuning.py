"""A tuning study as a table, as numbers and as figures."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lit_byz._counted import counted
from lit_byz.report.drawing import pictures
from lit_byz.report.rendering import (
    Reader,
    Rendered,
    as_csv,
    caption,
    of_cell,
    problems,
    shown_attack,
    shown_worst_case,
)
from lit_byz.report.tuned import Comparison, TrialResult, Tuned, percent, shown, tuned
from lit_byz.report.worst_case_table import END_COLUMNS, ends_of_cell, ends_of_run, run_rows
from lit_byz.tracking.records import CellResult, StudyResult

if TYPE_CHECKING:
    from rich.table import Table

# Why a tuning study has bounds.
WHY = {
    "at least": "stopped when it could not matter any more",
    "at most": "runs pruned, failed or missing",
}


def render(result: StudyResult, folder: Path, read: Reader) -> Rendered:
    """A study's table, figures and numbers, with the trials of all processes."""
    from lit_byz.report.tuning_figures import curve_figure, history_figure

    study = tuned(result)
    folder.mkdir(parents=True, exist_ok=True)
    history, curve, numbers, text = (
        folder / name
        for name in ("tuning_history.png", "tuning_curve.png", "tuning.csv", "tuning.txt")
    )
    history_figure(study, history)
    curve_figure(study, curve)
    numbers.write_text(csv_of(study))
    lines = verdict(study)
    with text.open("w") as file:
        console = Console(file=file, width=200, force_jupyter=False)
        console.print(table(study))
        for line in lines:
            console.print(line, highlight=False)
    running = sum(trial.state == "running" for trial in study.trials)
    failed = sum(trial.state == "failed" for trial in study.trials)
    if running:
        lines.append(f"{counted(running, 'trial')} not ended")
    if failed:
        lines.append(f"{counted(failed, 'trial')} failed: --retry-failed tries them again")
    tags = {}
    if study.highest is not None:
        tags = {f"lit_byz.best.{key}": str(v) for key, v in study.highest.params.items()}
    content = {**_plain(study, result), **problems(result)}
    files = [*pictures(curve), *pictures(history), numbers, text]
    return Rendered([table(study), *lines], files, content, _metrics(study), tags)


def _metrics(study: Tuned) -> dict[str, float]:
    metrics = {
        "tuning/runs_computed": float(study.cost.computed),
        "tuning/runs_pruned": float(study.cost.pruned),
        "tuning/seconds": study.cost.seconds,
    }
    for comparison in study.comparisons:
        if comparison.value is not None:
            metrics[f"worst_case/{comparison.name}"] = comparison.value
    best = study.highest
    if best is not None and best.value is not None:
        metrics["worst_case/best_trial"] = best.value
    if study.judged_on == "test":
        return metrics
    named = {
        f"val/{name}" if name.startswith("worst_case/") else name: value
        for name, value in metrics.items()
    }
    if best is not None and best.cell.tested.exact:
        named["worst_case/best_trial_tested"] = best.cell.tested.mean
    return named


def _plain(study: Tuned, result: StudyResult) -> dict[str, Any]:
    def row(trial: TrialResult | None) -> dict[str, Any] | None:
        if trial is None:
            return None
        found = of_cell(trial.cell)
        return {
            "trial": trial.number,
            "params": dict(trial.params),
            "state": trial.state,
            "worst_case": found.value,
            "kind": found.kind,
            "upper_bound": found.kind == "at most",
            **_tested(study, trial.cell),
            "runs_pruned": trial.cell.facts.get("cost", {}).get("pruned", 0),
            "mlflow_run_id": trial.cell.run_id,
            "runs": {
                f"{run.attack}, seed {run.seed}": {
                    "attack": run.attack,
                    "seed": run.seed,
                    "run_id": outcome.run_id,
                    "status": outcome.status,
                    "max_accuracy": outcome.max_accuracy,
                }
                for run in trial.cell.record.runs
                if (outcome := trial.cell.outcome(run)) is not None
            },
        }

    return {
        "study": result.record.facts["study"],
        "mlflow_run_id": result.run_id,
        "judged_on": study.images,
        "best": row(study.best),
        "best_known": row(study.highest),
        "could_be_better": [
            {"trial": trial.number, "at_most": trial.most if trial.cell.worst_case.known else None}
            for trial in study.could_be_better
        ],
        "worst": row(study.worst),
        "lowest_known": row(study.lowest),
        "comparisons": {comparison.name: comparison.value for comparison in study.comparisons},
        "trials": [row(trial) for trial in study.trials],
        "cost": asdict(study.cost),
    }


def _tested(study: Tuned, cell: CellResult) -> dict[str, float]:
    """The worst case on the test images, where another accuracy was judged and it is known."""
    if study.judged_on == "test" or not cell.tested.exact:
        return {}
    return {"worst_case_tested": cell.tested.mean}


def table(study: Tuned) -> "Table":
    """For a terminal: a row per trial and per comparison, the best known one standing out."""
    from rich.table import Table

    made = Table(title=study.title, title_justify="left")
    made.add_column("trial", justify="right")
    for key in study.keys:
        made.add_column(key, justify="right")
    for attack in study.attacks:
        made.add_column(attack, justify="right")
    made.add_column("worst case", justify="right")
    best = study.highest
    for trial in study.trials:
        settings = [shown(trial.params.get(key, "")) for key in study.keys]
        style = "bold green" if trial is best else "dim" if trial.state != "complete" else None
        last = "running" if trial.state == "running" else shown_worst_case(trial.cell)
        row = [str(trial.number), *settings, *_accuracies(study, trial.cell), last]
        made.add_row(*row, style=style)
    made.add_section()
    for comparison in study.comparisons:
        blank = [""] * (len(study.keys) - 1)
        worst = shown_worst_case(comparison.cell)
        row = ["", comparison.name, *blank, *_accuracies(study, comparison.cell), worst]
        made.add_row(*row[: len(made.columns)], style="bold")
    made.caption = caption(made, f"maximal {study.images} accuracy in %", why=WHY)
    return made


def verdict(study: Tuned) -> list[str]:
    """The study in a few lines: the best, what stands beside it, and what it cost."""
    lines, lowest = of_the_best(study), study.lowest
    lines += [_beside(study, comparison) for comparison in study.comparisons]
    if lowest is not None and lowest is not study.highest:
        which = "worst that was tried" if study.worst is lowest else "lowest that is known"
        lines.append(
            f"{which}: {lowest.settings} (trial {lowest.number}), worst case {lowest.percent}"
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


def of_the_best(study: Tuned) -> list[str]:
    """The best trial; where others could be better, that it is the best known one, and which."""
    best = study.highest
    if best is None:
        return []
    chosen = f"{study.called}: {best.settings} (trial {best.number}), worst case {best.percent}"
    lines = [chosen + _on_test_images(study, best.cell)]
    if study.could_be_better:
        lines.append(study.reservations())
    return lines


def _beside(study: Tuned, comparison: Comparison) -> str:
    """What stands beside the trials, and of how many runs; a bound as a bound."""
    cell = comparison.cell
    known = cell.worst_case.known
    counts = ", ".join([counted(known, "run"), *of_cell(cell).reasons])
    text = f"{comparison.name}, not tuned: worst case {percent(cell.worst_case)} ({counts})"
    return text + _on_test_images(study, cell)


def _on_test_images(study: Tuned, cell: CellResult) -> str:
    """What the parameters that were chosen on images held out reach on the test images."""
    if study.judged_on == "test":
        return ""
    return f" on images held out, {percent(cell.tested)} on the test images"


def csv_of(study: Tuned) -> str:
    """Every number: a line per trial or comparison, attack and seed, and one per worst case."""
    rows: list[tuple[list[Any], list[Any]]] = []
    keys = study.keys
    for trial in study.trials:
        start = [trial.number, trial.state, *(trial.params.get(key, "") for key in keys)]
        rows += _rows(start, trial.cell)
    for comparison in study.comparisons:
        start = [comparison.name, "comparison", *("" for _ in keys)]
        rows += _rows(start, comparison.cell)
    header = ["trial", "state", *keys, "attack", "seed", "max_accuracy", "bound", "status"]
    header += ["judged_on", *END_COLUMNS]
    # What was there before the runs' ends keeps its place.
    return as_csv(header, [[*row, study.images, *ends] for row, ends in rows])


def _accuracies(study: Tuned, cell: CellResult) -> list[str]:
    return [shown_attack(cell, attack) for attack in study.attacks]


def _rows(start: list[Any], cell: CellResult) -> list[tuple[list[Any], list[Any]]]:
    """The runs of a cell, whatever became of them, and its worst case; what they ended with."""
    rows = [
        [*start, attack, seed, value, "at least" if lower_bound else "", status]
        for _, attack, seed, value, lower_bound, status in run_rows(cell)
    ]
    ends = [ends_of_run(cell, run) for run in cell.record.runs]
    worst = cell.worst_case
    if worst.known:
        bound = "" if worst.exact else worst.kind
        rows.append([*start, "worst case", "mean", worst.mean, bound, worst.kind])
        ends.append(ends_of_cell(cell))
    return list(zip(rows, ends, strict=True))
