"""What the commands that compute many runs share: their options, the way through, and the end."""

import argparse
import errno
import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.markup import escape

from lit_byz._cache import tell_without_cache
from lit_byz._counted import counted
from lit_byz._door import here, typed
from lit_byz.cli import saying
from lit_byz.cli.command import printable
from lit_byz.cli.output_folders import folder_of
from lit_byz.cli.plan import write_json
from lit_byz.cli.progress import describe, make_watcher
from lit_byz.config.components import GROUPS
from lit_byz.config.grid import Point
from lit_byz.config.grid_source import shared_settings
from lit_byz.config.identity import refuse_changed
from lit_byz.errors import BadRequest, RunFailed
from lit_byz.execution.executor import Executor, Inline
from lit_byz.execution.processes import LocalProcesses
from lit_byz.execution.runner import Memory, Runner
from lit_byz.execution.tasks import Progress
from lit_byz.report.note import NOTE, note_of
from lit_byz.report.render import render
from lit_byz.report.rendering import Rendered, console_for
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.names import in_common
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.page import page_of
from lit_byz.tracking.patience import StoreGone, told_to
from lit_byz.tracking.records import StudyRecord, StudyResult
from lit_byz.tracking.store import store_is_there


def make_record(
    kind: str,
    name: str,
    points: Sequence[Point],
    *key: Any,
    among: Sequence[Point] | None = None,
    **facts: Any,
) -> StudyRecord:
    """The record of a study of these points; the same cells and ``key`` make the same study.

    The same runs in cells of other names are another one: in one study they would stand twice.
    ``among`` are runs that it may have, all kinds of them, where ``points`` are some of these.
    """
    joined = json.dumps([*key, sorted({(point.cell, point.identity) for point in points})])
    settings = [point.plain for point in among or points]
    common, shared = in_common(settings), shared_settings(settings)
    digest = hashlib.sha256(joined.encode()).hexdigest()
    return StudyRecord(kind, digest, name, {**common, **facts}, shared)


def console_for_progress(options: argparse.Namespace) -> Console:
    """Where a person is told how it goes; nowhere if nobody asked."""
    return Console(stderr=True, quiet=options.progress == "none")


def look_up(
    points: Sequence[Point], options: argparse.Namespace, *, bounds_suffice: bool = False
) -> tuple[Memory, Ledger | None]:
    """What is known of a study's runs, and the ledger."""
    refuse_changed(point.plain for point in points)
    tracking = points[0].plain["tracking"]
    if would_make_a_store(tracking, options):
        return Memory(None), None
    ledger = open_ledger(tracking)
    return Memory(ledger, options.retry_failed, bounds_suffice), ledger


def would_make_a_store(tracking: Mapping[str, Any], options: argparse.Namespace) -> bool:
    """Whether there is no store yet, and none is made, as this is a dry run."""
    return options.dry_run and tracking["enabled"] and not store_is_there(tracking["uri"])


def open_ledger(tracking: Mapping[str, Any]) -> Ledger:
    """The ledger of the store that the section ``tracking`` names."""
    made = "" if store_is_there(tracking["uri"]) else " (its tables are made, this once)"
    saying.now(f"opening the store{made}")
    ledger = Ledger.of(tracking)
    saying.now("looking up what is done")
    return ledger


