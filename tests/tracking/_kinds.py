"""Runs of every kind in a store, and what MLflow itself says of them."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from lit_byz.config.compose import compose_plain
from lit_byz.config.grid import Grid, Point, points
from lit_byz.tracking.glances import Glance, shortened
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.lookup import ACCURACIES, TAGS, Found, found_of
from lit_byz.tracking.runs import Attempt, open_run
from lit_byz.tracking.store import SETTINGS
from tests.tracking._ledgers import BASE, begin, by_other_code, end


def runs_of_every_kind(uri: str) -> list[Point]:
    """Put runs into the store at an address; the points that they are of, and one without any."""
    base = {**BASE, "tracking": {"uri": uri}}
    found = points(Grid(base, {"attack": ["sf", "lf", "foe", "alie"], "seed": [1, 2, 3, 4]}))
    end(found[0], "finished", 0.5)
    end(found[1], "diverged", 0.1)
    end(found[2], "bounded", 0.4)
    end(found[3], "failed")
    end(found[4], "interrupted")
    begin(found[5])
    end(found[6], "finished", None)  # without a number
    for status, accuracy in (("failed", None), ("bounded", 0.3), ("finished", 0.6)):
        end(found[7], status, accuracy)  # several attempts
    end(by_other_code(found[8]), "finished", 0.7)
    end(by_other_code(found[9]), "finished", 0.7)
    end(found[9], "finished", 0.8)
    here = {**found[10].plain, "tracking": base["tracking"]}
    elsewhere = compose_plain(["data.root=elsewhere"], beneath=here)
    end(replace(found[10], plain=elsewhere), "failed")
    _validated(found[11], "finished", {"val/max_accuracy": 0.6, "test/accuracy_at_val_max": 0.55})
    _validated(found[12], "bounded", {"val/max_accuracy_at_least": 0.35})
    odd = open_run(Attempt(found[13].config, found[13].code))
    assert odd.store is not None
    for value in (math.nan, math.inf):
        odd.store.client.log_metric(str(odd.run_id), f"test/{value}", value)
    odd.store.client.log_metric(str(odd.run_id), "test/max_accuracy", math.nan)
    odd.close("FINISHED")
    deleted = end(found[14], "finished", 0.9)
    odd.store.client.delete_run(deleted)
    return found


def _validated(point: Point, status: str, metrics: dict[str, float]) -> None:
    run = open_run(Attempt(point.config, point.code))
    name = "test/max_accuracy_at_least" if status == "bounded" else "test/max_accuracy"
    run.tracker.log_metrics({name: 0.5, **metrics}, 4)
    run.tag("lit_byz.status", status)
    run.close("KILLED" if status == "bounded" else "FINISHED")


def as_mlflow_says(ledger: Ledger, points: Sequence[Point]) -> dict[str, Found]:
    """What is known of runs, from whole runs that MLflow gives."""
    runs: dict[str, list[Glance]] = defaultdict(list)
    for run in ledger.store.search(ledger.experiment_id, ""):
        seen = shortened(run, TAGS, ACCURACIES)
        runs[seen.tags.get(SETTINGS, "")].append(seen)
    return {p.identity: found_of(p, runs.get(p.code.settings, [])) for p in points}
