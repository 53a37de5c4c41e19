"""The ledger: the one writer and the one reader of studies, cells and worst cases.

In the store a study is a run, its cells are children of it, and the runs of a cell lie below the
cell that computed them first. A cell's record names its runs by identity, so that a run which
another study has computed counts like one of its own.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.config.grid import Point
from lit_byz.errors import BadRequest
from lit_byz.tracking.lookup import Found, found_of, outcome_of
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import (
    CellRecord,
    CellResult,
    StudyRecord,
    StudyResult,
    as_tags,
    read_cell,
    read_study,
)
from lit_byz.tracking.store import (
    CODE,
    IDENTITY,
    KIND,
    PARENT,
    SETTINGS,
    Store,
    claim_on,
    open_store,
)
from lit_byz.tracking.worst_case import WorstCase

if TYPE_CHECKING:
    from mlflow.entities import Run

# More runs than these are looked up in one reading of the whole store.
MANY = 20
KINDS = ("sweep", "tuning", "init_scaling", "breakdown", "misspecified")
# What the worst case of a cell is, in words.
WORST_CASE = "lit_byz.worst_case"
# How a trial of a tuning study stands.
TRIAL_STATE = "lit_byz.trial_state"


@dataclass
class Ledger:
    """The studies of one experiment of a store."""

    store: Store
    experiment_id: str
    study_id: str | None = None
    _study: StudyRecord | None = None
    _cells: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, tracking: Mapping[str, Any]) -> "Ledger":
        """The ledger of the store and experiment that the section ``tracking`` names."""
        if not tracking["enabled"]:
            raise BadRequest("tracking.enabled = False: a study keeps its runs in the store")
        store = open_store(tracking["uri"])
        return cls(store, store.experiment(tracking["experiment"]))

    def look_up(self, points: Sequence[Point]) -> dict[str, Found]:
        """What is known of runs, by identity. A failure in another environment does not count."""
        runs: dict[str, list[Run]] = defaultdict(list)
        if len(points) > MANY:
            every = self.store.search(self.experiment_id, f"tags.`{KIND}` = 'run'")
            for run in every:
                runs[run.data.tags.get(SETTINGS, "")].append(run)
        else:
            for point in points:
                query = f"tags.`{SETTINGS}` = '{point.code.settings}'"
                runs[point.code.settings] = self.store.search(self.experiment_id, query)
        return {p.identity: found_of(p, runs.get(p.code.settings, [])) for p in points}

    def open_study(self, record: StudyRecord) -> str:
        """The study's own run, taken up again if it is there."""
        self._study = record
        self.study_id = self._parent(record.key, record.kind, record.name, {})
        self.store.write_tags(self.study_id, as_tags(record))
        return self.study_id

    def earlier(self, key: str) -> StudyRecord | None:
        """The record of the same study, if it was opened before."""
        known = self.store.find(self.experiment_id, key)
        return read_study(known[0].data.tags) if known else None

    def amend(self, run_id: str, record: StudyRecord) -> None:
        """Write a study's record anew."""
        self.store.write_tags(run_id, as_tags(record))

    def open_cell(self, record: CellRecord, example: Point) -> str:
        """A cell's own run, taken up again if it is there, with the cell's settings as params."""
        if record.name not in self._cells:
            assert self._study is not None
            key = hashlib.sha256(f"{self._study.key} {record.name}".encode()).hexdigest()
            above = {PARENT: str(self.study_id), CODE: example.code.code}
            run_id = self._parent(key, record.kind, record.name or "one cell", above, example)
            self._cells[record.name] = run_id
            self.store.write_tags(run_id, as_tags(record))
        return self._cells[record.name]

    def write_cell(
        self, record: CellRecord, outcomes: Mapping[str, Outcome], *, last: bool = False
    ) -> None:
        """Write what is known of a cell's worst case; at the ``last`` writing, how the cell ended.

        Only an exact worst case is called so. A cell of which a run failed, is missing or was
        stopped early has a bound instead, and says why.
        """
        run_id = self._cells[record.name]
        cell = CellResult(record, outcomes)
        found = cell.worst_case
        self.store.write_metrics(run_id, _metrics(cell, found))
        tags = {WORST_CASE: in_words(cell), **as_tags(record)}
        if "state" in record.facts:
            tags[TRIAL_STATE] = str(record.facts["state"])
        self.store.write_tags(run_id, tags)
        if last or found.exact:
            self.store.client.set_terminated(run_id, _ended(cell))

    def close_study(self, record: StudyRecord, *, complete: bool, failed: bool) -> None:
        """Say how the study ended, with what it has found out since it was opened."""
        run_id = str(self.study_id)
        self._study = record
        self.store.write_tags(run_id, as_tags(record))
        status = "FINISHED" if complete and not failed else "FAILED" if complete else "KILLED"
        self.store.client.set_terminated(run_id, status)

    def keep(
        self,
        run_id: str,
        paths: Sequence[Path],
        metrics: Mapping[str, float],
        tags: Mapping[str, str],
    ) -> None:
        """Files and numbers on a study's own run."""
        for path in paths:
            self.store.client.log_artifact(run_id, str(path))
        self.store.write_metrics(run_id, {metric_name(k): v for k, v in metrics.items()})
        self.store.write_tags(run_id, tags)

    def newest(self) -> str:
        """The study that was worked on last."""
        queries = [f"tags.`{KIND}` = '{kind}'" for kind in KINDS]
        every = [run for query in queries for run in self.store.search(self.experiment_id, query)]
        if not every:
            raise BadRequest(
                "there is no sweep and no study yet; python pipelines/sweep.py makes one"
            )
        last = max(every, key=lambda run: max(run.info.start_time, run.info.end_time or 0))
        return str(last.info.run_id)

    def result(self, run_id: str) -> StudyResult:
        """A study as the store has it now, whoever computed it."""
        run = self.store.run(run_id)
        study = None if run is None else read_study(run.data.tags)
        if run is None or study is None:
            raise BadRequest(f"run {run_id}: is no sweep and no study of this store")
        children = self.store.children(run.info.experiment_id, run_id)
        cells = [(r, record) for r in children if (record := read_cell(r.data.tags)) is not None]
        cells.sort(key=lambda pair: pair[1].facts.get("place", 0))
        wanted = {planned.identity for _, record in cells for planned in record.runs}
        outcomes, metrics = self.known(wanted, str(run.info.experiment_id))
        made = [CellResult(r, outcomes, str(child.info.run_id), metrics) for child, r in cells]
        return StudyResult(study, made, run_id)

    def known(
        self, wanted: set[str], experiment_id: str | None = None
    ) -> tuple[dict[str, Outcome], dict[str, Mapping[str, float]]]:
        """How runs ended, and the last value of each of their metrics, by identity."""
        runs = self._runs(experiment_id or self.experiment_id, wanted)
        found = {identity: outcome_of(identity, attempts) for identity, attempts in runs.items()}
        outcomes = {identity: outcome for identity, outcome in found.items() if outcome is not None}
        by_id = {str(r.info.run_id): r.data.metrics for attempts in runs.values() for r in attempts}
        return outcomes, {i: by_id[str(o.run_id)] for i, o in outcomes.items()}

    def _runs(self, experiment_id: str, wanted: set[str]) -> "dict[str, list[Run]]":
        """All attempts at some runs, by identity."""
        if len(wanted) > MANY:
            runs = self.store.search(experiment_id, f"tags.`{KIND}` = 'run'")
        else:
            runs = [run for identity in wanted for run in self.store.find(experiment_id, identity)]
        found: dict[str, list[Run]] = defaultdict(list)
        for run in runs:
            if run.data.tags.get(IDENTITY) in wanted:
                found[run.data.tags[IDENTITY]].append(run)
        return found

    def end_killed(self, point: Point, run_ids: Sequence[str]) -> None:
        """End runs that were killed and that nobody will go on with."""
        give_back = self.store.claim(claim_on(point.identity)) if run_ids else None
        if give_back is None:
            return  # there is none, or another process is at it
        try:
            for run_id in run_ids:
                if self.store.client.get_run(run_id).info.status == "RUNNING":
                    self.store.client.set_terminated(run_id, "KILLED")
        finally:
            give_back()

    def _parent(
        self, key: str, kind: str, name: str, tags: dict[str, str], example: Point | None = None
    ) -> str:
        """The run that others lie below: the one that is there, else a new one.

        With an ``example`` of a cell's points it gets the cell's settings.
        """
        # A study that starts at the same moment makes no second one.
        with self.store.alone(claim_on(key)):
            known = self.store.find(self.experiment_id, key)
            if known:
                run_id = str(known[0].info.run_id)
                self.store.client.update_run(run_id, status="RUNNING")
            else:
                created = self.store.client.create_run(
                    self.experiment_id,
                    start_time=int(time.time() * 1000),
                    tags={IDENTITY: key, KIND: kind, **tags},
                    run_name=name,
                )
                run_id = str(created.info.run_id)
            if example is not None:
                plain = {k: v for k, v in example.plain.items() if k not in ("attack", "seed")}
                self.store.write_params(run_id, {**plain, CODE: example.code.code})
            return run_id


