"""What a cell's own run says of it in the store: its numbers, its tags, and how it ended."""

from lit_byz._counted import counted
from lit_byz.tracking.evaluations import LAST_FEW
from lit_byz.tracking.glances import Glance, glance_at, glances
from lit_byz.tracking.records import RECORD, CellResult, StudyResult, as_tags
from lit_byz.tracking.store import PARENT, Store
from lit_byz.tracking.worst_case import WorstCase

# What the worst case of a cell is, in words.
WORST_CASE = "lit_byz.worst_case"
# How a trial of a tuning study stands.
TRIAL_STATE = "lit_byz.trial_state"
# What the measures of a run's end are called in MLflow.
NAMES = {"last_accuracy": "last_accuracy", "mean_last": f"mean_last_{LAST_FEW}"}
# All that is written of a cell while its runs come in.
TAGS = (WORST_CASE, TRIAL_STATE, f"{RECORD}.*")
METRICS = ("worst_case/*", "val/worst_case/*")


def stands(cell: CellResult, seen: Glance) -> bool:
    """Whether a cell's run says already what it has to say in the end."""
    tags, metrics = tags_of(cell), metrics_of(cell)
    return (
        seen.status == ended(cell)
        and all(seen.tags.get(key) == value for key, value in tags.items())
        and all(seen.metrics.get(key) == value for key, value in metrics.items())
    )


def correct(store: Store, result: StudyResult) -> None:
    """Let cells that were finished say so no longer, where runs of theirs were deleted since.

    Their metrics cannot be taken back.
    """
    study = glance_at(store, result.run_id)
    place = "" if study is None else study.experiment_id
    there = glances(store, place, PARENT, [result.run_id], tags=[WORST_CASE])
    seen = {each.run_id: each for each in there if each.status == "FINISHED"}
    for cell in result.cells:
        known = seen.get(str(cell.run_id))
        if known is not None and known.tags.get(WORST_CASE) != in_words(cell):
            store.write_tags(known.run_id, {WORST_CASE: in_words(cell)})
            store.client.set_terminated(known.run_id, ended(cell))


def tags_of(cell: CellResult) -> dict[str, str]:
    """A cell's record, and what is known of its worst case in words."""
    tags = {WORST_CASE: in_words(cell), **as_tags(cell.record)}
    if "state" in cell.facts:
        tags[TRIAL_STATE] = str(cell.facts["state"])
    return tags


def metrics_of(cell: CellResult) -> dict[str, float]:
    """A cell's numbers; where another accuracy counts than that on the test images, so named."""
    metrics = _on_any_images(cell, cell.worst_case)
    if cell.judged_on == "test":
        return metrics
    return {f"{cell.judged_on}/{name}": value for name, value in metrics.items()}


def _on_any_images(cell: CellResult, found: WorstCase) -> dict[str, float]:
    metrics = {"worst_case/failed": float(len(cell.failed))}
    metrics["worst_case/missing"] = float(len(cell.missing))
    metrics["worst_case/runs"] = float(found.known)
    if found.exact:
        metrics["worst_case/max_accuracy"] = found.mean
        metrics |= _spread("max_accuracy", found)
        metrics |= _of_the_end(cell)
    if found.kind != "unknown":
        # A bound of before, while runs were missing, cannot be taken back: both ends follow.
        if found.exact or found.at_least > 0:
            metrics["worst_case/at_least"] = found.at_least
        if found.exact or found.at_most < 1:  # more than that no accuracy is
            metrics["worst_case/at_most"] = found.at_most
        known = {seed: low for seed, (low, high) in found.bounds.items() if low == high}
        metrics |= {f"worst_case/seed_{seed}": value for seed, value in known.items()}
    return metrics


def _of_the_end(cell: CellResult) -> dict[str, float]:
    """The worst cases of the runs' ends, where every run has one."""
    metrics = {}
    for measure, name in NAMES.items():
        found = cell.worst_cases[measure]
        if found.exact:
            metrics[f"worst_case/{name}"] = found.mean
            metrics |= _spread(name, found)
    return metrics


def _spread(name: str, found: WorstCase) -> dict[str, float]:
    return {} if found.std is None else {f"worst_case/{name}_std": found.std}


def in_words(cell: CellResult) -> str:
    """What is known of a cell's worst case, and why it is not known better."""
    found = cell.worst_case
    words = found.kind if found.kind in ("exact", "unknown") else f"{found.kind} {found.mean:.4f}"
    reasons = [f"{run.attack}, seed {run.seed} failed" for run in cell.failed]
    if cell.missing:
        left_out = "not needed" if cell.facts.get("decided") else "missing"
        reasons.append(f"{counted(len(cell.missing), 'run')} {left_out}")
    if found.kind == "at least":
        reasons.append("runs were stopped early")
    return f"{words}: {'; '.join(reasons)}" if reasons else words


def ended(cell: CellResult) -> str:
    """A cell's status in MLflow: FINISHED only where no run that it needs failed or is missing."""
    if cell.failed and not cell.worst_case.exact:
        return "FAILED"
    return "KILLED" if cell.missing and not cell.facts.get("decided") else "FINISHED"
