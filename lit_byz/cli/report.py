"""Draw the table, figure and numbers of a sweep or study again, from the store alone.

python pipelines/report.py                     the one that was worked on last
python pipelines/report.py RUN_ID …            others, by the ids that MLflow shows
python pipelines/report.py RUN_ID --out DIR    files into DIR
python pipelines/report.py tracking.uri=sqlite:///elsewhere/mlflow.db

Nothing is computed, and nothing but the store is read.
"""

from collections.abc import Sequence
from pathlib import Path

from lit_byz.cli.command import Parser, guarded


def run(arguments: Sequence[str]) -> int:
    from lit_byz.cli.many_runs import show
    from lit_byz.config.compose import compose_plain
    from lit_byz.report.rendering import problems
    from lit_byz.tracking.ledger import Ledger

    parser = Parser(__doc__ or "")
    parser.add_argument("what", nargs="*", help="ids of runs, or tracking.key=value")
    parser.add_argument("--json", action="store_true", help="print the results as JSON, no table")
    parser.add_argument("--out", default="outputs", help="folder for figures and tables")
    options = parser.parse_intermixed_args(arguments)
    settings = [word for word in options.what if "=" in word]
    ledger = Ledger.of(compose_plain(settings)["tracking"])
    wanted = [word for word in options.what if "=" not in word] or [ledger.newest()]
    code = 0
    for run_id in wanted:
        result = ledger.result(run_id)
        found = problems(result)
        code = max(code, int(bool(found["failed"] or found["missing"])))
        folder = Path(options.out) if len(wanted) == 1 else Path(options.out) / run_id
        lines = [f"failed {label}: {error}" for label, error in found["failed"].items()]
        lines += [f"missing {label}" for label in found["missing"]]
        show(ledger, result, folder, options.json, {"exit_code": code}, lines)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    return guarded(run, argv)
