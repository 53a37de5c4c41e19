"""MLflow's tables in SQLite and PostgreSQL, read directly: never written, and without MLflow."""

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Connection

# Databases that are read so.
READ = ("sqlite:///", "postgresql:", "postgresql+")
# So many values are asked for by name; for more, all runs are looked through.
FEW = 20
# Runs whose tags and metrics are read at once; a database takes so many names in one question.
AT_ONCE = 500
# The columns of a run that a glance has.
SHOWN = ("run_uuid", "status", "start_time", "end_time", "experiment_id", "artifact_uri")


@dataclass(frozen=True, slots=True)
class Glance:
    """A run as far as it was looked at; times in milliseconds, 0 for none."""

    run_id: str
    status: str
    began: int
    ended: int
    experiment_id: str
    files: str
    """Where its artifacts lie."""
    tags: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


def is_read(uri: str) -> bool:
    """Whether the store at an address is read directly."""
    return uri.startswith(READ)


def enter(uri: str) -> None:
    """Raise an error of SQLAlchemy's where a database does not let us in: a wrong password, say.

    What else would find out takes that for a database that is away, and waits for it.
    """
    with _connected(uri):
        return


def active_experiment(uri: str, name: str) -> str | None:
    """The id of an experiment that is not deleted; None where MLflow has to say what is wrong."""
    from sqlalchemy import select
    from sqlalchemy.exc import SQLAlchemyError

    if not is_read(uri):
        return None
    table = _columns("experiments", "experiment_id", "name", "lifecycle_stage")
    query = select(table.experiment_id, table.lifecycle_stage).where(table.name == name)
    try:
        with _connected(uri) as connection:
            found = connection.execute(query).all()
    except (SQLAlchemyError, ImportError):
        return None  # no tables yet, or no way to them
    return str(found[0][0]) if len(found) == 1 and found[0][1] == "active" else None


def read(
    uri: str,
    experiment_id: str,
    wanted: tuple[str, set[str]],
    tags: Sequence[str],
    metrics: Sequence[str],
) -> list[Glance]:
    """The runs of an experiment of which a tag has one of the wanted values, newest first."""
    with _connected(uri) as connection:
        found = list(_runs(connection, experiment_id, *wanted))
        _add(connection, found, tags, metrics)
    return found


def read_one(uri: str, run_id: str, tags: Sequence[str], metrics: Sequence[str]) -> Glance | None:
    """The run with this id, if there is one; it may be deleted."""
    from sqlalchemy import select

    runs = _columns("runs", *SHOWN)
    with _connected(uri) as connection:
        row = connection.execute(select(*runs).where(runs.run_uuid == run_id)).first()
        found = [] if row is None else [_glance(row, {})]
        _add(connection, found, tags, metrics)
    return found[0] if found else None


def values(
    uri: str, experiment_id: str, metric: str, params: Mapping[str, str], most: int
) -> list[float]:
    """The last values of a metric of the newest runs with these params."""
    from sqlalchemy import exists, select

    runs = _columns("runs", "run_uuid", "experiment_id", "lifecycle_stage", "start_time")
    numbers = _columns("latest_metrics", "run_uuid", "key", "value")
    query = (
        select(numbers.value)
        .where(numbers.run_uuid == runs.run_uuid, numbers.key == metric)
        .where(runs.experiment_id == int(experiment_id), runs.lifecycle_stage == "active")
        .order_by(runs.start_time.desc())
        .limit(most)
    )
    for key, text in params.items():
        given = _columns("params", "run_uuid", "key", "value")
        same = (given.run_uuid == runs.run_uuid, given.key == key, given.value == text)
        query = query.where(exists().where(*same))
    with _connected(uri) as connection:
        return [float(value) for value in connection.execute(query).scalars()]


@dataclass(frozen=True, slots=True)
class Recent:
    """A finished run: its seconds, the last value of a metric, some params, and a tag."""

    seconds: float
    value: float
    params: dict[str, str] = field(default_factory=dict)
    tag: str = ""


def recent(
    uri: str, experiment_id: str, metric: str, params: Sequence[str], tag: str, most: int
) -> list[Recent]:
    """The newest finished runs that have the metric, as far as they were looked at."""
    from sqlalchemy import select

    runs = _columns("runs", *SHOWN, "lifecycle_stage")
    numbers = _columns("latest_metrics", "run_uuid", "key", "value")
    query = (
        select(runs.run_uuid, runs.end_time - runs.start_time, numbers.value)
        .where(numbers.run_uuid == runs.run_uuid, numbers.key == metric)
        .where(runs.experiment_id == int(experiment_id), runs.lifecycle_stage == "active")
        .where(runs.status == "FINISHED")
        .order_by(runs.start_time.desc())
        .limit(most)
    )
    found: list[Recent] = []
    with _connected(uri) as connection:
        rows = connection.execute(query).all()
        for start in range(0, len(rows), AT_ONCE):
            part = {run_id: rest for run_id, *rest in rows[start : start + AT_ONCE]}
            given: dict[str, dict[str, str]] = {run_id: {} for run_id in part}
            for run_id, key, text in _named(connection, "params", ("value",), part, params):
                given[run_id][key] = text
            tags = _named(connection, "tags", ("value",), part, [tag])
            tagged = {run_id: text for run_id, _, text in tags}
            for run_id, (taken, value) in part.items():
                each = (given[run_id], tagged.get(run_id, ""))
                found.append(Recent((taken or 0) / 1000, value, *each))
    return found


