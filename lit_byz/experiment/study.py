"""What studies built on sweeps share: plan, files, exit code, and the lines about the sweep."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from rich.console import Console
from rich.markup import escape

from lit_byz.experiment.grid import Point
from lit_byz.experiment.sweep import Sweep
from lit_byz.experiment.watch import describe


def plan(sweep: Sweep, measured: Callable[[Point], bool] | None = None) -> str:
    """What a sweep would compute, and what that would cost.

    With ``measured`` only such runs are timed, and the others taken to cost as much on average.
    """
    from lit_byz.experiment.estimate import estimate

    attacks = len({point.attack for point in sweep.points})
    seeds = len({point.seed for point in sweep.points})
    waiting = [point for index, point in enumerate(sweep.points) if index not in sweep.outcomes]
    lines = [
        f"{len(sweep.points)} runs: {len(sweep.cells)} cells, {attacks} attacks, {seeds} seeds",
        f"already done: {len(sweep.points) - len(waiting)}, to do: {len(waiting)}",
    ]
    if waiting:
        timed = [point for point in waiting if measured is None or measured(point)] or waiting
        cost, factor = estimate(timed), len(waiting) / len(timed)
        lines.append(
            f"estimated from a few measured steps: {duration(factor * cost.seconds)} of one "
            f"process as this one, {factor * cost.bytes / 1e6:.0f} MB in the store"
        )
    return "\n".join(lines)


def duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{seconds / 60:.1f} min"


def setting(config: DictConfig) -> str:
    """What all runs of a study have in common, for its title."""
    workers = f"{config.workers.honest} honest workers"
    return f"{config.dataset.name}, {config.partition.name}, {workers}"


def files(folder: str, name: str) -> tuple[Path, Path]:
    """Where a study's figure and its numbers go; the folder is made."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    return out / f"{name}.png", out / f"{name}.csv"


def write_json(content: Mapping[str, Any]) -> None:
    json.dump(content, sys.stdout, indent=1)
    sys.stdout.write("\n")


def tell_saving(sweep: Sweep, console: Console) -> None:
    """What stopping runs early has saved."""
    saved, total = sweep.steps_saved()
    if sweep.worst_case_only and total:
        console.print(f"worst case only: {100 * saved / total:.0f} % of the steps were not needed")


def tell_where(sweep: Sweep, console: Console, picture: Path, numbers: Path) -> None:
    """The files, and the way to the runs."""
    console.print(f"figure {picture}, numbers {numbers}", highlight=False)
    console.print(f"see the runs:   {sweep.store.ui_command}", highlight=False, soft_wrap=True)


def exit_code(sweep: Sweep) -> int:
    """130 if it was stopped, 1 if runs failed or are missing."""
    return 130 if sweep.stopping else 1 if sweep.failed or sweep.missing else 0


def tell_problems(sweep: Sweep, console: Console) -> None:
    """A line for every run that failed or is missing, and what to do about it."""
    missing = [sweep.outcomes[index] for index in sweep.missing if index in sweep.outcomes]
    for outcome in [*sweep.failed, *missing]:
        label = escape(sweep.points[outcome.index].label)
        text = f"[red]{outcome.status}[/red] {label}: {escape(describe(outcome))}"
        console.print(text, highlight=False, soft_wrap=True)
    if sweep.missing or sweep.stopping:
        count = f"{len(sweep.missing)} runs are missing" if sweep.missing else "stopped"
        console.print(f"{count}: the same command goes on from here", soft_wrap=True)
    elif sweep.failed:
        console.print(f"{len(sweep.failed)} runs failed: --retry-failed computes them again")


def problems(sweep: Sweep) -> dict[str, Any]:
    """The same for a program to read."""
    return {
        "failed": {sweep.points[o.index].label: o.error for o in sweep.failed},
        "missing": [sweep.points[index].label for index in sweep.missing],
        "exit_code": exit_code(sweep),
    }


def keep(sweep: Sweep, paths: Sequence[Path], metrics: Mapping[str, float]) -> None:
    """Files and numbers on the study's own run."""
    if sweep.run_id is None:
        return
    for path in paths:
        sweep.store.client.log_artifact(sweep.run_id, str(path))
    for name, value in metrics.items():
        sweep.store.client.log_metric(sweep.run_id, metric_name(name), value)


def metric_name(text: str) -> str:
    """A name in the characters that MLflow allows."""
    allowed = set(" -_./")
    return "".join(c if c.isalnum() or c in allowed else "_" for c in text)[:200]
