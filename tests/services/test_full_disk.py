"""A disk that is full, a real one: a small file system in memory, which takes root to mount."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli._kills import deserted, started, wait_until
from tests.cli._sweeps import RUNS, arguments, furnish, results, rows, sweep
from tests.faults._mounts import small_disk

pytestmark = [pytest.mark.services, pytest.mark.timeout(900)]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    with small_disk(place, 12):
        yield place


@pytest.mark.parametrize("left", [0, 400_000])
def test_a_sweep_ends_with_one_line_and_goes_on_later(disk: Path, left: int) -> None:
    furnish(disk)
    command = [*arguments(disk), "--workers", "2"]
    with (disk / "ballast").open("wb", buffering=0) as file:
        file.write(bytes(shutil.disk_usage(disk).free - left))
    with started(command, cwd=disk, stderr=subprocess.PIPE) as full:
        _, said = full.communicate(timeout=200)
        assert full.returncode == 1
        wait_until("no process stays behind", lambda: deserted(full.pid), 60)
    lines = [line for line in said.splitlines() if not line.endswith("…")]
    assert len(lines) <= 2 + 8 + 1, said  # what is computed, the runs, the end
    assert lines[-1].startswith("error: no space left on the disk: make some, then the same ")
    assert "config=" in lines[-1]
    assert not [line for line in lines if "failed" in line]
    (disk / "ballast").unlink()
    assert not [status for _, status in rows(disk, RUNS) if status == "FAILED"]
    again = sweep(disk, "--json")
    assert again.returncode == 0, again.stderr
    assert results(again)["missing"] == []
    assert sorted(status for _, status in rows(disk, RUNS)).count("FINISHED") == 8
