"""A glance at many runs: the few tags and numbers that are asked for, and nothing else.

MLflow gives whole runs, with every param, tag and metric, at milliseconds each. A database is read
directly instead (see ``tables``); a server is asked for pages of whole runs.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from lit_byz.tracking import tables
from lit_byz.tracking.store import KIND, Store
from lit_byz.tracking.tables import Glance, Recent

if TYPE_CHECKING:
    from mlflow.entities import Run


def glances(
    store: Store,
    experiment_id: str,
    by: str,
    wanted: Collection[str],
    *,
    tags: Sequence[str] = (),
    metrics: Sequence[str] = (),
    kinds: Sequence[str] = ("run",),
) -> list[Glance]:
    """The runs of an experiment whose tag ``by`` has one of the values ``wanted``, newest first.

    Of their other tags and of the last values of their metrics come those that are named, or that
    begin like a name with a * at its end. Where many values are wanted, a server may be asked for
    all entries of these ``kinds`` instead, and no others are found.
    """
    values = set(wanted)
    if not values:
        return []
    if tables.is_read(store.uri):
        place = (store.uri, experiment_id)
        return store.patience.call(tables.read, *place, (by, values), tags, metrics)
    queries = [f"tags.`{KIND}` = '{kind}'" for kind in kinds]
    if len(values) <= tables.FEW:
        queries = [f"tags.`{by}` = '{value}'" for value in sorted(values)]
    return [
        shortened(run, (by, *tags), metrics)
        for query in queries
        for run in store.each(experiment_id, query)
        if run.data.tags.get(by) in values
    ]


def glance_at(
    store: Store, run_id: str, *, tags: Sequence[str] = (), metrics: Sequence[str] = ()
) -> Glance | None:
    """The run with this id, if there is one."""
    if tables.is_read(store.uri):
        return store.patience.call(tables.read_one, store.uri, run_id, tags, metrics)
    found = store.run(run_id)
    return None if found is None else shortened(found, tags, metrics)


def last_values(
    store: Store, experiment_id: str, metric: str, params: Mapping[str, str], most: int
) -> list[float]:
    """The last values of a metric of the newest runs with these params."""
    if tables.is_read(store.uri):
        place = (store.uri, experiment_id)
        return store.patience.call(tables.values, *place, metric, params, most)
    query = " AND ".join(f"params.`{key}` = '{text}'" for key, text in params.items())
    runs = store.client.search_runs([experiment_id], query, max_results=most)
    return [run.data.metrics[metric] for run in runs if metric in run.data.metrics]


def recent(
    store: Store, experiment_id: str, metric: str, params: Sequence[str], tag: str, most: int
) -> list[Recent]:
    """The newest finished runs that have a metric: its last value, some params and a tag."""
    if tables.is_read(store.uri):
        place = (store.uri, experiment_id)
        return store.patience.call(tables.recent, *place, metric, params, tag, most)
    query = f"tags.`{KIND}` = 'run' AND attributes.status = 'FINISHED'"
    runs = store.client.search_runs([experiment_id], query, max_results=most)
    return [
        Recent(
            ((run.info.end_time or 0) - (run.info.start_time or 0)) / 1000,
            run.data.metrics[metric],
            {key: run.data.params[key] for key in params if key in run.data.params},
            run.data.tags.get(tag, ""),
        )
        for run in runs
        if metric in run.data.metrics
    ]


def shortened(run: "Run", tags: Sequence[str], metrics: Sequence[str]) -> Glance:
    """What is asked for of a whole run."""
    info, data = run.info, run.data
    return Glance(
        str(info.run_id),
        str(info.status),
        int(info.start_time or 0),
        int(info.end_time or 0),
        str(info.experiment_id),
        str(info.artifact_uri or ""),
        {key: value for key, value in data.tags.items() if _named(key, tags)},
        {key: value for key, value in data.metrics.items() if _named(key, metrics)},
    )


def _named(key: str, names: Sequence[str]) -> bool:
    return any(key == name or (name[-1] == "*" and key.startswith(name[:-1])) for name in names)


__all__ = ["Glance", "glance_at", "glances", "last_values", "recent", "shortened"]
