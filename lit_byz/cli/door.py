"""The one door to all commands: ``lit-byz COMMAND …``, or ``python -m lit_byz COMMAND …``.

It imports a command when it is asked for, so that it opens at once.
"""

import importlib
import platform
import sys
from collections.abc import Sequence
from importlib import metadata

from lit_byz._door import DOOR, door
from lit_byz.cli.command import guarded
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

# A command's module has main(argv), which returns the exit code.
COMMANDS = {
    "train": "lit_byz.cli.train",
    "sweep": "lit_byz.cli.sweep",
    "tune": "lit_byz.cli.tune",
    "init-scaling": "lit_byz.cli.init_scaling",
    "breakdown": "lit_byz.cli.breakdown",
    "report": "lit_byz.cli.report",
    "evaluate": "lit_byz.cli.evaluate",
    "benchmark": "lit_byz.cli.benchmark",
    "data": "lit_byz.cli.data",
    "cluster": "lit_byz.cli.cluster",
    "ui": "lit_byz.cli.ui",
    "list": "lit_byz.cli.listing",
    "completion": "lit_byz.cli.completion",
}
DESCRIPTIONS = {
    "train": "train once: n workers, f of them Byzantine, and a robust server",
    "sweep": "run a whole attack grid and show the worst case of every cell",
    "tune": "tune a cell against its worst attack, beside ARC",
    "init-scaling": "worst cases as the model's initialisation worsens",
    "breakdown": "the smallest f at which the worst case falls below a threshold",
    "report": "draw sweeps and studies again, and the paper's figures beside its claims",
    "evaluate": "evaluate the model that a run has kept",
    "benchmark": "measure speed, beside ByzFL and plain torch",
    "data": "fetch data sets, and show how they are divided among the workers",
    "cluster": "PostgreSQL, MLflow's server and Ray nodes on this machine, to try out",
    "ui": "open MLflow's pages on the tracked runs",
    "list": "what the store has, and what can be chosen: rules, attacks, experiments, …",
    "completion": "print a script with which bash, zsh or fish completes all of this",
}


def usage() -> str:
    """The commands with a line for each."""
    this, rows = door(), [f"  {name:<14}{text}" for name, text in DESCRIPTIONS.items()]
    return "\n".join(
        [
            f"usage: {this} COMMAND [key=value …] [options]",
            "",
            "Byzantine-robust distributed learning with adaptive robust clipping.",
            "",
            "commands:",
            *rows,
            "",
            f"{this} COMMAND --help says what a command takes; {this} --version, which this is.",
            f"First: {this} sweep, a small attack grid on embedded images, in two minutes.",
            f'Completion: eval "$({DOOR} completion bash)" in ~/.bashrc; {DOOR} completion --help',
            "has zsh and fish.",
        ]
    )


def version() -> str:
    """The package's version, and those on which the bits of a result depend."""
    from lit_byz import __version__

    return f"{DOOR} {__version__}, torch {_torch()}, Python {platform.python_version()}"


def _torch() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "not installed"


def _without_command(arguments: Sequence[str]) -> None:
    first = arguments[0] if arguments else "--help"
    if first in ("-h", "--help", "help"):
        print(usage())
    elif first in ("-V", "--version"):
        print(version())
    elif first.startswith("-"):
        raise BadRequest(f"unknown option '{first}': a command comes first, then its options")
    else:
        raise BadRequest(f"unknown command '{first}': {nearest(first, COMMANDS)}")


def main(argv: Sequence[str] | None = None) -> int:
    """Go to the command that is named; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in COMMANDS:
        return int(importlib.import_module(COMMANDS[arguments[0]]).main(arguments[1:]))
    return guarded(_without_command, arguments)
