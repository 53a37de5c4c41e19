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
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from lit_byz._door import here
from lit_byz.config.grid import Point
from lit_byz.config.grid_source import shared_settings
from lit_byz.errors import BadRequest
from lit_byz.tracking import cells
from lit_byz.tracking.evaluations import add_means
from lit_byz.tracking.glances import Glance, glance_at, glances
from lit_byz.tracking.lookup import ACCURACIES, TAGS, Found, found_of, outcome_of
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import (
    RECORD,
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

KINDS = ("sweep", "tuning", "init_scaling", "breakdown", "misspecified")
# The last values that reports show of runs.
SHOWN = ("honest/max_norm", "honest/average_norm", "speed/steps_per_second")


@dataclass
class Ledger:
    """The studies of one experiment of a store."""

    store: Store
    experiment_id: str
    study_id: str | None = None
    _study: StudyRecord | None = None
    _cells: dict[str, str] = field(default_factory=dict)
    # A study that says all it has to is not touched until something new is known of it.
    _rests: bool = False

    @classmethod
    def of(cls, tracking: Mapping[str, Any]) -> "Ledger":
        """The ledger of the store and experiment that the section ``tracking`` names."""
        if not tracking["enabled"]:
            raise BadRequest("tracking.enabled = False: a study keeps its runs in the store")
        store = open_store(tracking["uri"], tracking.get("patience"))
        return cls(store, store.experiment(tracking["experiment"]))

    def look_up(self, points: Sequence[Point]) -> dict[str, Found]:
        """What is known of runs, by identity. A failure in another environment does not count."""
        runs: dict[str, list[Glance]] = defaultdict(list)
        for seen in self._seen(SETTINGS, {point.code.settings for point in points}):
            runs[seen.tags[SETTINGS]].append(seen)
        return {p.identity: found_of(p, runs.get(p.code.settings, [])) for p in points}

    def _seen(self, by: str, wanted: set[str], experiment_id: str | None = None) -> list[Glance]:
        """What decides how the runs ended of which a tag has one of the wanted values."""
        place = experiment_id or self.experiment_id
        found = glances(self.store, place, by, wanted, tags=TAGS, metrics=(*ACCURACIES, *SHOWN))
        add_means(self.store, found)
        return found

    def open_study(self, record: StudyRecord) -> str:
        """The study's own run, taken up again if it is there."""
        self._study = record
        self._rests = self._is_finished(record)
        if not self._rests:
            # A study that starts at the same moment makes no second one.
            with self.store.alone(claim_on(record.key)):
                self.study_id = self._found(record.key)
                if self.study_id is None:
                    self.study_id = self._created(record.key, record.kind, record.name, {})
            self.store.write_tags(self.study_id, as_tags(record))
        return str(self.study_id)

    def _is_finished(self, record: StudyRecord) -> bool:
        """Whether a study, the one worked on last, was finished with this very record."""
        known = glances(
            self.store, self.experiment_id, IDENTITY, [record.key], tags=[f"{RECORD}.*"]
        )
        if not known or known[0].status != "FINISHED" or not _says(known[0], record):
            return False
        self.study_id = known[0].run_id
        return self.newest() == self.study_id

    def _wake(self) -> None:
        if self._rests:
            self._rests = False
            self.store.client.update_run(str(self.study_id), status="RUNNING")

    def earlier(self, key: str) -> StudyRecord | None:
        """The record of the same study, if it was opened before."""
        known = self.store.find(self.experiment_id, key)
        return read_study(known[0].data.tags) if known else None

    def amend(self, run_id: str, record: StudyRecord) -> None:
        """Write a study's record anew."""
        self.store.write_tags(run_id, as_tags(record))

    def open_cell(self, record: CellRecord, points: Sequence[Point]) -> str:
        """A cell's own run, taken up again if it is there, with what its runs share as params."""
        if record.name not in self._cells:
            with self.store.alone(claim_on(self._opened.key)):
                self._open(record, points, self._found(self._key(record)))
        return self._cells[record.name]

    def _open(self, record: CellRecord, points: Sequence[Point], known: str | None) -> None:
        self._wake()
        code = "; ".join(dict.fromkeys(point.code.code for point in points))
        tags = {PARENT: str(self.study_id), CODE: code, **as_tags(record)}
        name, new = record.name or "one cell", known is None
        run_id = known or self._created(self._key(record), record.kind, name, tags)
        shared = shared_settings([point.plain for point in points])
        plain = {k: v for k, v in shared.items() if k not in ("attack", "seed")}
        self.store.write_params(run_id, {**plain, CODE: code}, new=new)
        if not new:
            self.store.write_tags(run_id, as_tags(record))
        self._cells[record.name] = run_id

    def write_cell(
        self, record: CellRecord, outcomes: Mapping[str, Outcome], *, last: bool = False
    ) -> None:
        """Write what is known of a cell's worst case; at the ``last`` writing, how the cell ended.

        Only an exact worst case is called so. A cell of which a run failed, is missing or was
        stopped early has a bound instead, and says why.
        """
        run_id, cell = self._cells[record.name], CellResult(record, outcomes)
        # MLflow shows what was written last by the clocks of those who write, unless steps differ.
        known = cell.worst_case.known
        self.store.write(run_id, cells.metrics_of(cell), cells.tags_of(cell), step=known)
        if last or cell.worst_case.exact:
            self.store.client.set_terminated(run_id, cells.ended(cell))

    def write_cells(
        self, every: Sequence[tuple[CellRecord, Sequence[Point]]], outcomes: Mapping[str, Outcome]
    ) -> None:
        """The last writing of all cells, each with its points; one that says it all is left so."""
        with self.store.alone(claim_on(self._opened.key)):
            there = self._children(str(self.study_id), self.experiment_id)
            known = {seen.tags.get(IDENTITY): seen for seen in there}
            for record, points in every:
                seen = known.get(self._key(record))
                if seen is not None and cells.stands(CellResult(record, outcomes), seen):
                    continue
                if record.name not in self._cells:
                    self._open(record, points, None if seen is None else seen.run_id)
                self.write_cell(record, outcomes, last=True)

    def close_study(self, record: StudyRecord, *, complete: bool, failed: bool) -> None:
        """Say how the study ended, with what it has found out since it was opened."""
        run_id, rested = str(self.study_id), self._rests and record == self._study
        self._study = record
        status = "FINISHED" if complete and not failed else "FAILED" if complete else "KILLED"
        if rested and status == "FINISHED":
            return
        self.store.write_tags(run_id, as_tags(record))
        self.store.client.set_terminated(run_id, status)

    def keep(
        self,
        run_id: str,
        paths: Sequence[Path],
        metrics: Mapping[str, float],
        tags: Mapping[str, str],
    ) -> None:
        """Files and numbers on a study's own run; what is there already is left as it is."""
        numbers = {metric_name(key): value for key, value in metrics.items()}
        seen = glance_at(self.store, run_id, tags=list(tags), metrics=list(numbers))
        for path in paths:
            if seen is None or not is_kept(path, seen.files):
                self.store.client.log_artifact(run_id, str(path))
        if seen is not None:
            numbers = {k: v for k, v in numbers.items() if seen.metrics.get(k) != v}
            tags = {k: v for k, v in tags.items() if seen.tags.get(k) != v}
        if numbers or tags:
            self.store.write(run_id, numbers, tags)

    def newest(self) -> str:
        """The study that was worked on last."""
        every = glances(self.store, self.experiment_id, KIND, KINDS)
        if not every:
            line = "there is no sweep and no study yet; python pipelines/sweep.py makes one"
            raise BadRequest(here(line))
        return max(every, key=lambda seen: max(seen.began, seen.ended)).run_id

    def result(self, run_id: str) -> StudyResult:
        """A study as the store has it now, whoever computed it."""
        run = glance_at(self.store, run_id, tags=[f"{RECORD}.*"])
        study = None if run is None else read_study(run.tags)
        if run is None or study is None:
            raise BadRequest(f"run {run_id}: is no sweep and no study of this store")
        place = run.experiment_id
        children = self._children(run_id, place)
        found = [(seen, record) for seen in children if (record := read_cell(seen.tags))]
        found.sort(key=lambda pair: pair[1].facts.get("place", 0))
        wanted = {planned.identity for _, record in found for planned in record.runs}
        outcomes, metrics = self.known(wanted, place)
        made = [CellResult(record, outcomes, seen.run_id, metrics) for seen, record in found]
        return StudyResult(study, made, run_id)

    def _children(self, run_id: str, experiment_id: str) -> list[Glance]:
        """The cells directly below a study's run."""
        tags, metrics = (IDENTITY, *cells.TAGS), cells.METRICS
        return glances(self.store, experiment_id, PARENT, [run_id], tags=tags, metrics=metrics)

    def known(
        self, wanted: set[str], experiment_id: str | None = None
    ) -> tuple[dict[str, Outcome], dict[str, Mapping[str, float]]]:
        """How runs ended, and the last values of some of their metrics, by identity."""
        runs: dict[str, list[Glance]] = defaultdict(list)
        for seen in self._seen(IDENTITY, wanted, experiment_id):
            runs[seen.tags[IDENTITY]].append(seen)
        found = {identity: outcome_of(identity, attempts) for identity, attempts in runs.items()}
        outcomes = {identity: outcome for identity, outcome in found.items() if outcome is not None}
        by_id = {seen.run_id: seen.metrics for attempts in runs.values() for seen in attempts}
        return outcomes, {i: by_id[str(o.run_id)] for i, o in outcomes.items()}

    def end_killed(self, point: Point, run_ids: Sequence[str]) -> None:
        """End runs that were killed and that nobody will go on with."""
        claim = self.store.claims.take(claim_on(point.identity)) if run_ids else None
        if claim is None:
            return  # there is none, or another process is at it
        try:
            for run_id in run_ids:
                if self.store.client.get_run(run_id).info.status == "RUNNING":
                    self.store.client.set_terminated(run_id, "KILLED")
        finally:
            claim.give_back()

    @property
    def _opened(self) -> StudyRecord:
        assert self._study is not None
        return self._study

    def _key(self, record: CellRecord) -> str:
        return hashlib.sha256(f"{self._opened.key} {record.name}".encode()).hexdigest()

    def _found(self, key: str) -> str | None:
        """The run with this key, on again; None if there is none."""
        known = self.store.find(self.experiment_id, key)
        if not known:
            return None
        run_id = str(known[0].info.run_id)
        self.store.client.update_run(run_id, status="RUNNING")
        return run_id

    def _created(self, key: str, kind: str, name: str, tags: dict[str, str]) -> str:
        """A new run that others will lie below."""
        created = self.store.client.create_run(
            self.experiment_id,
            start_time=int(time.time() * 1000),
            tags={IDENTITY: key, KIND: kind, **tags},
            run_name=name,
        )
        return str(created.info.run_id)


def _says(seen: Glance, record: StudyRecord) -> bool:
    return all(seen.tags.get(key) == value for key, value in as_tags(record).items())


def is_kept(path: Path, files: str) -> bool:
    """Whether a folder of artifacts on this machine has this very file."""
    parts = urlsplit(files)
    if parts.scheme not in ("", "file"):
        return False
    kept = Path(url2pathname(parts.path), path.name)
    return kept.is_file() and kept.read_bytes() == path.read_bytes()


def metric_name(text: str) -> str:
    """A name in the characters that MLflow allows."""
    allowed = set(" -_./")
    return "".join(c if c.isalnum() or c in allowed else "_" for c in text)[:200]
