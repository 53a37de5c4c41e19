"""Ten thousand runs in the store: commands begin, and reports are drawn, in a few seconds."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.cli._sweeps import ROOT
from tests.tracking._filled import GRID, fill, seeds, some_points
from tests.tracking._stores import new_store

pytestmark = pytest.mark.slow

RUNS = 10_000
# Seconds that each command may take on two cores that do nothing else. Here others may be at work,
# for whom a command waits, and beside whom it takes more of a core itself.
SECONDS = 5.0
PATIENCE = 3.0
# What a process may hold, and how much more of it for a full store than for a small one.
MOST_BYTES = 650e6
MORE_BYTES = 40e6

# From a small process: one is taken to hold what the process that it was forked from did.
MEASURE = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[2:])
_, status, used = os.wait4(process.pid, 0)
with open(sys.argv[1], "w") as file:
    json.dump([used.ru_utime + used.ru_stime, 1024.0 * used.ru_maxrss], file)
os._exit(os.waitstatus_to_exitcode(status))
"""

Timed = Callable[..., tuple[str, float]]


@pytest.fixture
def timed(capsys: pytest.CaptureFixture[str]) -> Timed:
    """Run a command: what it printed, and the most memory that it held."""

    def call(folder: Path, *words: str, limit: float = PATIENCE * SECONDS) -> tuple[str, float]:
        begin = time.monotonic()
        output = folder / "output.txt"
        with output.open("w") as file:
            script, *rest = words
            command = [sys.executable, str(ROOT / "pipelines" / script), *rest]
            measured = subprocess.run(
                [sys.executable, "-c", MEASURE, str(folder / "used.json"), *command],
                cwd=folder,
                stdout=file,
                stderr=subprocess.STDOUT,
                check=False,
            )
        taken = time.monotonic() - begin
        cpu, held = json.loads((folder / "used.json").read_text())
        lines = output.read_text().splitlines(keepends=True)
        text = "".join(line for line in lines if not line.endswith("…\n"))
        with capsys.disabled():
            print(
                f"\n{taken:5.1f} s, {cpu:5.1f} s of a core, {held / 1e6:4.0f} MB: {' '.join(words)}"
            )
        assert measured.returncode == 0, text
        assert cpu < limit
        assert held < MOST_BYTES
        return text, held

    return call


def test_commands_on_a_full_store(tmp_path: Path, timed: Timed) -> None:
    small, full = tmp_path / "small", tmp_path / "full"
    every = some_points(RUNS)
    fill(new_store(small / "mlruns"), every[-100:])
    assert fill(new_store(full / "mlruns"), every) == RUNS
    grid = {**GRID["grid"], "axes": {**GRID["grid"]["axes"], "seed": seeds(RUNS)}}
    (full / "grid.yaml").write_text(yaml.safe_dump({**GRID, "grid": grid}))
    runs = 700 * len(seeds(RUNS))
    text, _ = timed(full, "sweep.py", "config=grid.yaml", "--dry-run")
    assert f"already done: {runs}, to do: 0" in text
    # The first time, a hundred cells and their parent are written.
    text, _ = timed(full, "sweep.py", "config=grid.yaml", limit=2 * PATIENCE * SECONDS)
    assert f"0 runs computed now, {runs} reused" in text
    again, _ = timed(full, "sweep.py", "config=grid.yaml")
    assert again == text
    study = text.split("pipelines/report.py ")[1].split()[0]
    drawn, _ = timed(full, "report.py", study)
    assert drawn.partition("figures ")[0].strip() in text  # the same tables
    # Where its figures are to be drawn: two with a hundred rows each, in three formats.
    timed(full, "report.py", study, "--out", "elsewhere", limit=2 * PATIENCE * SECONDS)
    listed, held = timed(full, "report.py", "list")
    (row,) = (line for line in listed.splitlines() if line.startswith("│ all "))
    assert f" {RUNS - runs} " in row
    _, before = timed(small, "report.py", "list")
    assert held - before < MORE_BYTES
