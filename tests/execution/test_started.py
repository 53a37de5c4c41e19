"""Processes that outlive their command: found again, ended, and never mistaken for others."""

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lit_byz.execution import started as module
from lit_byz.execution.started import MARK, Started, boot, start
from tests.cli._kills import wait_until

LEAVES_A_CHILD = "sleep 60 & echo $!"


@pytest.fixture
def foreign() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that is none of ours, in a session of its own."""
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def run(folder: Path, *command: str) -> Started:
    started, _ = start(command, "a mark", folder / "log", dict(os.environ))
    return started


def test_all_of_a_session_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The children do not hear what the shell is told: they are killed, when that is over."""
    waits, graces = module._wait, iter([0.1, 60.0])
    monkeypatch.setattr(module, "_wait", lambda until, _: waits(until, next(graces)))
    started = run(tmp_path, "sh", "-c", "sleep 60 & sleep 60 & wait")
    wait_until("it has two children", lambda: len(started.members()) == 3, 60)
    assert started.alive
    assert started.end()
    assert next(graces, None) is None
    assert started.members() == []
    assert not started.alive
    assert not started.end()


def test_its_log_is_nobody_elses(tmp_path: Path) -> None:
    run(tmp_path, "echo", "something").end()
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_another_process_with_the_same_number_is_left_alone(
    foreign: "subprocess.Popen[bytes]",
) -> None:
    stale = Started(foreign.pid, 1, boot(), "a mark")
    assert not stale.alive
    assert stale.members() == []
    assert not stale.end(signal.SIGKILL)
    assert foreign.poll() is None


def test_nothing_is_left_of_another_boot(tmp_path: Path) -> None:
    started = run(tmp_path, "sleep", "60")
    before = replace(started, boot="of yesterday")
    assert not before.alive
    assert not before.end()
    assert started.alive
    assert started.end()


@pytest.mark.parametrize("ours", [True, False])
def test_what_a_dead_process_left_is_ended_if_it_has_the_mark(tmp_path: Path, ours: bool) -> None:
    environment = {**os.environ, MARK: "a mark"} if ours else dict(os.environ)
    gone = subprocess.Popen(
        ["sh", "-c", LEAVES_A_CHILD], env=environment, start_new_session=True, stdout=-1
    )
    assert gone.stdout is not None
    child = int(gone.stdout.readline())
    gone.stdout.close()
    gone.wait()
    try:
        found = Started(gone.pid, 1, boot(), "a mark")
        assert found.members() == ([child] if ours else [])
        assert found.end() is ours
        assert found.members() == []
    finally:
        if not ours:
            os.kill(child, signal.SIGKILL)


def test_what_it_computes_is_counted_in_sessions_of_their_own_too(tmp_path: Path) -> None:
    # It ends when it is told to; were this process killed, after so many seconds of computing.
    loop = f"echo $$ > {tmp_path}/loop; ulimit -t 60; while :; do :; done"
    started = run(tmp_path, "sh", "-c", f"setsid -w sh -c '{loop}'; :")
    try:
        wait_until("it has computed", lambda: started.cpu_seconds() >= 0.1, 60)
        looping = int((tmp_path / "loop").read_text())
        assert looping not in started.members()
    finally:
        started.end(signal.SIGKILL)
        os.kill(int((tmp_path / "loop").read_text()), signal.SIGKILL)
