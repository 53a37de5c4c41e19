"""Worst-case accuracy as the model's initialisation worsens, with and without clipping.

python pipelines/init_scaling.py                                     on digits, in five minutes
python pipelines/init_scaling.py experiment=init_scaling_mnist       the paper's first figure
python pipelines/init_scaling.py model.init_scale=[1,2,4] clip=[none,static,arc] clip.C=2 --dry-run

All initial parameters are multiplied by μ, model.init_scale. The grid is that of an experiment
file, changed by key=value as in sweep.py; Byzantine-free DSGD is added for every μ and seed. The
norms of the honest workers' initial gradients (the largest is the theorem's ζ) are computed over
all of their data. The same command again goes on where the last one stopped.
"""

import sys
from collections.abc import Sequence

from lit_byz.experiment.catalogue import catalogue
from lit_byz.experiment.cli import Parser, guarded, many_runs


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_intermixed_args(arguments)

    from rich.console import Console

    from lit_byz.experiment.grid import read_grid
    from lit_byz.experiment.init_scaling import conclude, initial_norms, study_points
    from lit_byz.experiment.session import compute, make_executor
    from lit_byz.experiment.study import plan
    from lit_byz.experiment.sweep import make_sweep

    found = study_points(read_grid(options.settings, "init_scaling_digits"))
    executor = make_executor(options)
    sweep = make_sweep(
        found, worst_case_only=options.worst_case_only, retry_failed=options.retry_failed
    )
    if options.dry_run:
        print(plan(sweep))
        return 0
    compute(sweep, executor, options.progress)
    console = None if options.progress == "none" else Console(stderr=True)
    norms = initial_norms(sweep, console)
    return conclude(sweep, norms, options.out, as_json=options.json)


def _parser() -> Parser:
    parser = Parser(__doc__ or "", catalogue)
    many_runs(parser, worst_case_only=True)
    return parser


if __name__ == "__main__":
    sys.exit(guarded(main))
