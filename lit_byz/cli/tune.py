"""Tune a cell against its worst attack with Optuna, and show the result beside ARC.

python pipelines/tune.py                           digits: the threshold of static clipping
python pipelines/tune.py dataset=mnist attack=[sf,foe,alie] seed=[1,2] --trials 30 --dry-run
python pipelines/tune.py tune.space.clip.C.low=0.1 tune.space.train.lr.choices=[0.05,0.1] --dry-run

A trial's value is its worst-case maximal accuracy on training images held out (data.validation), or
on the test images where none are, so it ends as soon as one attack has finished below the best
trial. Without experiment= or config= the other settings are those of train.py, with
five attacks. The same command again goes on with its study, also while another one works on it. The
section tune of a file in configs/experiment/ has the keys space, trials and compare.
"""

import argparse
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lit_byz.cli.command import Parser, guarded, settings_help
from lit_byz.cli.options import Receive, add_options, make_executor

if TYPE_CHECKING:
    from lit_byz.config.grid import Point
    from lit_byz.config.search_space import Problem
    from lit_byz.tracking.ledger import Ledger
    from lit_byz.tracking.trials import TrialBook

# So many trials are looked at for the dearest one.
MOST_TRIALS = 64
NEXT = "the same on MNIST: python pipelines/tune.py experiment=tune_mnist --dry-run"


def run(arguments: Sequence[str], receive: Receive | None = None) -> int:
    """Do what the arguments ask for; returns the exit code."""
    given = argparse.Namespace(receive=receive)
    options = _parser().parse_intermixed_args(arguments, given)
    executor = make_executor(options)

    from lit_byz.cli import many_runs, plan, saying
    from lit_byz.cli.output_folders import folder_name
    from lit_byz.config.identity import refuse_changed
    from lit_byz.config.search_space import read_problem
    from lit_byz.execution.board import Board
    from lit_byz.execution.runner import Memory, Runner
    from lit_byz.studies.tuning import TuningStudy
    from lit_byz.tracking.trial_storage import check_url
    from lit_byz.tracking.trials import open_book

    saying.now("reading the grid")
    problem = read_problem(options.settings, "tune_digits", options.trials)
    example = problem.reference()
    if options.print_config:
        return plan.print_config(problem.grid, example, problem)
    check_url(options.storage)
    refuse_changed(point.plain for point in example)
    plain = [point.without(list(problem.space)) for point in example]
    saying.over()
    console = many_runs.console_for_progress(options)
    settings = plan.describe(plain, tuned=list(problem.space))
    plan.tell(console, [*settings, _tuned(problem), _judge(problem)])
    tracking = example[0].plain["tracking"]
    if options.storage is None and many_runs.would_make_a_store(tracking, options):
        return _show_plan(problem, options)
    ledger = many_runs.open_ledger(tracking)
    book = open_book(
        problem,
        ledger.store,
        name=options.study,
        url=options.storage,
        retry_failed=options.retry_failed,
    )
    if options.dry_run:
        return _show_plan(problem, options, book, ledger)
    memory = Memory(ledger, options.retry_failed, bounds_suffice=True)
    board = Board(memory, judged_on=judged_on(problem))
    study = TuningStudy(problem, book, board, book.wait_for_others)
    name = book.study.study_name
    key = ("tuning", problem.identity, name)
    folder = folder_name("tune", options.settings, example, problem.space, bare="tune_digits")
    facts = {"study": name, "folder": folder}
    every = problem.at_ends()
    record = many_runs.make_record("tuning", f"study {name}", example, *key, among=every, **facts)
    runner = Runner(ledger, study, record, memory)
    try:
        many_runs.compute(runner, executor, options)
    finally:
        study.release()
    code = many_runs.conclude(runner, options, [NEXT])
    return code or int(bool(book.failed()))


def _parser() -> Parser:
    parser = Parser(__doc__ or "", settings_help)
    add_options(parser)
    parser.add_argument("--trials", type=int, help="of the study, all processes together")
    parser.add_argument("--study", help="its name; default: made of the settings")
    parser.add_argument(
        "--storage", help="URL of a database; default: a journal beside the tracked runs"
    )
    return parser


def judged_on(problem: "Problem") -> str:
    """The images whose accuracy decides: those held out if there are some."""
    return "val" if problem.reference()[0].plain["data"]["validation"] else "test"


def _judge(problem: "Problem") -> str:
    if judged_on(problem) == "test":
        return "judged on: the test images; data.validation=0.1 holds out training images for it"
    share = 100 * problem.reference()[0].plain["data"]["validation"]
    return f"judged on: {share:g} % of the training images, held out; then tested"


def _tuned(problem: "Problem") -> str:
    keys = "; ".join(f"{key} {part}" for key, part in problem.space.items())
    beside = f", compared with {', '.join(problem.compare)}" if problem.compare else ""
    return f"tuned: {keys}; {problem.trials} trials{beside}"


def _show_plan(
    problem: "Problem",
    options: argparse.Namespace,
    book: "TrialBook | None" = None,
    ledger: "Ledger | None" = None,
) -> int:
    from lit_byz.cli.plan import spans, write
    from lit_byz.execution.estimate import prices
    from lit_byz.tracking.trials import default_name

    each, compared = problem.reference(), problem.comparisons()
    left = max(0, problem.trials - (book.settled if book is not None else 0))
    lines = [
        f"study {options.study or default_name(problem)}: {problem.trials} trials, {left} to do",
        f"at most {left * len(each)} attack runs, {len(each)} a trial, fewer by pruning; "
        f"{len(compared)} to compare with",
    ]

    def cost() -> list[str]:
        dearest = _dearest(problem)
        trials = dearest or [each]
        found = prices([*itertools.chain(*trials), *compared], ledger)
        costs, others = [found.of(trial) for trial in trials], found.of(compared)
        seconds = others.seconds + left * max(cost.seconds for cost in costs)
        size = others.bytes + left * max(cost.bytes for cost in costs)
        bound = "at most" if dearest else "about"
        like = "" if dearest else f"; if all trials have {each[0].cell.partition(', ')[2]}"
        longest = max(cost.longest for cost in (*costs, others))
        runs = left * len(each) + len(compared)
        line = f"estimated {found.source}: {bound} {spans(seconds, options, runs, longest)}"
        return [f"{line}, {size / 1e6:.0f} MB in the store{like}"]

    return write(lines, cost, options.json)


def _dearest(problem: "Problem") -> "list[list[Point]]":
    """Trials one of which costs the most: every end or choice of the keys that change the cost.

    None where these are too many to look at.
    """
    from lit_byz.execution.estimate import what_costs

    first = {key: part.ends()[0] for key, part in problem.space.items()}
    ways: dict[str, list[Any]] = {}
    for key, part in problem.space.items():
        seen: dict[object, Any] = {}
        for end in part.ends():
            seen.setdefault(what_costs(problem.trial(0, {**first, key: end})), end)
        ways[key] = list(seen.values())
    if math.prod(map(len, ways.values())) > MOST_TRIALS:
        return []
    every = itertools.product(*ways.values())
    return [problem.trial(0, dict(zip(ways, values, strict=True))) for values in every]


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(run, argv)
