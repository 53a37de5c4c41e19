"""``lit-byz`` as pip installs it, and the other doors to the same commands."""

import os
import resource
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LAUNCHER = """#!{python}
import sys
from {module} import {function}
if __name__ == "__main__":
    sys.exit({function}())
"""


def install(folder: Path) -> Path:
    """The console script, in a folder for PATH; returns the script."""
    ((name, target),) = PROJECT["scripts"].items()
    module, _, function = target.partition(":")
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / name
    script.write_text(LAUNCHER.format(python=sys.executable, module=module, function=function))
    script.chmod(0o755)
    return script


def environment(folder: Path) -> dict[str, str]:
    """Variables with which a shell finds the script of a folder, and it this checkout."""
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}


def spent() -> float:
    """CPU seconds of the processes that this one has waited for so far.

    What a command takes by the clock depends on who else is at work.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def call(command: list[str], here: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
