"""Sweeps on PostgreSQL: a real one, made for the test and thrown away."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from lit_byz.errors import RunFailed
from lit_byz.tracking import open_store
from tests.cli._kills import started
from tests.cli._sweeps import GRID, ROOT, RUNS, arguments, sweep
from tests.services._postgresql import SECRET, postgresql

pytestmark = [pytest.mark.services, pytest.mark.timeout(900)]

TUNE = {
    "space": {"clip.C": {"low": 0.01, "high": 100.0, "log": True}},
    "trials": 4,
    "compare": ["arc"],
}
SMALL = {**GRID, "grid": {"axes": {"clip": ["none", "arc"], "attack": ["sf", "lf"]}}}


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The address of a database with a password."""
    with postgresql() as server:
        yield server.address()


def rows(address: str, query: str) -> list[tuple[Any, ...]]:
    import psycopg2

    plain = address.replace("+psycopg2", "")
    with closing(psycopg2.connect(plain)) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def at_once(commands: Mapping[Path, Sequence[str]]) -> list[dict[str, Any]]:
    """What commands print that run beside each other, each in its folder."""
    with ExitStack() as stack:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        both = [
            stack.enter_context(started(command, cwd=folder, **pipes))
            for folder, command in commands.items()
        ]
        answers = [process.communicate(timeout=200) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    return [json.loads(text) for text, _ in answers]


def test_two_sweeps_at_once_on_a_new_database(database: str, tmp_path: Path) -> None:
    """In two folders, as on two machines: nothing but the database tells them of each other."""
    setting = f"tracking.uri={database}"
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    words = (setting, "--json", "--workers", "1")
    answers = at_once({folder: arguments(folder, *words, grid=SMALL) for folder in folders})
    first, second = (answer["cells"] for answer in answers)
    assert first == second
    found = rows(database, RUNS)
    assert [status for _, status in found] == ["FINISHED"] * 4
    assert len({identity for identity, _ in found}) == 4
    above = rows(
        database,
        "select k.value, coalesce(a.value, 'nothing'), count(*) from tags k "
        "left join tags p on p.run_uuid = k.run_uuid and p.key = 'mlflow.parentRunId' "
        "left join tags a on a.run_uuid = p.value and a.key = 'lit_byz.kind' "
        "where k.key = 'lit_byz.kind' group by 1, 2",
    )
    assert set(above) == {("sweep", "nothing", 1), ("cell", "sweep", 2), ("run", "cell", 4)}
    # The same numbers as in SQLite.
    local = tmp_path / "sqlite"
    local.mkdir()
    assert json.loads(sweep(local, "--json", grid=SMALL).stdout)["cells"] == first
    # Nothing is left to do, and the way to the UI gives no password away.
    again = sweep(tmp_path, setting, grid=SMALL)
    assert again.returncode == 0
    assert "lit_byz:***@127.0.0.1" in again.stdout
    assert len(rows(database, RUNS)) == 4


def test_two_studies_at_once_in_two_folders(database: str, tmp_path: Path) -> None:
    import psycopg2

    # Optuna and MLflow each keep the version of their tables in a table of the same name.
    with closing(psycopg2.connect(database.replace("+psycopg2", ""))) as connection:
        connection.autocommit = True
        connection.cursor().execute("create database studies")
    cell = {**GRID, "grid": {"axes": {"attack": ["sf"]}}, "tune": TUNE}
    commands = {}
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "cell.yaml").write_text(yaml.safe_dump(cell))
        places = [f"tracking.uri={database}", "tracking.experiment=studies"]
        storage = ["--storage", database.replace("/postgres", "/studies")]
        command = [sys.executable, str(ROOT / "pipelines" / "tune.py"), "config=cell.yaml"]
        commands[folder] = [*command, *places, *storage, "--executor", "inline", "--json"]
    answers = at_once(commands)
    kinds = rows(
        database,
        "select k.value, count(*), count(distinct i.value) from tags k "
        "join tags i on i.run_uuid = k.run_uuid and i.key = 'lit_byz.identity' "
        "join runs r on r.run_uuid = k.run_uuid join experiments e using (experiment_id) "
        "where k.key = 'lit_byz.kind' and e.name = 'studies' group by 1",
    )
    assert set(kinds) == {("tuning", 1, 1), ("trial", 4, 4), ("cell", 1, 1), ("run", 5, 5)}
    numbers = [[trial["trial"] for trial in answer["trials"]] for answer in answers]
    assert numbers[0] == numbers[1] == [0, 1, 2, 3]


@pytest.mark.parametrize("form", ["encoded", "as it is", "in the query"])
def test_passwords_are_not_recorded(database: str, tmp_path: Path, form: str) -> None:
    encoded, place = database.rpartition("@")[0].rpartition(":")[2], database.rpartition("@")[2]
    uri = {
        "encoded": database,
        "as it is": database.replace(encoded, SECRET),
        "in the query": f"postgresql+psycopg2://{place}?user=lit_byz&password={encoded}",
    }[form]
    grid = {**GRID, "grid": {"axes": {"attack": ["sf"], "seed": [7]}}}
    # An experiment keeps its artifacts where it was made: this one is made here.
    store = [f"tracking.uri={uri}", f"tracking.experiment=passwords {form}"]
    answer = sweep(tmp_path, *store, grid=grid)
    assert answer.returncode == 0, answer.stderr
    assert "to-be-seen" not in answer.stdout + answer.stderr
    kept = rows(database, "select key, value from params union select key, value from tags")
    assert [value for key, value in kept if key == "tracking.uri"]
    assert [value for key, value in kept if key == "lit_byz.record.0"]
    assert not [value for _, value in kept if "to-be-seen" in value]
    settings = list(tmp_path.glob("mlruns/artifacts/**/config.yaml"))
    assert len(settings) == 1
    assert "***" in settings[0].read_text()
    assert "to-be-seen" not in settings[0].read_text()


def test_a_database_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    begin = time.monotonic()
    with pytest.raises(
        RunFailed, match=r"lit_byz:\*\*\*@127.0.0.1:9/runs: cannot be opened"
    ) as told:
        open_store(f"postgresql+psycopg2://lit_byz:{SECRET}@127.0.0.1:9/runs")
    assert "to-be-seen" not in str(told.value)
    # It does not try for minutes; to import what it takes may take long on a busy machine.
    assert time.monotonic() - begin < 60
