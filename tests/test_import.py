"""``import lit_byz`` is light: heavy libraries are left to those who use them."""

import json
import os
import subprocess
import sys
from pathlib import Path

HEAVY = ["mlflow", "optuna", "ray", "matplotlib", "lightning", "sklearn", "torchvision", "pandas"]
SCRIPT = f"""
import json, sys, time
import torch
start = time.process_time()
import {{module}}
cost = time.process_time() - start
print(json.dumps([cost, [name for name in {HEAVY} if name in sys.modules]]))
"""


def imported(module: str) -> tuple[float, list[str]]:
    """CPU seconds on top of torch's import, and the heavy libraries that came along.

    What other processes do meanwhile is no part of them.
    """
    output = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(module=module)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    cost, heavy = json.loads(output)
    return cost, heavy


def test_package_imports_quickly_and_alone() -> None:
    cost, heavy = imported("lit_byz")
    assert heavy == []
    # Up to three attempts: other processes of the suite share caches and memory.
    assert cost < 1 or any(imported("lit_byz")[0] < 1 for _ in range(2))


def test_config_and_commands_import_no_heavy_library() -> None:
    assert imported("lit_byz.cli.command")[1] == []
