"""Evaluate the model that a tracked run has kept: accuracy, loss, and whose class was lost.

python pipelines/evaluate.py run=RUN_ID                  its final parameters, on the test images
python pipelines/evaluate.py run=RUN_ID which=best       those of the highest accuracy, on images
                                                         held out where there are any
python pipelines/evaluate.py run=RUN_ID --out DIR        files into DIR

The run must have kept them: train.py does, sweeps do with tracking.model=final, best or both.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from lit_byz._door import here
from lit_byz.cli import saying
from lit_byz.cli.command import Parser, guarded, out_folder
from lit_byz.errors import BadRequest


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for; returns the exit code."""
    from rich.console import Console

    from lit_byz.cli.plan import write_json
    from lit_byz.config.compose import compose_plain
    from lit_byz.config.sources import parse
    from lit_byz.execution.kept import config_of, confusion, load_model
    from lit_byz.report import confusion as report
    from lit_byz.tracking.glances import glance_at
    from lit_byz.tracking.names import label
    from lit_byz.tracking.page import page_of_run
    from lit_byz.tracking.store import open_store

    parser = Parser(__doc__ or "")
    parser.add_argument(
        "settings", nargs="*", metavar="key=value", help="run=, which=, tracking.uri="
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON, no table")
    parser.add_argument(
        "--out",
        type=out_folder,
        help="folder for the figure and the table; default: outputs/evaluate-RUN-WHICH",
    )
    options = parser.parse_intermixed_args(arguments)
    own = [word for word in options.settings if word.partition("=")[0] in ("run", "which")]
    asked = parse(own, ()).content
    if not isinstance(asked.get("run"), str | int):
        raise BadRequest(here("evaluate: name a run, as in run=0123abcd; train.py prints its id"))
    run_id, which = str(asked["run"]), str(asked.get("which", "final"))
    rest = [word for word in options.settings if word not in own]
    saying.now("reading the run and its data")
    store = open_store(compose_plain(rest)["tracking"]["uri"])
    config = config_of(store, run_id)
    model = load_model(run_id, which, uri=store.uri)
    finite = all(bool(p.isfinite().all()) for p in model.parameters())
    counts, loss = confusion(model, config)
    accuracy = float(counts.diagonal().sum() / counts.sum())
    title = f"{label(config)}: {which} parameters, accuracy {accuracy:.4f}"
    place = Path(options.out or f"outputs/evaluate-{run_id[:8]}-{which}")
    picture, numbers = place / "confusion.png", place / "confusion.csv"
    report.figure(counts, title, picture)
    numbers.write_text(report.csv_of(counts))
    if options.json:
        found = [None if math.isnan(value) else value for value in report.recalls(counts).tolist()]
        shown = loss if math.isfinite(loss) else None
        content = {"accuracy": accuracy, "loss": shown, "recalls": found, "which": which}
        write_json({**content, "finite": finite})
        return 0
    console = Console()
    console.print(report.table(counts, title))
    console.print(f"accuracy {accuracy:.4f}, loss {loss:.4f}", highlight=False)
    if not finite:
        console.print(
            "its parameters are not finite: it classifies nothing; images count as class 0"
        )
    where = f"figure {picture} (beside: PDF, SVG), numbers {numbers}"
    console.print(where, highlight=False, soft_wrap=True, markup=False)
    seen = glance_at(store, run_id)
    if seen is not None:
        for line in page_of_run(store, seen.experiment_id, run_id).lines("see it: "):
            console.print(line, highlight=False, soft_wrap=True)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(run, argv)
