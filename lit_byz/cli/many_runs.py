"""What the commands that compute many runs share: their options, the way through, and the end."""

import argparse
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from lit_byz.cli.plan import write_json
from lit_byz.cli.progress import describe, make_watcher
from lit_byz.config.grid import Point
from lit_byz.config.grid_source import shared_settings
from lit_byz.execution.executor import Executor
from lit_byz.execution.runner import Runner
from lit_byz.report.render import render
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.names import label
from lit_byz.tracking.records import StudyRecord, StudyResult


def make_record(
    kind: str, name: str, points: Sequence[Point], *key: Any, **facts: Any
) -> StudyRecord:
    """The record of a study of these points; the same points and ``key`` make the same study."""
    first = points[0].plain
    joined = json.dumps([*key, sorted(point.identity for point in points)])
    common = {
        "dataset": first["dataset"]["name"],
        "partition": first["partition"]["name"],
        "honest": first["workers"]["honest"],
        "cell": label(points[0].config).split(", clip ")[0],
    }
    shared = shared_settings([point.plain for point in points])
    digest = hashlib.sha256(joined.encode()).hexdigest()
    return StudyRecord(kind, digest, name, {**common, **facts}, shared)


def console_for_progress(options: argparse.Namespace) -> Console:
    """Where a person is told how it goes; nowhere if nobody asked."""
    return Console(stderr=True, quiet=options.progress == "none")


def compute(runner: Runner, executor: Executor, options: argparse.Namespace) -> None:
    """Compute what is missing and show how it goes."""
    console = console_for_progress(options)
    watcher = make_watcher(options.progress, console)
    loud = Console(stderr=True)
    try:
        runner.run(executor, watcher, loud.print)
    finally:
        watcher.close()


def conclude(
    runner: Runner,
    options: argparse.Namespace,
    hints: Sequence[str] = (),
    others: Sequence[Runner] = (),
) -> int:
    """Show and keep what the store has of a study; returns the exit code."""
    ledger = runner.ledger
    result = ledger.result(str(ledger.study_id))
    every = [runner, *others]
    code = max(_exit_code(each) for each in every)
    computed = {outcome.identity for each in every for outcome in each.computed}
    reused = {identity for each in every for identity in each.reused} - computed
    content = {"computed": len(computed), "reused": len(reused), "exit_code": code}
    show(ledger, result, Path(options.out), options.json, content, _problem_lines(every), hints)
    return code


def show(
    ledger: Ledger,
    result: StudyResult,
    folder: Path,
    as_json: bool,
    more: Mapping[str, Any],
    problems: Sequence[str] = (),
    hints: Sequence[str] = (),
) -> None:
    """Render a study's report, keep its files on the study's own run, and print it."""
    found = render(result, folder, ledger.result)
    ledger.keep(result.run_id, found.files, found.metrics, found.tags)
    if as_json:
        write_json({**found.content, **more})
        return
    console = Console()
    for part in found.printed:
        console.print(part, highlight=False, soft_wrap=True)
    if "reused" in more:
        console.print(
            f"{more['computed']} runs computed now, {more['reused']} reused", highlight=False
        )
    for line in problems:
        console.print(line, highlight=False, soft_wrap=True)
    pictures = [str(path) for path in found.files if path.suffix == ".png"]
    numbers = [str(path) for path in found.files if path.suffix == ".csv"]
    one = "figure" if len(pictures) == 1 else "figures"
    where = f"{one} {' and '.join(pictures)}, numbers {' and '.join(numbers)}"
    console.print(where, highlight=False, soft_wrap=True)
    console.print(f"see the runs:   {ledger.store.ui_command}", highlight=False, soft_wrap=True)
    console.print(f"draw it again:  python pipelines/report.py {result.run_id}", highlight=False)
    for hint in hints:
        console.print(hint, highlight=False, soft_wrap=True)


def _exit_code(runner: Runner) -> int:
    """130 if it was stopped, 1 if runs failed or are missing."""
    return 130 if runner.stopping else 1 if runner.board.failed or runner.board.missing else 0


def _problem_lines(runners: Sequence[Runner]) -> list[str]:
    """A line for every run that failed or is missing, and what to do about it."""
    lines = []
    missing = failed = 0
    for board in (runner.board for runner in runners):
        missing += len(board.missing)
        failed += len(board.failed)
        troubled = [(p, o) for p in board.points if (o := board.outcomes.get(p.identity))]
        for point, outcome in troubled:
            if outcome.status in ("failed", "interrupted"):
                text = f"[red]{outcome.status}[/red] {escape(point.label)}: "
                lines.append(text + escape(describe(outcome)))
    if missing or any(runner.stopping for runner in runners):
        count = f"{missing} runs are missing" if missing else "stopped"
        lines.append(f"{count}: the same command goes on from here")
    elif failed:
        lines.append(f"{failed} runs failed: --retry-failed computes them again")
    return lines
