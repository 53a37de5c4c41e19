"""The end of a sweep: its table, figure and files, and what to do next."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from lit_byz.experiment.study import (
    exit_code,
    files,
    keep,
    problems,
    tell_problems,
    tell_saving,
    tell_where,
    write_json,
)
from lit_byz.experiment.sweep import Sweep
from lit_byz.report.worst_case_table import (
    Accuracy,
    Results,
    as_csv,
    figure,
    table,
    worst_cases,
)


def accuracies(sweep: Sweep) -> Results:
    """The maximal accuracies of a sweep's runs that have one."""
    return {
        cell: {
            attack: {
                seed: Accuracy(outcome.max_accuracy, outcome.status == "bounded")
                for seed, outcome in by_seed.items()
                if outcome.max_accuracy is not None
                and (outcome.complete or outcome.status == "bounded")
            }
            for attack, by_seed in by_attack.items()
        }
        for cell, by_attack in sweep.results().items()
    }


def conclude(sweep: Sweep, folder: str, *, as_json: bool = False, hint: str | None = None) -> int:
    """Show and keep a sweep's results, then a hint at what to do next; returns the exit code."""
    results = accuracies(sweep)
    title = f"{len(sweep.points)} runs on {sweep.points[0].config.dataset.name}"
    picture, numbers = files(folder, "worst_case")
    figure(results, title, picture)
    numbers.write_text(as_csv(results))
    _keep(sweep, results, [picture, numbers])
    code = exit_code(sweep)
    if as_json:
        write_json(_plain(sweep, results))
        return code
    console = Console()
    console.print(table(results, title))
    tell_saving(sweep, console)
    tell_problems(sweep, console)
    tell_where(sweep, console, picture, numbers)
    if hint is not None:
        console.print(hint, highlight=False, soft_wrap=True)
    return code


def _keep(sweep: Sweep, results: Results, paths: list[Path]) -> None:
    """Files and worst cases on the sweep's own run."""
    with TemporaryDirectory() as folder:
        text = Path(folder) / "worst_case.txt"
        with text.open("w") as file:
            Console(file=file, width=200).print(table(results, ""))
        worst = {cell: worst_cases(by_attack) for cell, by_attack in results.items()}
        metrics = {
            f"worst_case/{cell or place}": found.mean
            for place, (cell, found) in enumerate(worst.items())
            if found is not None
        }
        keep(sweep, [*paths, text], metrics)


def _plain(sweep: Sweep, results: Results) -> dict[str, Any]:
    cells = []
    for cell, by_attack in results.items():
        worst = worst_cases(by_attack)
        runs = {
            attack: {str(seed): vars(accuracy) for seed, accuracy in by_seed.items()}
            for attack, by_seed in by_attack.items()
        }
        cells.append(
            {
                "cell": cell,
                "worst_case": None if worst is None else {"mean": worst.mean, "std": worst.std},
                "max_accuracy": runs,
            }
        )
    return {"cells": cells, **problems(sweep)}