def experiment_tag(uri: str, experiment_id: str, key: str) -> str | None:
    """A tag of an experiment."""
    from sqlalchemy import select

    table = _columns("experiment_tags", "experiment_id", "key", "value")
    query = select(table.value).where(table.experiment_id == int(experiment_id), table.key == key)
    with _connected(uri) as connection:
        found = connection.execute(query).scalar()
    return None if found is None else str(found)


def series(uri: str, run_ids: Sequence[str], key: str) -> dict[str, list[tuple[int, float]]]:
    """The (step, value) pairs of one metric of some runs, by run and step.

    Where a step was written twice, the last value counts.
    """
    from sqlalchemy import select

    table = _columns("metrics", "run_uuid", "key", "step", "value", "timestamp")
    found: dict[str, dict[int, float]] = {run_id: {} for run_id in run_ids}
    with _connected(uri) as connection:
        for start in range(0, len(run_ids), AT_ONCE):
            query = (
                select(table.run_uuid, table.step, table.value)
                .where(table.key == key, table.run_uuid.in_(run_ids[start : start + AT_ONCE]))
                .order_by(table.timestamp)
            )
            for run_id, step, value in connection.execute(query):
                found[run_id][step] = value
    return {run_id: sorted(points.items()) for run_id, points in found.items()}


@contextlib.contextmanager
def _connected(uri: str) -> "Iterator[Connection]":
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    # A connection of its own, which no fork shares; rows come as they are taken.
    engine = create_engine(uri, poolclass=NullPool)
    with engine.connect() as connection:
        yield connection.execution_options(stream_results=True)


def _columns(name: str, *columns: str) -> Any:
    from sqlalchemy import column, table

    return table(name, *(column(each) for each in columns)).c


def _runs(
    connection: "Connection", experiment_id: str, by: str, wanted: set[str]
) -> Iterator[Glance]:
    from sqlalchemy import select

    tags = _columns("tags", "run_uuid", "key", "value")
    runs = _columns("runs", *SHOWN, "lifecycle_stage")
    query = (
        select(*(runs[name] for name in SHOWN), tags.value)
        .where(tags.run_uuid == runs.run_uuid, tags.key == by)
        .where(runs.experiment_id == int(experiment_id), runs.lifecycle_stage == "active")
        .order_by(runs.start_time.desc(), runs.run_uuid)  # as MLflow orders them
    )
    if len(wanted) <= FEW:
        query = query.where(tags.value.in_(wanted))
    for rows in connection.execute(query).partitions(AT_ONCE):
        yield from (_glance(row, {by: row[-1]}) for row in rows if row[-1] in wanted)


def _glance(row: Any, tags: dict[str, str]) -> Glance:
    run_id, status, began, ended, experiment_id, files = row[: len(SHOWN)]
    return Glance(run_id, status, began or 0, ended or 0, str(experiment_id), files or "", tags)


def _add(
    connection: "Connection", found: Sequence[Glance], tags: Sequence[str], metrics: Sequence[str]
) -> None:
    """Read the tags and the last values of metrics that are named."""
    for start in range(0, len(found), AT_ONCE):
        by_id = {glance.run_id: glance for glance in found[start : start + AT_ONCE]}
        for run_id, key, text in _named(connection, "tags", ("value",), by_id, tags):
            by_id[run_id].tags[key] = text
        numbers = _named(connection, "latest_metrics", ("value", "is_nan"), by_id, metrics)
        for run_id, key, value, is_nan in numbers:
            by_id[run_id].metrics[key] = math.nan if is_nan else value


def _named(
    connection: "Connection",
    name: str,
    values: Sequence[str],
    runs: Collection[str],
    keys: Sequence[str],
) -> Any:
    """The rows of some runs with these keys, or with keys that begin like one with a * at its end.

    Each is the run's id, the key and the values.
    """
    from sqlalchemy import or_, select

    if not keys:
        return ()
    table = _columns(name, "run_uuid", "key", *values)
    exact = [key for key in keys if key[-1] != "*"]
    begin = [table.key.startswith(key[:-1], autoescape=True) for key in keys if key[-1] == "*"]
    return connection.execute(
        select(table.run_uuid, table.key, *(table[value] for value in values)).where(
            table.run_uuid.in_(runs), or_(table.key.in_(exact), *begin)
        )
    ).all()
