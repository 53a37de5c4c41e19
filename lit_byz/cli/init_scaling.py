"""Worst-case accuracy as the model's initialisation worsens, with and without clipping.

python pipelines/init_scaling.py                                     on digits, in five minutes
python pipelines/init_scaling.py experiment=init_scaling_mnist       the paper's first figure
python pipelines/init_scaling.py model.init_scale=[1,2,4] clip=[none,static,arc] clip.C=2 --dry-run

All initial parameters are multiplied by μ, model.init_scale. The grid is that of an experiment
file, or train.py's settings with five attacks, changed by key=value as in sweep.py; Byzantine-free
DSGD is added for every μ and seed. The norms of the honest workers' initial gradients (the largest
is the theorem's ζ) are computed over all of their data. The same command again goes on where the
last one stopped.
"""

from argparse import Namespace
from collections.abc import Sequence

from lit_byz.cli.command import Parser, guarded, settings_help
from lit_byz.cli.options import Receive, add_options, make_executor


def run(arguments: Sequence[str], receive: Receive | None = None) -> int:
    """Do what the arguments ask for; returns the exit code."""
    parser = Parser(__doc__ or "", settings_help)
    add_options(parser, worst_case_only=True)
    options = parser.parse_intermixed_args(arguments, Namespace(receive=receive))
    executor = make_executor(options)

    from lit_byz.cli import many_runs, plan, saying
    from lit_byz.cli.output_folders import folder_name
    from lit_byz.config.grid_source import read_grid
    from lit_byz.config.search_space import ATTACKS
    from lit_byz.execution.runner import Runner
    from lit_byz.studies.init_scaling import SCALE, is_dsgd, make_init_scaling, study_points

    usual = {SCALE: [1, 2, 3, 4, 5], "clip": ["none", "arc"], "attack": ATTACKS}
    saying.now("reading the grid")
    grid = read_grid(options.settings, "init_scaling_digits", usual)
    found = study_points(grid)
    if options.print_config:
        return plan.print_config(grid, found)
    saying.over()
    console = many_runs.console_for_progress(options)
    plan.tell(console, plan.describe([p for p in found if not is_dsgd(p)], grid.given))
    plan.tell(console, ["beside them: DSGD without Byzantine workers for every μ and seed"])
    only = options.worst_case_only
    memory, ledger = many_runs.look_up(found, options, bounds_suffice=only)
    study = make_init_scaling(found, worst_case_only=only, recall=memory)
    plan.tell_changed_code(memory, found, console)
    if options.dry_run or ledger is None:
        return plan.show(study.board, options, ledger, at_most=only)
    name = f"initialisation study of {len(found)} runs"
    folder = folder_name("init-scaling", options.settings, found, bare="init_scaling_digits")
    record = many_runs.make_record("init_scaling", name, found, "init_scaling", folder=folder)
    runner = Runner(ledger, study, record, memory)
    many_runs.compute(runner, executor, options)
    return many_runs.conclude(runner, options)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(run, argv)
