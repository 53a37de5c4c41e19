"""A whole cluster on this machine: started, used, looked at, ended."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lit_byz.cli import cluster as command
from lit_byz.execution import cluster_parts
from lit_byz.execution.local_cluster import LocalCluster
from lit_byz.execution.started import MARK, Started, boot
from lit_byz.execution.surroundings import free_ports
from tests.cli._kills import wait_until
from tests.cli._sweeps import GRID, ROOT, results, sweep

SCRIPT = str(ROOT / "pipelines" / "cluster.py")
# 127.0.0.1, as it is and as IPv6 writes it, and ::1.
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
SMALL = {**GRID, "grid": {"axes": {"attack": ["sf", "lf"], "seed": [1, 2]}}}


def call(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, SCRIPT, *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def marked(folder: Path) -> dict[int, bytes]:
    """Processes that belong to the cluster of a folder, and how they were called."""
    mark = f"{MARK}={json.loads((folder / 'cluster.json').read_text())['mark']}".encode()
    found = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            if mark in path.read_bytes().split(b"\0"):
                found[int(path.parent.name)] = path.with_name("cmdline").read_bytes()
    return found


def listening(folder: Path) -> set[str]:
    """The addresses, as the kernel writes them, on which anything of a cluster listens."""
    parts = json.loads((folder / "cluster.json").read_text())["parts"]
    members = {pid for part in parts for pid in Started(**part["process"]).members()}
    sockets = set()
    for pid in members:
        with contextlib.suppress(OSError):
            sockets |= {str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.add(fields[1].partition(":")[0])
    return found


def state_of(folder: Path, pid: int) -> dict[str, Any]:
    """A state file's content, with one part that was started at another time."""
    process = {"pid": pid, "begin": 1, "boot": boot(), "mark": "other"}
    secrets = {"password": "p", "token": "t", "token_file": str(folder / "ray_token")}
    parts = [{"name": "MLflow server", "port": 9, "process": process}]
    return {"mark": "other", "secrets": secrets, "scratch": "", "data": "", "parts": parts}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cluster"
    call("down", "--folder", str(tmp_path / "cluster"))
    LocalCluster(tmp_path / "cluster").delete_database()


@pytest.mark.services
@pytest.mark.timeout(900)  # six commands and two sweeps
def test_up_sweep_status_down(folder: Path, tmp_path: Path) -> None:
    place = ("--folder", str(folder))
    up = call("up", *place, "--workers", "2", "--cpus", "1")
    assert up.returncode == 0, up.stderr
    for name in ("PostgreSQL", "MLflow server", "Ray head", "Ray worker 1", "Ray worker 2"):
        assert re.search(rf"^{name} on 127\.0\.0\.1:\d+: [\d.]+ s$", up.stdout, re.MULTILINE)
    state = folder / "cluster.json"
    assert state.stat().st_mode & 0o777 == 0o600
    known = json.loads(state.read_text())["secrets"]
    commands = b"".join(marked(folder).values())
    for secret in (known["password"], known["token"]):
        assert secret not in up.stdout + up.stderr
        assert secret.encode() not in commands
    assert listening(folder) <= LOOPBACK
    status = call("status", *place)
    assert status.returncode == 0, status.stdout
    assert [line.endswith("answers") for line in status.stdout.splitlines()] == [True] * 5
    again = call("up", *place)
    assert again.returncode == 2
    assert "down first" in again.stderr

    # What it says to type next, with a small grid.
    variables = dict(re.findall(r"^export (\w+)=(\S+)$", up.stdout, re.MULTILINE))
    address = re.search(r"--ray-address (\S+)", up.stdout)
    assert address is not None
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        words = ("--executor", "ray", "--ray-address", address[1], "--json")
        answer = sweep(tmp_path, *words, grid=SMALL)
        patch.delenv("MLFLOW_TRACKING_URI")
    assert answer.returncode == 0, answer.stderr
    local = tmp_path / "local"
    local.mkdir()
    assert results(answer)["cells"] == results(sweep(local, "--json", grid=SMALL))["cells"]
    assert list((folder / "artifacts").glob("**/config.yaml"))

    # A part that dies is seen.
    worker = json.loads(state.read_text())["parts"][-1]
    os.kill(worker["process"]["pid"], signal.SIGKILL)
    seen = call("status", *place)
    assert seen.returncode == 1
    assert seen.stdout.splitlines()[-1].endswith("does not answer")

    down = call("down", *place)
    assert down.returncode == 0, down.stderr
    assert [line.rpartition(": ")[0] for line in down.stdout.splitlines()[-4:-1]] == [
        "Ray head ended",
        "MLflow server ended",
        "PostgreSQL ended",
    ]
    wait_until("nothing is left", lambda: not marked(folder), 60)
    twice = call("down", *place)
    assert (twice.returncode, twice.stdout) == (0, f"nothing is up in {folder}\n")
    assert call("status", *place).returncode == 1


@pytest.mark.services
@pytest.mark.timeout(900)
def test_what_fails_takes_the_rest_down(folder: Path, tmp_path: Path) -> None:
    """PostgreSQL starts, MLflow's server cannot."""
    broken = tmp_path / "modules" / "mlflow"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise SystemExit('this MLflow is broken')\n")
    up = call("up", "--folder", str(folder), PYTHONPATH=f"{broken.parent}:{ROOT}")
    assert up.returncode == 1
    assert "MLflow server has ended: this MLflow is broken" in up.stderr
    assert "PostgreSQL ended" in up.stdout
    wait_until("nothing is left", lambda: not marked(folder), 60)


def test_a_stale_file_ends_no_foreign_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        (tmp_path / "cluster.json").write_text(json.dumps(state_of(tmp_path, foreign.pid)))
        assert command.main(["down", "--folder", str(tmp_path)]) == 0
        assert "MLflow server was gone already" in capsys.readouterr().out
        time.sleep(0.1)
        assert foreign.poll() is None
        assert json.loads((tmp_path / "cluster.json").read_text())["parts"] == []
    finally:
        foreign.kill()
        foreign.wait()


def test_nothing_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["down", "--folder", str(tmp_path / "none")]) == 0
    assert command.main(["status", "--folder", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().out.count("nothing is up") == 2
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["up", "--workers", "0"], "--workers 0: must be at least 1"),
        (["up", "--cpus", "0"], "--cpus 0: must be at least 1"),
        (["sideways"], "sideways"),
    ],
)
def test_bad_requests(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([*words, "--folder", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster_parts, "DEBIAN", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.main(["up", "--folder", str(tmp_path / "new")]) == 2
    assert "apt-get install postgresql" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_no_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cluster.json").write_text("{")
    assert command.main(["down", "--folder", str(tmp_path)]) == 2
    assert "cannot be read as the state of a cluster" in capsys.readouterr().err


def test_ports_are_free_and_different() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert not any(cluster_parts.port_answers(port) for port in ports)
