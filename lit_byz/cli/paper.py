"""``report.py list`` and ``report.py paper/…``: the paper's figures, tables and claims."""

import argparse
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from lit_byz._counted import counted
from lit_byz._door import here
from lit_byz.cli.output_folders import OUTPUTS
from lit_byz.cli.plan import write_json
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest
from lit_byz.report.drawing import FORMATS
from lit_byz.report.paper import listing, scorecard
from lit_byz.report.paper.claims import Claim, load_claims
from lit_byz.report.paper.experiment import Experiment, catalogue, find
from lit_byz.report.paper.page import Page
from lit_byz.report.paper.render import Part, render, render_labels
from lit_byz.report.paper.survey import SMOKE, Survey, survey
from lit_byz.tracking.evaluations import ACCURACY, DIVERGED
from lit_byz.tracking.glances import glances
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import PlannedRun
from lit_byz.tracking.store import IDENTITY, MACHINE

WIDTH = 170
COMMIT = "mlflow.source.git.commit"


def show_list(
    ledger: Ledger, words: Sequence[str], settings: Sequence[str], options: argparse.Namespace
) -> int:
    """Print the catalogue: what is done, what is left, and how long that takes."""
    chosen = [find(word, settings) for word in words] or catalogue(settings)
    points = [point for experiment in chosen for point in experiment.points]
    outcomes, metrics = ledger.known({point.identity for point in points})
    tracked = listing.speeds_in(ledger), listing.beside_in(ledger, points)
    made = listing.listed(chosen, outcomes, metrics, *tracked)
    if options.json:
        rows = [
            {"experiment": e.name, "paper": e.place, **_plain(tally)} for e, tally in made.entries
        ]
        write_json({"experiments": rows, **_plain(made.all)})
        return 0
    console = _console()
    console.print(listing.table(made).for_terminal())
    times = {tally.times for _, tally in made.entries}
    if times & {listing.PARTLY, listing.COMPUTED}:
        line = "computed: from the operations of a step; no run of that model was timed here"
        console.print(line, highlight=False)
    if listing.STEPS in times:
        line = "steps measured: evaluations come on top; this machine has tracked no such run"
        console.print(line, highlight=False)
    for line in (
        "compute one:  python pipelines/sweep.py experiment=paper/fig1a",
        "draw one:     python pipelines/report.py paper/fig1a",
    ):
        console.print(here(line), highlight=False, soft_wrap=True)
    return 0


def _plain(tally: listing.Tally) -> dict[str, Any]:
    """For JSON."""
    return {
        **{"runs": tally.runs, "done": tally.done, "failed": tally.failed},
        **{"core_hours_left": tally.seconds / 3600, "times": tally.times},
    }


def show(
    ledger: Ledger, words: Sequence[str], settings: Sequence[str], options: argparse.Namespace
) -> int:
    """Draw experiments and hold them against the paper's claims; several make one page."""
    formats = _formats(options.formats)
    everything = "paper" in words
    chosen = catalogue(settings) if everything else [find(word, settings) for word in words]
    surveys = _surveys(ledger, chosen)
    folder = Path(options.out or OUTPUTS) / "paper"
    judged = scorecard.judge(_claims(settings), surveys)
    parts: list[Part] = []
    for experiment in chosen:
        if experiment.kind == "labels" and not everything:
            parts.append(render_labels(experiment, folder / experiment.short, formats))
        elif experiment.name in surveys and (surveys[experiment.name].begun or not everything):
            found = surveys[experiment.name]
            parts.append(render(found, folder / experiment.short, formats))
    files = [path for part in parts for path in part.files]
    if everything or len(chosen) > 1:
        drawn = {part.experiment.name for part in parts}
        without = [experiment for experiment in chosen if experiment.name not in drawn]
        page = Page(_origin(ledger, surveys), judged, parts, without)
        folder.mkdir(parents=True, exist_ok=True)
        page.write_html(folder / "index.html")
        page.write_markdown(folder / "README.md")
        (folder / "scorecard.tex").write_text(scorecard.table(judged).latex(), encoding="utf-8")
        files += [folder / name for name in ("index.html", "README.md", "scorecard.tex")]
    if options.json:
        content = [judgement.plain for judgement in judged]
        write_json({"claims": content, "files": [str(path) for path in files]})
        return 0
    _print(chosen, parts, judged, files)
    return 0


