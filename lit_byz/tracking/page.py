"""MLflow's page of a study or a run: what it shows, and the link that opens it.

MLflow opens an experiment with another kind of work in mind than training. What it shows instead
is written as a shared view, a tag of the experiment, and the link names that view.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from lit_byz._passwords import without_passwords, without_user
from lit_byz.tracking import tables
from lit_byz.tracking.cells import WORST_CASE
from lit_byz.tracking.evaluations import LAST_FEW
from lit_byz.tracking.glances import glance_at
from lit_byz.tracking.records import StudyResult
from lit_byz.tracking.store import KIND, PARENT, Store, claim_on

VIEW = "mlflow.sharedViewState."
ADDRESS, PORT = "127.0.0.1", 5000
# Widths of columns in pixels: of a name's letter and what is beside the letters, of the others.
LETTER, BESIDE, NARROWEST, WIDEST = 8, 75, 190, 640
NUMBER, WORDS = 215, 230
# Cells of an initialisation study that have norms and no worst case.
NO_WORST_CASE = "initial_gradients"


@dataclass(frozen=True)
class Page:
    """A page of the UI on a store; ``path`` begins with the slash after the server's address."""

    store: Store
    path: str
    run_id: str | None = None

    @property
    def link(self) -> str:
        """Where it is; of a store that is no server, where ``ui`` shows it by default."""
        server = without_passwords(without_user(self.store.uri)).rstrip("/")
        return (server if self.store.is_server else f"http://{ADDRESS}:{PORT}") + self.path

    @property
    def command(self) -> str:
        """What opens it."""
        return " ".join(filter(None, [self.store.ui_command, self.run_id]))

    def lines(self, start: str) -> list[str]:
        """For whoever wants to see it: the link, or the command that opens it and then the link."""
        if self.store.is_server:
            return [f"{start}{self.link}"]
        return [f"{start}{self.command}", f"{' ' * len(start)}{self.link}"]


def page_of(store: Store, result: StudyResult) -> Page:
    """The cells of a study, ranked by worst case; makes the view that shows them."""
    seen = glance_at(store, result.run_id)
    assert seen is not None
    key = f"lit_byz-{result.run_id[:12]}"
    _write(store, seen.experiment_id, key, cells_view(result))
    return Page(store, _path(seen.experiment_id, key), result.run_id)


def page_of_runs(store: Store, experiment_id: str) -> Page:
    """All runs of an experiment, ranked by maximal accuracy; makes the view that shows them."""
    key = "lit_byz-runs"
    _write(store, experiment_id, key, runs_view())
    return Page(store, _path(experiment_id, key))


def page_of_run(store: Store, experiment_id: str, run_id: str) -> Page:
    """A run's own page."""
    path = f"/#/experiments/{experiment_id}/runs/{run_id}?workflowType=machine_learning"
    return Page(store, path, run_id)


def cells_view(result: StudyResult) -> dict[str, Any]:
    """A study's cells with their full names, worst cases, and what is known of these in words."""
    cells = [cell for cell in result.cells if cell.record.kind != NO_WORST_CASE]
    judged_on = {cell.judged_on for cell in cells} - {"test"}
    start = "".join(f"{images}/" for images in judged_on) + "worst_case/"
    query = f"tags.`{PARENT}` = '{result.run_id}'"
    if len(cells) < len(result.cells):
        query += f" and tags.`{KIND}` != '{NO_WORST_CASE}'"
    # One seed has no deviation, and MLflow leaves out a column that is empty.
    several = any(cell.worst_case.seeds > 1 for cell in cells)
    beside = "max_accuracy_std" if several else "last_accuracy"
    numbers = ("max_accuracy", beside, f"mean_last_{LAST_FEW}")
    longest = max((len(cell.name) for cell in cells), default=0)
    columns = [f"metrics.`{start}{name}`" for name in numbers]
    return _view(query, [*columns, f"tags.`{WORST_CASE}`"], longest)


def runs_view() -> dict[str, Any]:
    """Runs with their accuracies, and how they ended."""
    numbers = ("test/max_accuracy", "test/accuracy", f"test/mean_last_{LAST_FEW}")
    columns = [f"metrics.`{name}`" for name in numbers]
    return _view(f"tags.`{KIND}` = 'run'", [*columns, "tags.`lit_byz.status`"], 60)


def _view(query: str, columns: list[str], longest: int) -> dict[str, Any]:
    """The state of MLflow's page, in its own words: ranked by the first column."""
    name = min(max(NARROWEST, BESIDE + LETTER * longest), WIDEST)
    widths = {"attributes.`Run Name`": name}
    widths |= {c: NUMBER if c.startswith("metrics") else WORDS for c in columns}
    return {
        "searchFilter": query,
        "orderByKey": columns[0],
        "orderByAsc": False,
        "selectedColumns": columns,
        "columnOrder": list(widths),
        "columnWidths": widths,
    }


def _path(experiment_id: str, key: str) -> str:
    shared = f"workflowType=machine_learning&viewStateShareKey={key}"
    return f"/#/experiments/{experiment_id}/runs?{shared}"


def _write(store: Store, experiment_id: str, key: str, view: dict[str, Any]) -> None:
    """Keep a view unless it is there: an unchanged store is read without MLflow."""
    name, text = f"{VIEW}{key}", json.dumps(view, separators=(",", ":"), ensure_ascii=False)
    if tables.is_read(store.uri):
        known = store.patience.call(tables.experiment_tag, store.uri, experiment_id, name)
    else:
        known = store.client.get_experiment(experiment_id).tags.get(name)
    if known != text:
        # Of two that end at the same moment, a database lets only one make a new tag.
        with store.alone(claim_on(hashlib.sha256(name.encode()).hexdigest())):
            store.client.set_experiment_tag(experiment_id, name, text)
