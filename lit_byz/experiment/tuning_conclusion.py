"""The end of a tuning study: its table, figures and files, and what to do next."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lit_byz.experiment.conclusion import accuracies
from lit_byz.experiment.record import label
from lit_byz.experiment.search_space import Range
from lit_byz.experiment.study import exit_code, keep, problems, tell_problems, write_json
from lit_byz.experiment.trial_book import RUN_ID, RUNS, RUNS_PRUNED
from lit_byz.experiment.tuning import Tuning
from lit_byz.report.tuning import (
    Comparison,
    Cost,
    StudyResult,
    TrialResult,
    as_csv,
    curve_figure,
    history_figure,
    table,
    verdict,
)
from lit_byz.report.worst_case_table import Accuracy

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

NEXT = "python pipelines/tune.py experiment=tune_mnist"
STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


def study_result(tuning: Tuning) -> StudyResult:
    """A study as it stands, with the trials of all processes."""
    example = tuning.problem.reference()
    config = example[0].config
    cell = label(config).split(", clip ")[0]
    trials = tuning.book.trials()
    found = accuracies(tuning)
    log = {k for k, part in tuning.problem.space.items() if isinstance(part, Range) and part.log}
    return StudyResult(
        title=f"{len(trials)} trials on {cell}",
        keys=list(tuning.problem.space),
        attacks=list(dict.fromkeys(point.attack for point in example)),
        trials=[_trial(trial) for trial in trials],
        comparisons=[
            Comparison(name, found[name]) for name in tuning.problem.compare if name in found
        ],
        cost=_cost(tuning),
        log=frozenset(log),
    )


def conclude(tuning: Tuning, folder: str, *, as_json: bool = False) -> int:
    """Show and keep a study's results; returns the exit code."""
    study = study_result(tuning)
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / name for name in ("tuning_history.png", "tuning_curve.png", "tuning.csv")]
    history, curve, numbers = paths
    history_figure(study, history)
    curve_figure(study, curve)
    numbers.write_text(as_csv(study))
    _keep(tuning, study, paths)
    failed = tuning.book.failed()
    code = exit_code(tuning) or int(bool(failed))
    if as_json:
        write_json(_plain(tuning, study, code))
        return code
    console = Console()
    console.print(table(study))
    for line in verdict(study):
        console.print(line, highlight=False, soft_wrap=True)
    tell_problems(tuning, console)
    running = [trial.number for trial in study.trials if trial.state == "running"]
    if running and not (tuning.stopping or tuning.missing):
        console.print(f"{len(running)} trials are still computed by other processes")
    if failed:
        console.print(f"{len(failed)} trials failed: --retry-failed tries them again")
    files = f"figures {curve} and {history}, numbers {numbers}"
    console.print(files, highlight=False, soft_wrap=True)
    console.print(f"see the trials: {tuning.store.ui_command}", highlight=False, soft_wrap=True)
    console.print(f"the same on MNIST: {NEXT} --dry-run", highlight=False, soft_wrap=True)
    return code


def _trial(trial: "FrozenTrial") -> TrialResult:
    runs: dict[str, dict[int, Accuracy]] = {}
    for run in trial.user_attrs.get(RUNS, {}).values():
        if run["status"] in ("finished", "diverged", "bounded"):
            accuracy = Accuracy(run["max_accuracy"], run["status"] == "bounded")
            runs.setdefault(run["attack"], {})[run["seed"]] = accuracy
    return TrialResult(
        number=trial.number,
        params=trial.params,
        state=STATES.get(trial.state.name, "running"),
        value=trial.value,
        runs=runs,
        pruned_runs=int(trial.user_attrs.get(RUNS_PRUNED, 0)),
    )


def _cost(tuning: Tuning) -> Cost:
    """Of the trials that have ended; their runs add up what they took in every process."""
    ended = [trial for trial in tuning.book.trials() if trial.state.is_finished()]
    runs = [run for trial in ended for run in trial.user_attrs.get(RUNS, {}).values()]
    example = tuning.problem.reference()
    steps = sum(int(point.config.train.steps) for point in example)
    each = steps // len(example)
    pruned = sum(int(trial.user_attrs.get(RUNS_PRUNED, 0)) for trial in ended)
    done = [run for run in runs if run["status"] != "interrupted"]
    bounded = [run for run in done if run["status"] == "bounded"]
    return Cost(
        runs=len(ended) * len(example),
        computed=sum(run["computed"] for run in done),
        found=sum(not run["computed"] for run in done),
        bounded=len(bounded),
        pruned=pruned,
        steps=len(ended) * steps,
        steps_saved=pruned * each + sum(max(0, each - run["steps"]) for run in bounded),
        seconds=sum(run["seconds"] for run in runs),
    )


def _keep(tuning: Tuning, study: StudyResult, paths: list[Path]) -> None:
    """Files and results on the study's own run."""
    metrics = {
        "tuning/runs_computed": study.cost.computed,
        "tuning/runs_pruned": study.cost.pruned,
        "tuning/seconds": study.cost.seconds,
    }
    for comparison in study.comparisons:
        if comparison.value is not None:
            metrics[f"worst_case/{comparison.name}"] = comparison.value
    if study.best is not None and study.best.value is not None:
        metrics["worst_case/best_trial"] = study.best.value
        for key, value in study.best.params.items():
            tuning.store.client.set_tag(str(tuning.run_id), f"lit_byz.best.{key}", value)
    with TemporaryDirectory() as folder:
        text = Path(folder) / "tuning.txt"
        with text.open("w") as file:
            console = Console(file=file, width=200)
            console.print(table(study))
            for line in verdict(study):
                console.print(line, highlight=False)
        keep(tuning, [*paths, text], metrics)


def _plain(tuning: Tuning, study: StudyResult, code: int) -> dict[str, Any]:
    attributes = {trial.number: trial.user_attrs for trial in tuning.book.trials()}

    def row(trial: TrialResult | None) -> dict[str, Any] | None:
        if trial is None:
            return None
        own: Mapping[str, Any] = attributes.get(trial.number, {})
        return {
            "trial": trial.number,
            "params": dict(trial.params),
            "state": trial.state,
            "worst_case": trial.value,
            "upper_bound": trial.state == "pruned",
            "runs_pruned": trial.pruned_runs,
            "mlflow_run_id": own.get(RUN_ID),
            "runs": own.get(RUNS, {}),
        }

    return {
        "study": tuning.book.study.study_name,
        "mlflow_run_id": tuning.run_id,
        "best": row(study.best),
        "worst": row(study.worst),
        "comparisons": {comparison.name: comparison.value for comparison in study.comparisons},
        "trials": [row(trial) for trial in study.trials],
        "cost": asdict(study.cost),
        **problems(tuning),
        "exit_code": code,
    }