def _metrics(cell: CellResult, found: WorstCase) -> dict[str, float]:
    """A cell's numbers; where another accuracy counts than that on the test images, so named."""
    metrics = _on_any_images(cell, found)
    if cell.judged_on == "test":
        return metrics
    return {f"{cell.judged_on}/{name}": value for name, value in metrics.items()}


def _on_any_images(cell: CellResult, found: WorstCase) -> dict[str, float]:
    metrics = {"worst_case/failed": float(len(cell.failed))}
    metrics["worst_case/missing"] = float(len(cell.missing))
    metrics["worst_case/runs"] = float(found.known)
    if found.exact:
        metrics["worst_case/max_accuracy"] = found.mean
        metrics["worst_case/max_accuracy_std"] = found.std
        # A bound of before, while runs were missing, cannot be taken back: both ends follow.
        metrics |= {"worst_case/at_least": found.mean, "worst_case/at_most": found.mean}
        metrics |= {f"worst_case/seed_{seed}": low for seed, (low, _) in found.bounds.items()}
    elif found.kind != "unknown":
        metrics[f"worst_case/{found.kind.replace(' ', '_')}"] = found.mean
    return metrics


def in_words(cell: CellResult) -> str:
    """What is known of a cell's worst case, and why it is not known better."""
    found = cell.worst_case
    words = found.kind if found.kind in ("exact", "unknown") else f"{found.kind} {found.mean:.4f}"
    reasons = [f"{run.attack}, seed {run.seed} failed" for run in cell.failed]
    if cell.missing:
        left_out = "not needed" if cell.facts.get("decided") else "missing"
        reasons.append(f"{len(cell.missing)} runs {left_out}")
    if found.kind == "at least":
        reasons.append("runs were stopped early")
    return f"{words}: {'; '.join(reasons)}" if reasons else words


def _ended(cell: CellResult) -> str:
    """A cell's status in MLflow: FINISHED only where no run that it needs failed or is missing."""
    if cell.failed and not cell.worst_case.exact:
        return "FAILED"
    return "KILLED" if cell.missing and not cell.facts.get("decided") else "FINISHED"


def metric_name(text: str) -> str:
    """A name in the characters that MLflow allows."""
    allowed = set(" -_./")
    return "".join(c if c.isalnum() or c in allowed else "_" for c in text)[:200]
