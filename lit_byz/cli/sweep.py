"""Run a whole attack grid and show the worst case of every cell.

python pipelines/sweep.py                                   the quickstart: digits, two minutes
python pipelines/sweep.py experiment=NAME seed=[1,2,3]      a grid of configs/experiment/, changed
python pipelines/sweep.py clip=[none,arc] attack=[sf,foe] dataset=mnist --dry-run

A list makes an axis of the grid, a single value removes one. Where a group is an axis, an argument
goes to those of its options that have it. Without experiment= or config= the other settings are
those of train.py. The same command again goes on where the last one stopped: finished runs are not
computed twice.
"""

from argparse import Namespace
from collections.abc import Sequence

from lit_byz._counted import counted
from lit_byz.cli.command import Parser, guarded, settings_help
from lit_byz.cli.options import Receive, add_options, make_executor

FIGURE_1 = (
    "the paper's Figure 1a:  python pipelines/sweep.py experiment=paper/fig1a  "
    "(705 runs; --dry-run says how long)"
)


def run(arguments: Sequence[str], receive: Receive | None = None) -> int:
    """Do what the arguments ask for; returns the exit code."""
    parser = Parser(__doc__ or "", settings_help)
    add_options(parser, worst_case_only=True)
    options = parser.parse_intermixed_args(arguments, Namespace(receive=receive))
    executor = make_executor(options)

    from lit_byz.cli import many_runs, plan, saying
    from lit_byz.cli.output_folders import folder_name
    from lit_byz.config.grid import points
    from lit_byz.config.grid_source import read_grid
    from lit_byz.execution.runner import Runner
    from lit_byz.studies.grid import GridStudy, WorstCaseStudy

    saying.now("reading the grid")
    grid = read_grid(options.settings, bare="quickstart")
    found = points(grid)
    if options.print_config:
        return plan.print_config(grid, found)
    saying.over()
    console = many_runs.console_for_progress(options)
    plan.tell(console, plan.describe(found, grid.given))
    only = options.worst_case_only
    memory, ledger = many_runs.look_up(found, options, bounds_suffice=only)
    study = (WorstCaseStudy if only else GridStudy)(found, memory)
    plan.tell_changed_code(memory, found, console)
    if options.dry_run or ledger is None:
        return plan.show(study.board, options, ledger, at_most=only)
    folder = folder_name("sweep", options.settings, found, bare="quickstart")
    name = f"sweep of {counted(len(study.board.points), 'run')}"
    record = many_runs.make_record("sweep", name, found, folder=folder)
    runner = Runner(ledger, study, record, memory)
    many_runs.compute(runner, executor, options)
    return many_runs.conclude(runner, options, [] if options.settings else [FIGURE_1])


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(run, argv)
