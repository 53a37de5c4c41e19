"""The smallest f at which worst-case accuracy falls below a threshold, by bisection over f.

python pipelines/breakdown.py                                   on digits, with and without ARC
python pipelines/breakdown.py experiment=breakdown_mnist --dry-run
python pipelines/breakdown.py clip=[none,arc] rule=[cwtm,gm] dataset=mnist --max-f 5
python pipelines/breakdown.py --declared server.f=[1,2,3] workers.f=[1,2,3]

A list makes arms (attack and seed apart, over which the worst case and its mean are taken). f goes
from 1 to --max-f. Bisection assumes that an arm that breaks down at some f does so at every larger
one; --full computes the whole grid and shows its answer beside. With --declared: the worst case
for every pair of what the server assumes, server.f, and the real workers.f. The same command again
goes on where the last one stopped: finished runs are not computed twice.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lit_byz.errors import BadRequest
from lit_byz.experiment.catalogue import catalogue
from lit_byz.experiment.cli import Parser, guarded, many_runs

if TYPE_CHECKING:
    from lit_byz.experiment.executors import Executor


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_intermixed_args(arguments)

    from lit_byz.experiment.session import make_executor

    executor = make_executor(options)
    return _declared(options, executor) if options.declared else _search(options, executor)


def _search(options: argparse.Namespace, executor: "Executor") -> int:
    from lit_byz.experiment.breakdown import make_breakdown
    from lit_byz.experiment.breakdown_conclusion import conclude, plan
    from lit_byz.experiment.grid import read_grid
    from lit_byz.experiment.session import compute
    from lit_byz.experiment.sweep import make_sweep

    if any(setting.startswith("workers.f=") for setting in options.settings):
        raise BadRequest("workers.f: is what is searched for, from 1 to --max-f; leave it out")
    study = make_breakdown(
        read_grid(options.settings, "breakdown_digits"),
        threshold=options.threshold,
        max_f=options.max_f,
        decide_only=options.decide_only,
        retry_failed=options.retry_failed,
    )
    if options.dry_run:
        print(plan(study, full=options.full))
        return 0
    compute(study, executor, options.progress)
    full = None
    if options.full and not study.stopping:
        full = make_sweep(study.grid_points, retry_failed=options.retry_failed)
        if full.pending:
            compute(full, executor, options.progress)
    return conclude(study, full, options.out, as_json=options.json)


def _declared(options: argparse.Namespace, executor: "Executor") -> int:
    from rich.console import Console

    from lit_byz.experiment.breakdown_conclusion import conclude_declared, tell_left_out
    from lit_byz.experiment.declared import declared_points, well_declared
    from lit_byz.experiment.grid import read_grid
    from lit_byz.experiment.session import compute
    from lit_byz.experiment.study import plan
    from lit_byz.experiment.sweep import make_sweep

    for name in ("full", "decide_only", "max_f", "threshold"):
        if getattr(options, name) != _parser().get_default(name):
            raise BadRequest(f"--{name.replace('_', '-')}: has no meaning with --declared")
    found, left_out = declared_points(read_grid(options.settings, "breakdown_declared_digits"))
    sweep = make_sweep(found, retry_failed=options.retry_failed)
    if options.dry_run:
        print(plan(sweep, well_declared))
        tell_left_out(left_out, Console())
        return 0
    compute(sweep, executor, options.progress)
    return conclude_declared(sweep, left_out, options.out, as_json=options.json)


def _parser() -> Parser:
    parser = Parser(__doc__ or "", catalogue)
    many_runs(parser)
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


if __name__ == "__main__":
    sys.exit(guarded(main))