def compute(runner: Runner, executor: Executor, options: argparse.Namespace) -> None:
    """Compute what is missing and show how it goes, with ``--debug`` why runs failed."""
    if not isinstance(executor, Inline):
        _refuse_what_is_only_here(runner.board.points)
    saying.over()
    tell_without_cache()  # before there are processes, each of which would
    if runner.board.waiting and isinstance(executor, LocalProcesses):
        executor.get_ready()  # they import while this process opens the study
    console = console_for_progress(options)
    watcher = make_watcher(options.progress, console)
    loud = Console(stderr=True) if console.quiet else console

    def watch(runner: Runner, message: Progress | Outcome | None) -> None:
        watcher(runner, message)
        if options.debug and isinstance(message, Outcome) and message.traceback:
            tell(printable(message.traceback.rstrip()))

    def tell(text: str) -> None:
        loud.print(text, markup=False, highlight=False, soft_wrap=True)

    try:
        with told_to(tell, runner.ledger.store.patience):
            runner.run(executor, watch, loud.print)
    except StoreGone as error:
        if runner.stopping:
            raise KeyboardInterrupt from error
        text = "the runs that were on have saved themselves; when it is back, the same"
        again = "call goes on" if options.receive else f"command goes on: {command_line()}"
        raise RunFailed(f"{error}; {text} {again}") from error
    finally:
        watcher.close()
    if runner.disk_full:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _refuse_what_is_only_here(points: Sequence[Point]) -> None:
    """Raise ``BadRequest`` for a class of this script or notebook: no other process has it."""
    for group, name in {(group, str(p.plain[group]["name"])) for p in points for group in GROUPS}:
        if name.startswith("__main__."):
            raise BadRequest(
                f"{group} '{name}': processes do not run this script or notebook and do not know "
                "it; write it into a file mine.py and name it mine.…, or take executor='inline'"
            )


def command_line() -> str:
    """What was typed, without passwords."""
    return typed(sys.argv[1:])


def conclude(
    runner: Runner,
    options: argparse.Namespace,
    hints: Sequence[str] = (),
    others: Sequence[Runner] = (),
) -> int:
    """Show and keep what the store has of a study; returns the exit code.

    A program that receives it in place of a terminal gets it as it is, and no files.
    """
    saying.now("drawing the report")
    ledger = runner.ledger
    result = ledger.result(str(ledger.study_id))
    every = [runner, *others]
    code = max(_exit_code(each) for each in every)
    if options.receive is not None:
        with TemporaryDirectory() as passing:
            draw(ledger, result, Path(passing))
        options.receive(result, runner)
        return code
    computed = {o.identity for each in every for o in each.computed if o.has_result}
    reused = {identity for each in every for identity in each.reused} - computed
    content = {"computed": len(computed), "reused": len(reused), "exit_code": code}
    folder = folder_of(result.record, options.out)
    show(ledger, result, folder, options.json, content, _problem_lines(every), hints)
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
    found = draw(ledger, result, folder)
    page = page_of(ledger.store, result)
    saying.over()
    if as_json:
        write_json({**found.content, **more})
        return
    console = console_for(found.printed)
    for part in found.printed:
        console.print(part, highlight=False, soft_wrap=True)
    if "reused" in more:
        computed = f"{counted(more['computed'], 'run')} computed now"
        console.print(f"{computed}, {more['reused']} reused", highlight=False)
    for line in problems:
        console.print(line, highlight=False, soft_wrap=True)
    pictures = [str(path) for path in found.files if path.suffix == ".png"]
    numbers = [str(path) for path in found.files if path.suffix == ".csv"]
    one = "figure" if len(pictures) == 1 else "figures"
    where = f"{one} {' and '.join(pictures)} (beside: PDF, SVG), numbers {' and '.join(numbers)}"
    again = f"draw it again:  python pipelines/report.py {result.run_id}"
    for line in (where, *page.lines("see the cells:  "), *map(here, (again, *hints))):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def draw(ledger: Ledger, result: StudyResult, folder: Path) -> Rendered:
    """Render a study's report into a folder, and keep it on the study's own run."""
    found = render(result, folder, ledger.result)
    tags = {**found.tags, NOTE: note_of(result, found.files)}
    ledger.keep(result.run_id, found.files, found.metrics, tags)
    return found


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
        count = f"{counted(missing, 'run')} missing" if missing else "stopped"
        lines.append(f"{count}: the same command goes on from here")
    elif failed:
        lines.append(f"{counted(failed, 'run')} failed: --retry-failed computes them again")
    return lines
