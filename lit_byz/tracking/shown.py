"""What a store has, in short: its studies and the runs that belong to none, newest first."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lit_byz.tracking import tables
from lit_byz.tracking.cells import WORST_CASE
from lit_byz.tracking.glances import Glance, glances
from lit_byz.tracking.ledger import KINDS
from lit_byz.tracking.reach import SQLITE
from lit_byz.tracking.store import KIND, PARENT, STATUS, Store, default_uri, open_store

NAME = "mlflow.runName"
ACCURACY = "test/max_accuracy"
# The kinds of what a study's worst cases are of.
CELLS = ("cell", "trial")
# On the test images, or on those held out where these decide.
HELD_OUT = "val/worst_case/max_accuracy"
WORST_CASES = ("worst_case/max_accuracy", HELD_OUT)


@dataclass(frozen=True)
class Entry:
    """A study or a run: ``low`` and ``high`` are the worst cases of its cells that are known.

    Of a run both are its maximal accuracy. ``cells`` counts a study's cells, ``exact`` those whose
    worst case is known exactly. ``judged_on`` names the images that the accuracies are of,
    ``test`` or ``validation``; None where there are none. ``when`` is the moment of the last work
    on it, in seconds.
    """

    kind: str
    name: str
    status: str
    low: float | None
    high: float | None
    cells: int
    exact: int
    judged_on: str | None
    when: float
    run_id: str

    @property
    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "age_seconds": time.time() - self.when}


def entries(tracking: Mapping[str, Any], most: int | None = None) -> tuple[list[Entry], int]:
    """The newest studies and loose runs of the section ``tracking``'s store, and how many are left.

    A store that is not there yet has none, and is not made.
    """
    store, experiment = _opened(tracking)
    if store is None or experiment is None:
        return [], 0
    studies = glances(store, experiment, KIND, KINDS, tags=[NAME])
    wanted: dict[str, Any] = {"tags": [PARENT, NAME, STATUS], "metrics": [ACCURACY]}
    runs = glances(store, experiment, KIND, ["run"], **wanted)
    loose = [run for run in runs if PARENT not in run.tags]
    every = sorted([*studies, *loose], key=_when, reverse=True)
    chosen = every[:most]
    cells = _cells(store, experiment, [run.run_id for run in chosen if run.tags[KIND] != "run"])
    shown = [_study(r, cells[r.run_id]) if r.run_id in cells else _run(r) for r in chosen]
    return shown, len(every) - len(chosen)


def _opened(tracking: Mapping[str, Any]) -> tuple[Store | None, str | None]:
    """The store and the experiment's id, as far as they are there."""
    uri, name = tracking["uri"] or default_uri(), tracking["experiment"]
    if uri.startswith(SQLITE) and not Path(unquote(uri.removeprefix(SQLITE))).exists():
        return None, None
    store = open_store(uri)
    if tables.is_read(uri):
        return store, tables.active_experiment(uri, name)
    found = store.client.get_experiment_by_name(name)
    return store, None if found is None else str(found.experiment_id)


def _when(run: Glance) -> int:
    return max(run.began, run.ended)


def _cells(store: Store, experiment: str, studies: Sequence[str]) -> dict[str, list[Glance]]:
    """The cells of studies, by the study's id; what else lies below them is left out."""
    found: dict[str, list[Glance]] = {run_id: [] for run_id in studies}
    wanted: dict[str, Any] = {"tags": [KIND, WORST_CASE], "metrics": WORST_CASES, "kinds": CELLS}
    for cell in glances(store, experiment, PARENT, studies, **wanted):
        if cell.tags.get(KIND) in CELLS:
            found[cell.tags[PARENT]].append(cell)
    return found


def _study(run: Glance, cells: Sequence[Glance]) -> Entry:
    # A metric stays, also where runs that it was taken from are deleted; the tag goes with them.
    said = ((cell.metrics, cell.tags.get(WORST_CASE, "")) for cell in cells)
    known = [metrics for metrics, words in said if words.partition(":")[0] == "exact"]
    exact = [metrics[name] for metrics in known for name in WORST_CASES if name in metrics]
    held_out = any(HELD_OUT in metrics for metrics in known)
    return Entry(
        kind=run.tags[KIND],
        name=run.tags.get(NAME, ""),
        status=run.status.lower(),
        low=min(exact, default=None),
        high=max(exact, default=None),
        cells=len(cells),
        exact=len(exact),
        judged_on=("validation" if held_out else "test") if exact else None,
        when=_when(run) / 1000,
        run_id=run.run_id,
    )


def _run(run: Glance) -> Entry:
    reached = run.metrics.get(ACCURACY)
    status = run.status.lower()
    if status in ("finished", "killed"):
        status = run.tags.get(STATUS, status)
    name = run.tags.get(NAME, "")
    when = _when(run) / 1000
    images = None if reached is None else "test"
    return Entry("run", name, status, reached, reached, 0, 0, images, when, run.run_id)
