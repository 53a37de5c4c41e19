"""From what was measured on one machine to what more cores would make of many runs.

An extrapolation: costs of one run, added up. Nothing here has been seen at such a size.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """Runs to compute."""

    runs: int
    core_seconds: float
    longest: float
    """Seconds of the longest run."""
    checkpoint_bytes: float
    """Of all checkpoints that are written on the way."""


@dataclass(frozen=True)
class Costs:
    """What was measured; CPU seconds are those of one core."""

    cores: int
    """Of the machine that the server and the database have to themselves."""
    driver: float
    """Seconds of the driver for one run, which it spends on one after the other."""
    notes_second: float
    """Reports on its progress that a run sends to the driver's board every second."""
    notes_per_second: float
    """That the board takes at most."""
    server_run: float
    """CPU seconds of the server for one run's requests, the driver's about it included."""
    server_second: float
    """CPU seconds of the server for one second of a run that goes on."""
    server_byte: float
    """CPU seconds of the server for one byte of an artifact."""
    database_run: float
    database_second: float
    commits_run: float
    commits_per_second: float
    """That the database makes at most."""


@dataclass(frozen=True)
class Row:
    """Some number of cores, one run on each; loads as shares of what there is."""

    cores: int
    hours: float
    runs_per_second: float
    driver: float
    board: float
    server: float
    database: float
    checkpoints: float
    """The server again, if all checkpoints go through it."""
    bottleneck: str
    checkpoint_hours: float
    """With checkpoints through the server."""


def project(work: Work, costs: Costs, cores: int) -> Row:
    """How long the work takes on so many cores, and what is busy how much.

    If a part had more to do than it can, the whole would take longer by that factor.
    """
    seconds = max(work.core_seconds / cores, work.longest)
    rate = work.runs / seconds
    at_once = work.core_seconds / seconds
    loads = {
        "driver": rate * costs.driver,
        "board": at_once * costs.notes_second / costs.notes_per_second,
        "server": (rate * costs.server_run + at_once * costs.server_second) / costs.cores,
        "database": max(
            (rate * costs.database_run + at_once * costs.database_second) / costs.cores,
            rate * costs.commits_run / costs.commits_per_second,
        ),
    }
    uploads = work.checkpoint_bytes / seconds * costs.server_byte / costs.cores
    busiest = max(loads, key=loads.__getitem__)
    most = loads[busiest]
    if most <= 1:
        busiest = "longest run" if work.longest >= work.core_seconds / cores else "cores"
    hours = seconds / 3600
    return Row(
        cores=cores,
        hours=hours * max(1.0, most),
        runs_per_second=rate,
        driver=loads["driver"],
        board=loads["board"],
        server=loads["server"],
        database=loads["database"],
        checkpoints=uploads + loads["server"],
        bottleneck=busiest,
        checkpoint_hours=hours * max(1.0, most, uploads + loads["server"]),
    )
