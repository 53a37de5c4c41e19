"""A study as pandas tables: its answer, its cells, and the runs below them."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from lit_byz.report.breakdown import answer
from lit_byz.report.initial_gradients import columns_of, norms_by_cell, norms_of_run
from lit_byz.report.rendering import images_of
from lit_byz.tracking.cells import NAMES as ENDS
from lit_byz.tracking.records import CellResult, PlannedRun, StudyResult

if TYPE_CHECKING:
    from lit_byz.tracking.outcome import Outcome

# The values of the axes by which the cells of a study differ, by the cell's name.
Axes = Mapping[str, Mapping[str, Any]]
# More columns of a cell, by its name.
Beside = Mapping[str, Mapping[str, float]]
# What went wrong, by the identity of a run.
Errors = Mapping[str, str]
# Facts of a cell that say where it stands in its study, and the columns that they make.
FACTS = {"trial": "trial", "state": "state", "arm": "arm", "f": "f", "method": "method"}
FACTS |= {"scale": "scale", "assumed": "declared_f"}


class StudyFrame(pd.DataFrame):
    """A study's main table, a DataFrame, with more of the study beside it.

    ``cells`` has a row for every cell, ``runs`` one for every run that was planned, whatever became
    of it, and ``run_id`` names the study in the store. What is made of this table by pandas is a
    plain DataFrame.
    """

    # What pandas keeps of an object of this class beside its columns.
    _metadata: ClassVar[list[str]] = ["cells", "runs", "run_id"]

    cells: pd.DataFrame
    runs: pd.DataFrame
    run_id: str

    @classmethod
    def of(cls, result: StudyResult, axes: Axes, errors: Errors) -> "StudyFrame":
        """The tables of a study as the store has it; ``errors`` of runs that it does not have."""
        cells = cells_of(result.cells, axes, _beside(result))
        made = cls(_main(result, axes))
        made.cells, made.runs, made.run_id = cells, runs_of(result, errors), result.run_id
        return made


def _main(result: StudyResult, axes: Axes) -> pd.DataFrame:
    """What a study was made to find out: of a search for breakdown points, an answer per arm."""
    facts = result.record.facts
    if result.record.kind == "breakdown":
        rows = [
            {
                **_axes_of_arm(name, result, axes),
                "arm": name,
                "breakdown_f": found["breakdown"],
                "decided": found["decided"],
                "answer": answer(found["breakdown"], found["decided"], facts["most"]),
                "max_f": facts["most"],
                "threshold": facts["threshold"],
            }
            for name, found in facts["arms"].items()
        ]
        return pd.DataFrame(rows).astype({"breakdown_f": "Int64"})
    kinds = ("trial", "cell") if result.record.kind == "tuning" else ("cell",)
    cells = [cell for kind in kinds for cell in result.of_kind(kind)]
    return cells_of(cells, axes, _beside(result))


def _beside(result: StudyResult) -> Beside:
    """What a kind of study knows of its cells beside their worst cases."""
    if result.record.kind != "init_scaling":
        return {}
    norms = norms_by_cell(result)
    return {cell.name: columns_of(norms.get(cell.name)) for cell in result.cells}


def _axes_of_arm(name: str, result: StudyResult, axes: Axes) -> dict[str, Any]:
    cells = (cell for cell in result.of_kind("cell") if cell.facts["arm"] == name)
    found = next(cells, None)
    values = {} if found is None else axes.get(found.name, {})
    return {key: value for key, value in values.items() if key != "workers.f"}


def cells_of(cells: Sequence[CellResult], axes: Axes, beside: Beside) -> pd.DataFrame:
    """A row per cell: where it stands in the study, and what is known of its worst case.

    ``worst_case`` is there only where it is exactly known; ``at_least`` and ``at_most`` always are,
    and ``status`` says which of them means something: exact, at least, at most or unknown.
    ``last_accuracy`` and ``mean_last_5`` are worst cases by the same rules, of the runs' ends.
    """
    rows = [_cell(c, axes.get(c.name, {}), beside.get(c.name, {})) for c in cells]
    made = pd.DataFrame(rows)
    return made.astype({"trial": "Int64"}) if "trial" in made else made


def _cell(cell: CellResult, axes: Mapping[str, Any], beside: Mapping[str, float]) -> dict[str, Any]:
    found = cell.worst_case
    place = {column: cell.facts[key] for key, column in FACTS.items() if key in cell.facts}
    row: dict[str, Any] = {"cell": cell.name, **place, **cell.facts.get("params", {}), **axes}
    row |= {
        "worst_case": found.mean if found.exact else float("nan"),
        "std": float("nan") if found.std is None else found.std,
        "at_least": found.at_least,
        "at_most": found.at_most,
        "status": found.kind,
        "weakest_attack": _weakest(cell),
        **_ends(cell),
        **beside,
        "seeds": found.seeds,
        "planned": len(cell.record.runs),
        "failed": len(cell.failed),
        "missing": len(cell.missing),
    }
    row["judged_on"] = images_of(cell.judged_on)
    if cell.judged_on != "test":
        tested = cell.tested
        row["tested"] = tested.mean if tested.exact else float("nan")
    return {**row, "cell_run_id": cell.run_id}


def _ends(cell: CellResult) -> dict[str, float]:
    """The worst cases of what the runs ended with: what they are, or are at most."""
    row: dict[str, float] = {}
    for measure, name in ENDS.items():
        found = cell.worst_cases[measure]
        row[name] = found.mean if found.exact else float("nan")
        row[f"{name}_std"] = float("nan") if found.std is None else found.std
        row[f"{name}_at_most"] = found.at_most
    return row


def _weakest(cell: CellResult) -> str | None:
    """The attack with the smallest mean over the seeds; None while it could still be another."""
    if not cell.worst_case.exact:
        return None
    by_attack = {attack: _limits(cell, attack) for attack in cell.attacks}
    weakest = min(by_attack, key=lambda attack: by_attack[attack][1])
    _, high = by_attack.pop(weakest)
    return weakest if all(high <= low for low, _ in by_attack.values()) else None


def _limits(cell: CellResult, attack: str) -> tuple[float, float]:
    """Between which values the mean over the seeds lies under an attack."""
    known = [runs[attack] for runs in cell.known.values() if attack in runs]
    lows = [0.0 if accuracy is None else accuracy.value for accuracy in known]
    highs = [1.0 if a is None or a.lower_bound else a.value for a in known]
    return fmean(lows), fmean(highs)


def runs_of(result: StudyResult, errors: Errors) -> pd.DataFrame:
    """A row per planned run of every cell, also of those that failed or were never computed.

    ``max_accuracy``, ``last_accuracy`` and ``mean_last_5`` are on the images that ``judged_on``
    names, ``accuracy`` is the last one on the test images.
    A run that failed before it was opened in the store is missing, with what ``errors`` says of it.
    """
    runs = ((cell, run) for cell in result.cells for run in cell.record.runs)
    norms = result.record.kind == "init_scaling"
    return pd.DataFrame([_run(cell, run, errors.get(run.identity), norms) for cell, run in runs])


def _run(cell: CellResult, run: PlannedRun, error: str | None, with_norms: bool) -> dict[str, Any]:
    outcome = cell.outcome(run)
    accuracy = None if outcome is None else outcome.accuracy
    metrics = cell.metrics.get(run.identity, {})
    # What a run had reached that failed or was stopped is no result of so many steps.
    complete = outcome is not None and outcome.complete
    found = {m: None if outcome is None else outcome.measured(m) for m in ENDS}
    ends = {ENDS[m]: float("nan") if end is None else end.value for m, end in found.items()}
    return {
        "cell": cell.name,
        "attack": run.attack,
        "seed": run.seed,
        "status": _status(cell, outcome),
        "judged_on": images_of(cell.judged_on),
        "max_accuracy": float("nan") if accuracy is None else accuracy.value,
        "lower_bound": accuracy is not None and accuracy.lower_bound,
        "accuracy": metrics.get("test/accuracy", float("nan")) if complete else float("nan"),
        **ends,
        **(columns_of(norms_of_run(cell, run)) if with_norms else {}),
        "steps": run.steps,
        "error": error if outcome is None else outcome.error,
        "run_id": None if outcome is None else outcome.run_id,
    }


def _status(cell: CellResult, outcome: "Outcome | None") -> str:
    if outcome is not None:
        return outcome.status
    pruned = cell.facts.get("state") == "pruned"
    return "not needed" if cell.facts.get("decided") or pruned else "missing"
