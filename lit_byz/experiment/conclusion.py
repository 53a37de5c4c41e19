"""The end of a sweep: its table, figure and files, and what to do next."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.markup import escape

from lit_byz.experiment.sweep import Sweep
from lit_byz.experiment.watch import describe
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
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    picture, numbers = out / "worst_case.png", out / "worst_case.csv"
    figure(results, title, picture)
    numbers.write_text(as_csv(results))
    if sweep.run_id is not None:
        _keep(sweep, results, [picture, numbers])
    code = 130 if sweep.stopping else 1 if sweep.failed or sweep.missing else 0
    if as_json:
        json.dump(_plain(sweep, results, code), sys.stdout, indent=1)
        sys.stdout.write("\n")
        return code
    console = Console()
    console.print(table(results, title))
    saved, total = sweep.steps_saved()
    if sweep.worst_case_only and total:
        console.print(f"worst case only: {100 * saved / total:.0f} % of the steps were not needed")
    for outcome in [
        *sweep.failed,
        *(sweep.outcomes[i] for i in sweep.missing if i in sweep.outcomes),
    ]:
        label = sweep.points[outcome.index].label
        text = f"[red]{outcome.status}[/red] {label}: {escape(describe(outcome))}"
        console.print(text, highlight=False, soft_wrap=True)
    if sweep.missing:
        count = len(sweep.missing)
        console.print(
            f"{count} runs are missing: the same command goes on with them", soft_wrap=True
        )
    elif sweep.failed:
        console.print(f"{len(sweep.failed)} runs failed: --retry-failed computes them again")
    console.print(f"figure {picture}, numbers {numbers}", highlight=False)
    console.print(f"see the runs:   {sweep.store.ui_command}", highlight=False, soft_wrap=True)
    if hint is not None:
        console.print(hint, highlight=False, soft_wrap=True)
    return code


def _keep(sweep: Sweep, results: Results, paths: list[Path]) -> None:
    """Files and worst cases on the sweep's own run."""
    assert sweep.run_id is not None
    with TemporaryDirectory() as folder:
        text = Path(folder) / "worst_case.txt"
        with text.open("w") as file:
            Console(file=file, width=200).print(table(results, ""))
        for path in (*paths, text):
            sweep.store.client.log_artifact(sweep.run_id, str(path))
    for place, (cell, by_attack) in enumerate(results.items()):
        worst = worst_cases(by_attack)
        if worst is not None:
            name = f"worst_case/{_metric_name(cell) or place}"
            sweep.store.client.log_metric(sweep.run_id, name, worst.mean)


def _metric_name(cell: str) -> str:
    """A cell's name in the characters that MLflow allows."""
    allowed = set(" -_./")
    return "".join(c if c.isalnum() or c in allowed else "_" for c in cell)[:200]


def _plain(sweep: Sweep, results: Results, code: int) -> dict[str, Any]:
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
    failed = {sweep.points[o.index].label: o.error for o in sweep.failed}
    missing = [sweep.points[index].label for index in sweep.missing]
    return {"cells": cells, "failed": failed, "missing": missing, "exit_code": code}
