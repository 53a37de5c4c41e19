"""Draw figures and tables again from the store alone, and the paper's beside its claims.

python pipelines/report.py                     the sweep or study that was worked on last
python pipelines/report.py RUN_ID …            others, by the ids that MLflow shows
python pipelines/report.py list                the paper's figures and tables: done, hours left
python pipelines/report.py paper/fig1a         one of them: figure, tables, scorecard
python pipelines/report.py paper               all that have runs, and one page with everything
python pipelines/report.py export FILE         all finished runs as one file
python pipelines/report.py import FILE         bring such a file's runs into the store
python pipelines/report.py tracking.uri=sqlite:///elsewhere/mlflow.db

Nothing is computed, and nothing but the store is read. seed=[1] and scale=smoke change the paper's
experiments as they do in sweeps; where more than the seeds is changed, no claim is judged.
"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lit_byz.cli import saying
from lit_byz.cli.command import Parser, guarded, out_folder
from lit_byz.errors import BadRequest

if TYPE_CHECKING:
    from lit_byz.tracking.ledger import Ledger


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for; returns the exit code."""
    from lit_byz.config.compose import tracking_section
    from lit_byz.tracking.ledger import Ledger

    parser = Parser(__doc__ or "")
    parser.add_argument(
        "what", nargs="*", help="ids of runs, list, paper/…, export, import, key=value"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON, no table")
    parser.add_argument(
        "--out", type=out_folder, help="folder for figures and tables; default: outputs/STUDY"
    )
    parser.add_argument(
        "--formats", default="png,pdf,svg", help="of the paper's figures; default: png,pdf,svg"
    )
    options = parser.parse_intermixed_args(arguments)
    settings = [word for word in options.what if "=" in word]
    words = [word for word in options.what if "=" not in word]
    store = [word for word in settings if word.startswith("tracking.")]
    saying.now("reading the store")
    ledger = Ledger.of(tracking_section(store))
    changes = [word for word in settings if word not in store]
    first = words[0] if words else ""
    paper = [word for word in words if word == "paper" or word.startswith("paper/")]
    if changes and not (first == "list" or paper):
        raise BadRequest(f"{changes[0]}: a report of runs takes tracking.key=value only")
    if first in ("export", "import"):
        from lit_byz.cli.travel import travel

        return travel(first, words[1:], ledger, options.json)
    if first == "list" or paper:
        from lit_byz.cli import paper as papers

        if first == "list":
            return papers.show_list(ledger, words[1:], changes, options)
        if paper != words:
            raise BadRequest("paper/… and ids of runs: ask for one kind at a time")
        return papers.show(ledger, words, changes, options)
    return _studies(ledger, words, options)


def _studies(ledger: "Ledger", words: Sequence[str], options: argparse.Namespace) -> int:
    from rich.markup import escape

    from lit_byz.cli.many_runs import show
    from lit_byz.cli.output_folders import folder_of
    from lit_byz.report.rendering import problems
    from lit_byz.tracking import cells

    wanted = list(words) or [ledger.newest()]
    code = 0
    for run_id in wanted:
        result = ledger.result(run_id)
        cells.correct(ledger.store, result)
        found = problems(result)
        code = max(code, int(bool(found["failed"] or found["missing"])))
        folder = folder_of(result.record, options.out)
        if options.out is not None and len(wanted) > 1:
            folder /= run_id
        lines = [f"failed {label}: {error}" for label, error in found["failed"].items()]
        lines += [f"missing {label}" for label in found["missing"]]
        lines = [escape(line) for line in lines]
        show(ledger, result, folder, options.json, {"exit_code": code}, lines)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(run, argv)
