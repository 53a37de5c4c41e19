"""The smallest f at which worst-case accuracy falls below a threshold, by bisection over f.

python pipelines/breakdown.py                                   on digits, with and without ARC
python pipelines/breakdown.py experiment=breakdown_mnist --max-f 5 --dry-run
python pipelines/breakdown.py clip=[none,arc] rule=[cwtm,gm] dataset=mnist --max-f 5 --dry-run
python pipelines/breakdown.py --declared server.f=[1,2,3] workers.f=[1,2,3] --dry-run

A list makes arms (attack and seed apart, over which the worst case and its mean are taken). f goes
from 1 to --max-f. Bisection assumes that an arm that breaks down at some f does so at every larger
one; --full computes the whole grid and shows its answer beside. With --declared: the worst case
for every pair of what the server assumes, server.f, and the real workers.f. Without experiment= or
config= the other settings are those of train.py, with five attacks. The same command again goes on
where the last one stopped: finished runs are not computed twice.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lit_byz.cli.command import Parser, guarded, settings_help
from lit_byz.cli.options import add_options, make_executor
from lit_byz.errors import BadRequest
from lit_byz.execution.executor import Executor

if TYPE_CHECKING:
    from lit_byz.studies.breakdown import BreakdownStudy


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for; returns the exit code."""
    options = _parser().parse_intermixed_args(arguments)
    executor = make_executor(options)  # first: its processes begin with their imports
    study = _misspecified if options.declared else _search
    return study(options, executor)


def _search(options: argparse.Namespace, executor: Executor) -> int:
    from lit_byz.cli import many_runs, plan
    from lit_byz.config.grid_source import read_grid
    from lit_byz.config.search_space import ATTACKS
    from lit_byz.execution.runner import Memory, Runner
    from lit_byz.studies.breakdown import FullGrid, make_arms, make_breakdown
    from lit_byz.tracking.ledger import Ledger

    if any(setting.startswith("workers.f=") for setting in options.settings):
        raise BadRequest("workers.f: is what is searched for, from 1 to --max-f; leave it out")
    usual = {"clip": ["none", "arc"], "attack": ATTACKS}
    grid = read_grid(options.settings, "breakdown_digits", usual)
    study = make_breakdown(make_arms(grid, options.max_f), options.threshold, options.decide_only)
    every = study.grid_points
    if options.print_config:
        return plan.print_config(grid, every)
    console = many_runs.console_for_progress(options)
    plan.tell(console, plan.describe(every, grid.given))
    ledger = Ledger.of(every[0].plain["tracking"])
    if options.dry_run:
        _show_plan(study, options.full)
        return 0
    memory = Memory(ledger, options.retry_failed, bounds_suffice=options.decide_only)
    name = f"breakdown points of {len(study.arms)} arms"
    record = many_runs.make_record("breakdown", name, every, "breakdown", options.threshold)
    earlier = ledger.earlier(record.key)
    if earlier is not None and all(a["decided"] for a in earlier.facts.get("arms", {}).values()):
        study.used_before = earlier.facts.get("runs_used")
    study.board.recall = memory
    runner = Runner(ledger, study, record, memory)
    many_runs.compute(runner, executor, options)
    plan.tell_changed_code(memory, every, console)
    others = []
    if options.full and not runner.stopping:
        whole_ledger = Ledger.of(every[0].plain["tracking"])
        whole_memory = Memory(whole_ledger, options.retry_failed)
        name = f"sweep of {len(every)} runs"
        whole = Runner(
            whole_ledger,
            FullGrid(every, whole_memory),
            many_runs.make_record("sweep", name, every),
            whole_memory,
        )
        many_runs.compute(whole, executor, options)
        facts = {**runner.record.facts, "full_grid": whole_ledger.study_id}
        ledger.amend(str(ledger.study_id), replace(runner.record, facts=facts))
        others = [whole]
    return many_runs.conclude(runner, options, others=others)


def _show_plan(study: "BreakdownStudy", full: bool) -> None:
    """The size of the search and of the full grid; costs are measured at the middle f."""
    from rich.console import Console

    from lit_byz.cli.plan import duration, tell
    from lit_byz.execution.estimate import estimate

    everything, most = study.grid_points, study.most_runs()
    per_probe = max(len(at_f) for arm in study.arms.values() for at_f in arm.by_f.values())
    middle = [p for arm in study.arms.values() for p in arm.by_f[(1 + arm.search.most) // 2]]
    console = Console()
    lines = [
        f"{len(study.arms)} arms, f from 1 to {study.most}, {per_probe} runs a probe "
        "(attacks x seeds)",
        f"bisection: at most {study.most.bit_length()} probes an arm, {most} runs; "
        f"full grid: {len(everything)} runs",
    ]
    tell(console, lines)
    each = estimate(middle).seconds / len(middle)
    search, whole = (duration(each * count) for count in (most, len(everything)))
    line = f"estimated from a few measured steps at the middle f: at most {search} of one process "
    tell(
        console, [f"{line}as this one, full grid {whole}{' (--full computes it)' if full else ''}"]
    )


def _misspecified(options: argparse.Namespace, executor: Executor) -> int:
    from lit_byz.cli import many_runs, plan
    from lit_byz.config.grid_source import read_grid
    from lit_byz.config.search_space import ATTACKS
    from lit_byz.execution.runner import Memory, Runner
    from lit_byz.studies.misspecified import (
        MisspecifiedStudy,
        misspecified_points,
        well_specified,
    )
    from lit_byz.tracking.ledger import Ledger

    for name in ("full", "decide_only", "max_f", "threshold"):
        if getattr(options, name) != _parser().get_default(name):
            raise BadRequest(f"--{name.replace('_', '-')}: has no meaning with --declared")
    usual = {"clip": ["none", "arc"], "attack": ATTACKS}
    grid = read_grid(options.settings, "breakdown_declared_digits", usual)
    found, left_out = misspecified_points(grid)
    if options.print_config:
        return plan.print_config(grid, found)
    console = many_runs.console_for_progress(options)
    plan.tell(console, plan.describe(found, grid.given))
    ledger = Ledger.of(found[0].plain["tracking"])
    memory = Memory(ledger, options.retry_failed)
    study = MisspecifiedStudy(found, memory)
    plan.tell_changed_code(memory, found, console)
    if options.dry_run:
        plan.show(study.board, plan.counts(study.board), well_specified)
        return 0
    name = f"declared against real f, {len(found)} runs"
    record = many_runs.make_record("misspecified", name, found, "misspecified", left_out=left_out)
    runner = Runner(ledger, study, record, memory)
    many_runs.compute(runner, executor, options)
    return many_runs.conclude(runner, options)


def _parser() -> Parser:
    parser = Parser(__doc__ or "", settings_help)
    add_options(parser)
    parser.add_argument(
        "--threshold", type=float, default=0.5, help="accuracy below which an arm is broken"
    )
    parser.add_argument("--max-f", type=int, help="default: the largest f with 2 f < n")
    parser.add_argument(
        "--full", action="store_true", help="compute the full grid too, and compare the answers"
    )
    parser.add_argument(
        "--decide-only",
        action="store_true",
        help="stop runs that cannot change an answer any more; accuracies become bounds",
    )
    parser.add_argument(
        "--declared", action="store_true", help="worst cases by declared and by real f instead"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(run, argv)
