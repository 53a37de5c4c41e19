"""Run a whole attack grid and show the worst case of every cell.

python pipelines/sweep.py                                   the quickstart: digits, two minutes
python pipelines/sweep.py experiment=NAME seed=[1,2,3]      a grid of configs/experiment/, changed
python pipelines/sweep.py clip=[none,arc] attack=[sf,foe] dataset=mnist --dry-run

A list makes an axis of the grid, a single value removes one. The same command again goes on where
the last one stopped: finished runs are not computed twice.
"""

import sys
from collections.abc import Sequence

from lit_byz.experiment.catalogue import catalogue
from lit_byz.experiment.cli import Parser, guarded, many_runs

FIGURE_1 = (
    "the paper's Figure 1a:  python pipelines/sweep.py experiment=figure_1a  "
    "(500 runs; --dry-run says how long)"
)


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_intermixed_args(arguments)

    from lit_byz.experiment.conclusion import conclude
    from lit_byz.experiment.grid import points, read_grid
    from lit_byz.experiment.session import compute, make_executor
    from lit_byz.experiment.study import plan
    from lit_byz.experiment.sweep import make_sweep

    found = points(read_grid(options.settings, "quickstart"))
    executor = make_executor(options)
    sweep = make_sweep(
        found, worst_case_only=options.worst_case_only, retry_failed=options.retry_failed
    )
    if options.dry_run:
        print(plan(sweep))
        return 0
    if sweep.pending:
        compute(sweep, executor, options.progress)
    named = any(setting.startswith(("experiment=", "config=")) for setting in options.settings)
    return conclude(sweep, options.out, as_json=options.json, hint=None if named else FIGURE_1)


def _parser() -> Parser:
    parser = Parser(__doc__ or "", catalogue)
    many_runs(parser, worst_case_only=True)
    return parser


if __name__ == "__main__":
    sys.exit(guarded(main))
