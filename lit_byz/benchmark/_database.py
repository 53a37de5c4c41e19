"""How fast PostgreSQL itself takes rows in, without MLflow before it."""

import contextlib
import threading
import time
import uuid
from typing import Any

TABLE = "benchmark_metrics"
# As MLflow's own table of metrics, key and all.
COLUMNS = (
    "key varchar(250), value double precision, timestamp bigint, run_uuid varchar(32), step bigint,"
    " is_nan boolean, primary key (key, timestamp, step, run_uuid, value, is_nan)"
)
BATCH = 1000


def _connect(uri: str) -> Any:
    import psycopg2

    connection = psycopg2.connect(uri.replace("+psycopg2", ""))
    connection.autocommit = True
    return connection


def written(uri: str) -> int:
    """How many transactions of the whole database server have written something, so far."""
    with contextlib.closing(_connect(uri)) as connection, connection.cursor() as cursor:
        cursor.execute("select txid_snapshot_xmax(txid_current_snapshot())")
        return int(cursor.fetchone()[0])


def rates(uri: str, clients: int, seconds: float) -> tuple[float, float]:
    """Commits of one row a second, and rows a second in commits of many."""
    with contextlib.closing(_connect(uri)) as connection, connection.cursor() as cursor:
        cursor.execute(f"create table {TABLE} ({COLUMNS})")
        try:
            single = _rate(uri, clients, seconds / 2, 1)
            return single, BATCH * _rate(uri, clients, seconds / 2, BATCH)
        finally:
            cursor.execute(f"drop table {TABLE}")


def _rate(uri: str, clients: int, seconds: float, rows: int) -> float:
    counts = [0] * clients
    begin = time.perf_counter()

    def insert(client: int) -> None:
        from psycopg2.extras import execute_values

        with contextlib.closing(_connect(uri)) as connection, connection.cursor() as cursor:
            while time.perf_counter() < begin + seconds:
                run = uuid.uuid4().hex
                values = [("train/loss", 0.5, step, run, step, False) for step in range(rows)]
                execute_values(cursor, f"insert into {TABLE} values %s", values, page_size=rows)
                counts[client] += 1

    threads = [threading.Thread(target=insert, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)
