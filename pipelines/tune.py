"""Tune a cell against its worst attack with Optuna, and show the result beside ARC.

python pipelines/tune.py                           digits: the threshold of static clipping
python pipelines/tune.py dataset=mnist attack=[sf,foe,alie] seed=[1,2] --trials 30 --dry-run
python pipelines/tune.py tune.space.clip.C.low=0.1 tune.space.train.lr.choices=[0.05,0.1]

A trial's value is its worst-case maximal accuracy, so it ends as soon as one attack has finished
below the best trial. The same command again goes on with its study, also while another one works
on it. The section tune of a file in configs/experiment/ has the keys space, trials and compare.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lit_byz.experiment.catalogue import catalogue
from lit_byz.experiment.cli import Parser, guarded, many_runs

if TYPE_CHECKING:
    from lit_byz.experiment.tuning import Tuning


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_intermixed_args(arguments)

    from lit_byz.experiment.search_space import read_problem
    from lit_byz.experiment.session import compute, make_executor
    from lit_byz.experiment.trial_book import check_url
    from lit_byz.experiment.tuning import make_tuning
    from lit_byz.experiment.tuning_conclusion import conclude

    problem = read_problem(options.settings, "tune_digits", options.trials)
    check_url(options.storage)
    executor = make_executor(options)
    tuning = make_tuning(
        problem, name=options.study, url=options.storage, retry_failed=options.retry_failed
    )
    if options.dry_run:
        _show_plan(tuning)
        return 0
    compute(tuning, executor, options.progress)
    return conclude(tuning, options.out, as_json=options.json)


def _parser() -> Parser:
    parser = Parser(__doc__ or "", catalogue)
    many_runs(parser)
    parser.add_argument("--trials", type=int, help="of the study, all processes together")
    parser.add_argument("--study", help="its name; default: made of the settings")
    parser.add_argument(
        "--storage", help="URL of a database; default: a journal beside the tracked runs"
    )
    return parser


def _show_plan(tuning: "Tuning") -> None:
    from lit_byz.experiment.estimate import estimate
    from lit_byz.experiment.study import duration

    problem = tuning.problem
    each, compared = problem.reference(), problem.comparisons()
    left = max(0, problem.trials - tuning.book.settled)
    print(f"study {tuning.book.study.study_name}: {problem.trials} trials, {left} to do")
    most = left * len(each)
    print(f"at most {most} attack runs, {len(each)} a trial, fewer by pruning; ", end="")
    print(f"{len(compared)} to compare with")
    cost = estimate([*(each * left), *compared])
    shown = duration(cost.seconds)
    print(
        f"estimated from a few measured steps: at most {shown} of one process as this one, ", end=""
    )
    print(f"{cost.bytes / 1e6:.0f} MB in the store")


if __name__ == "__main__":
    sys.exit(guarded(main))
