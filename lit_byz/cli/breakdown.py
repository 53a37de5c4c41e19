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
from typing import TYPE_CHECKING, Any

from lit_byz._counted import counted
from lit_byz.cli.command import Parser, guarded, settings_help
from lit_byz.cli.options import Receive, add_options, make_executor
from lit_byz.errors import BadRequest
from lit_byz.execution.executor import Executor

if TYPE_CHECKING:
    from lit_byz.execution.runner import Memory
    from lit_byz.studies.breakdown import BreakdownStudy
    from lit_byz.tracking.ledger import Ledger


def run(arguments: Sequence[str], receive: Receive | None = None) -> int:
    """Do what the arguments ask for; returns the exit code."""
    given = argparse.Namespace(receive=receive)
    options = _parser().parse_intermixed_args(arguments, given)
    executor = make_executor(options)
    study = _misspecified if options.declared else _search
    return study(options, executor)


def _search(options: argparse.Namespace, executor: Executor) -> int:
    from lit_byz.cli import many_runs, plan, saying
    from lit_byz.cli.output_folders import folder_name
    from lit_byz.config.grid_source import read_grid
    from lit_byz.config.search_space import ATTACKS
    from lit_byz.execution.runner import Memory, Runner
    from lit_byz.studies.breakdown import FullGrid, make_arms, make_breakdown

    if any(setting.startswith("workers.f=") for setting in options.settings):
        raise BadRequest("workers.f: is what is searched for, from 1 to --max-f; leave it out")
    usual = {"clip": ["none", "arc"], "attack": ATTACKS}
    saying.now("reading the grid")
    grid = read_grid(options.settings, "breakdown_digits", usual)
    study = make_breakdown(make_arms(grid, options.max_f), options.threshold, options.decide_only)
    every = study.grid_points
    if options.print_config:
        return plan.print_config(grid, every)
    saying.over()
    console = many_runs.console_for_progress(options)
    plan.tell(console, plan.describe(every, grid.given))
    memory, ledger = many_runs.look_up(every, options, bounds_suffice=options.decide_only)
    if options.dry_run or ledger is None:
        return _show_plan(study, memory, options, ledger)
    name = f"breakdown points of {len(study.arms)} arms"
    folder = folder_name("breakdown", options.settings, every, bare="breakdown_digits")
    key = ("breakdown", options.threshold)
    record = many_runs.make_record("breakdown", name, every, *key, folder=folder)
    earlier = ledger.earlier(record.key)
    if earlier is not None and all(a["decided"] for a in earlier.facts.get("arms", {}).values()):
        study.used_before = earlier.facts.get("runs_used")
    study.board.recall = memory
    runner = Runner(ledger, study, record, memory)
    many_runs.compute(runner, executor, options)
    plan.tell_changed_code(memory, every, console)
    others = []
    if options.full and not runner.stopping:
        whole_ledger = many_runs.open_ledger(every[0].plain["tracking"])
        whole_memory = Memory(whole_ledger, options.retry_failed)
        name = f"sweep of {counted(len(every), 'run')}"
        whole = Runner(
            whole_ledger,
            FullGrid(every, whole_memory),
            many_runs.make_record("sweep", name, every, "full grid"),  # its cells say which arm
            whole_memory,
        )
        many_runs.compute(whole, executor, options)
        facts = {**runner.record.facts, "full_grid": whole_ledger.study_id}
        ledger.amend(str(ledger.study_id), replace(runner.record, facts=facts))
        others = [whole]
    return many_runs.conclude(runner, options, others=others)


def _show_plan(
    study: "BreakdownStudy", memory: "Memory", options: argparse.Namespace, ledger: "Ledger | None"
) -> int:
    """The size of the search and of the full grid, and what is left of both.

    Costs are measured at the middle f.
    """
    from lit_byz.cli.plan import failed_before, spans, write
    from lit_byz.execution.estimate import estimate

    everything, most = study.grid_points, study.most_runs()
    per_probe = max(len(at_f) for arm in study.arms.values() for at_f in arm.by_f.values())
    middle = [p for arm in study.arms.values() for p in arm.by_f[(1 + arm.search.most) // 2]]
    lines = [
        f"{len(study.arms)} arms, f from 1 to {study.most}, {per_probe} runs a probe "
        "(attacks x seeds)",
        f"bisection: at most {study.most.bit_length()} probes an arm, {most} runs; "
        f"full grid: {len(everything)} runs",
    ]
    known = memory(everything)
    study.board.recall = memory
    study.begin()
    left = len({point.identity for point in study.board.waiting}) + len(study.later(known))
    # The full grid takes no bounds for results.
    results = {identity for identity, found in known.items() if found.status != "bounded"}
    rest = sum(point.identity not in results for point in everything)
    failed = sum(found.status == "failed" for found in known.values())
    before = f"already done: {len(known) - failed}{failed_before(failed)}"
    lines.append(f"{before}, to do: at most {left}; full grid: {rest}")

    def cost() -> list[str]:
        if not left and not rest:
            return []
        found = estimate(middle, ledger)

        def of(count: int) -> str:
            share = count / len(middle)
            size = f"{share * found.bytes / 1e6:.0f} MB in the store"
            time = spans(share * found.seconds, options, count, found.longest)
            return f"{time}, {size}"

        line = f"estimated at the middle f {found.source}: at most {of(left)}; full grid {of(rest)}"
        return [f"{line} (--full computes it)" if options.full else line]

    return write(lines, cost, options.json)


def _misspecified(options: argparse.Namespace, executor: Executor) -> int:
    from lit_byz.cli import many_runs, plan, saying
    from lit_byz.cli.output_folders import folder_name
    from lit_byz.config.grid_source import read_grid
    from lit_byz.config.search_space import ATTACKS
    from lit_byz.execution.runner import Runner
    from lit_byz.studies.misspecified import (
        MisspecifiedStudy,
        misspecified_points,
        well_specified,
    )

    for name in ("full", "decide_only", "max_f", "threshold"):
        if getattr(options, name) != _parser().get_default(name):
            raise BadRequest(f"--{name.replace('_', '-')}: has no meaning with --declared")
    usual = {"clip": ["none", "arc"], "attack": ATTACKS}
    saying.now("reading the grid")
    grid = read_grid(options.settings, "breakdown_declared_digits", usual)
    found, left_out = misspecified_points(grid)
    if options.print_config:
        return plan.print_config(grid, found)
    saying.over()
    console = many_runs.console_for_progress(options)
    plan.tell(console, plan.describe(found, grid.given))
    memory, ledger = many_runs.look_up(found, options)
    study = MisspecifiedStudy(found, memory)
    plan.tell_changed_code(memory, found, console)
    if options.dry_run or ledger is None:
        return plan.show(study.board, options, ledger, well_specified)
    name = f"declared against real f, {len(found)} runs"
    bare = "breakdown_declared_digits"
    facts: dict[str, Any] = {
        "left_out": left_out,
        "folder": folder_name("declared", options.settings, found, bare=bare),
    }
    record = many_runs.make_record("misspecified", name, found, "misspecified", **facts)
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
