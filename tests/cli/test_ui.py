"""``ui``: the right store, the right page, one line for what is wrong, and a clean end."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lit_byz.cli.ui import main
from lit_byz.execution.ui_server import choose_port
from lit_byz.tracking import Store, open_store
from tests.cli import _kills
from tests.cli._sweeps import ROOT
from tests.tracking._ledgers import end, some_points
from tests.tracking._stores import new_store

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def refused(capsys: Capture, *words: str) -> str:
    assert main(["--no-browser", *words]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_without_a_store(tmp_path: Path, capsys: Capture) -> None:
    said = refused(capsys)
    assert "mlruns/mlflow.db: there is no store yet; lit-byz sweep makes one" in said
    assert not list(tmp_path.iterdir())
    assert "elsewhere.db: there is no store" in refused(
        capsys, "tracking.uri=sqlite:///elsewhere.db"
    )


def test_with_an_empty_store(tmp_path: Path, capsys: Capture) -> None:
    new_store(tmp_path / "mlruns")
    assert "there is no run yet" in refused(capsys)
    assert "run abc: there is none in this store" in refused(capsys, "abc")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["clip=arc"], "clip=arc: ui takes the id of a run and tracking.key=value only"),
        (["a", "b"], "b: ui opens one run at a time"),
        (["--port", "0"], "--port 0: must be between 1 and 65535"),
        (["--port", "x"], "--port: invalid int value: 'x'"),
    ],
)
def test_bad_requests(words: list[str], expected: str, capsys: Capture) -> None:
    assert expected in refused(capsys, *words)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_that_is_taken(taken: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refused(capsys, "--port", str(taken))
    assert f"--port {taken}: is taken; without --port a free one is found" in said
    monkeypatch.setattr("lit_byz.execution.ui_server.PORT", taken)
    assert choose_port(None) not in (taken, 0)


def store_with_a_run(folder: Path) -> tuple[Store, str]:
    (point,) = some_points(folder / "mlruns", ("sf",))
    return open_store(new_store(folder / "mlruns")), end(point, "finished", 0.5)


def below(pid: int) -> set[int]:
    """The processes of the session that a process leads."""
    listed = subprocess.run(
        ["ps", "-eo", "pid=,sess=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    rows = [tuple(map(int, line.split())) for line in listed.splitlines()]
    sessions = {session for number, session, parent in rows if parent == pid and session == number}
    return {number for number, session, _ in rows if session in sessions}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_this_machine_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    _, run_id = store_with_a_run(tmp_path)
    port = choose_port(None)
    command = [sys.executable, str(ROOT / "pipelines" / "ui.py"), "--no-browser"]
    command += [run_id, "--port", str(port)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with _kills.started(command, cwd=tmp_path, **pipes) as process:
        try:
            assert process.stdout is not None
            assert "starting MLflow's UI on sqlite:///mlruns/mlflow.db" in process.stdout.readline()
            link = process.stdout.readline().strip()
            expected = rf"http://127\.0\.0\.1:{port}/#/experiments/\d+/runs/{run_id}\?.*"
            assert re.fullmatch(expected, link)
            with urllib.request.urlopen(link.partition("#")[0], timeout=120) as page:
                assert b"MLflow" in page.read()
            family = below(process.pid)
            assert family
            process.send_signal(number)
            assert process.wait(60) == 0
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()
        finally:  # a server is in a session of its own, which outlives the command
            for each in below(process.pid):
                os.kill(each, signal.SIGKILL)
    _kills.wait_until(
        "all of it has ended",
        lambda: not any(Path(f"/proc/{each}").exists() for each in family),
        60,
    )
    assert sorted(os.listdir(tmp_path)) == ["mlruns"]  # noqa: PTH208
