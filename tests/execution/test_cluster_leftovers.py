"""A cluster on one machine whose start or end is disturbed leaves no password, and no folder."""

import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from lit_byz.errors import RunFailed
from lit_byz.execution import cluster_parts, local_cluster, started
from lit_byz.execution.cluster_parts import Secrets
from lit_byz.execution.local_cluster import LocalCluster, State
from lit_byz.execution.started import start


def test_a_database_that_is_interrupted_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        assert [path.read_text() for path in tmp_path.glob("*/password")] == ["a password"]
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster_parts, "_somebody", dict)
    monkeypatch.setattr(cluster_parts, "programs", Path)
    monkeypatch.setattr(subprocess, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cluster_parts.make_database(tmp_path, Secrets("a password", "a token", "token"))
    assert not list(tmp_path.iterdir())


def test_what_a_crash_has_left_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, scratch = tmp_path / "cluster", tmp_path / "scratch"
    for each in (folder, scratch):
        each.mkdir()
    state = State.new(folder)
    state.scratch = str(scratch)
    (folder / local_cluster.STATE).write_text(json.dumps(asdict(state)))
    monkeypatch.setattr(cluster_parts, "check_programs", lambda: None)
    monkeypatch.setattr(LocalCluster, "_start", lambda *_: None)
    LocalCluster(folder).up(1, 1, print)
    assert not scratch.exists()
    assert State.read(folder / local_cluster.STATE).scratch == ""


def test_a_process_that_cannot_be_ended_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = start(["sleep", "600"], "a mark", tmp_path / "log", dict(os.environ))
    with monkeypatch.context() as patch:
        patch.setattr(started, "_send", lambda *_: None)
        with pytest.raises(RunFailed, match=f"process {found.pid}, .* cannot be ended"):
            found.end(grace=0.2)
    assert found.end()