def _formats(text: str) -> list[str]:
    chosen = [word for word in text.split(",") if word]
    for word in chosen:
        if word not in FORMATS:
            raise BadRequest(f"--formats {text}: unknown format '{word}': {nearest(word, FORMATS)}")
    return ["png", *(word for word in chosen if word != "png")]


def _claims(settings: Sequence[str]) -> list[Claim]:
    """None where more than the seeds is changed: the paper does not speak of such runs."""
    return load_claims() if all(word.startswith("seed=") for word in settings) else []


def _surveys(ledger: Ledger, chosen: Sequence[Experiment]) -> dict[str, Survey]:
    trained = [experiment for experiment in chosen if experiment.points]
    wanted = {point.identity for experiment in trained for point in experiment.points}
    outcomes, metrics = ledger.known(wanted)
    return {e.name: survey(e, outcomes, metrics, ledger.store.history) for e in trained}


def _origin(ledger: Ledger, surveys: Mapping[str, Survey]) -> list[str]:
    """Where the numbers come from: runs, hours, code, machines."""
    done = {
        outcome.identity: (str(outcome.run_id), _steps_done(found, run, outcome))
        for found in surveys.values()
        for cell in found.cells
        for run in cell.result.record.runs
        if (outcome := cell.result.outcome(run)) is not None and outcome.complete
    }
    ids = dict(done.values())
    place, named = (ledger.store, ledger.experiment_id), (MACHINE, COMMIT)
    every = glances(*place, IDENTITY, done, tags=named, metrics=[listing.SPEED])
    runs = [run for run in every if run.run_id in ids]
    speeds = {run.run_id: run.metrics.get(listing.SPEED) for run in runs}
    hours = sum(ids[i] / speed for i, speed in speeds.items() if speed) / 3600
    machines = Counter(run.tags.get(MACHINE, "unknown machine") for run in runs)
    codes = Counter(run.tags.get(COMMIT, "?")[:12] for run in runs)
    steps = statistics.median(ids.values()) if ids else 0
    smoke = any(found.experiment.smoke for found in surveys.values())
    return [
        *([f"{SMOKE[0].upper()}{SMOKE[1:]}."] if smoke else []),
        f"{len(ids)} finished runs, mostly of {steps:g} steps, {hours:.1f} hours of one core.",
        "Commits: " + ", ".join(f"{code} ({n})" for code, n in codes.most_common()) + ".",
        "Machines: "
        + "; ".join(f"{name} ({counted(n, 'run')})" for name, n in machines.most_common())
        + ".",
    ]


def _steps_done(found: Survey, run: PlannedRun, outcome: Outcome) -> int:
    """Of a run that diverged, up to its last evaluation, which was made there."""
    if outcome.status != DIVERGED:
        return run.steps
    return found.history(str(outcome.run_id), ACCURACY)[-1][0] + 1


def _console() -> Console:
    """Wide enough for a table where nobody's window says how wide it is."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def _print(
    chosen: Sequence[Experiment],
    parts: Sequence[Part],
    judged: Sequence[scorecard.Judged],
    files: Sequence[Path],
) -> None:
    console = _console()
    for part in parts if len(chosen) == 1 else ():
        for table in part.tables:
            console.print(table.for_terminal())
    for experiment in chosen:
        if experiment.kind == "runtime":
            line = f"{experiment.place}: timed, not trained: {experiment.command}"
            console.print(line, highlight=False, soft_wrap=True)
    if judged:
        console.print(scorecard.table(judged, undecided=len(chosen) == 1).for_terminal())
        console.print(scorecard.summary(judged), highlight=False)
    for path in files:
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)
    if not parts:
        line = "no runs yet; python pipelines/report.py list says how to compute them"
        console.print(here(line), highlight=False, soft_wrap=True)
