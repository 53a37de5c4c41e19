"""The door by which a command was entered, and how any command is typed from there.

The package's texts name commands as a checkout has them, ``python pipelines/sweep.py``. Whoever
came in by ``lit-byz sweep`` may have no checkout, and whoever called another folder's script has it
elsewhere: what is shown to them goes through :func:`here`.
"""

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lit_byz._passwords import without_passwords

DOOR = "lit-byz"
MODULE = "python -m lit_byz"
SCRIPTS = "pipelines"
_COMMAND = re.compile(rf"python {SCRIPTS}/(\w+)\.py")
_NAMES = "train|sweep|tune|init_scaling|breakdown|report|evaluate|benchmark|data|cluster|ui"
_SCRIPT = re.compile(rf"(?<![\w/.-])({_NAMES})\.py\b")


def here(text: str) -> str:
    """A text with the commands in it as they are typed here.

    >>> here("draw it again: python pipelines/report.py RUN_ID")
    'draw it again: lit-byz report RUN_ID'
    """
    text = _COMMAND.sub(lambda found: line(found[1]), text)
    if _script() is None:
        text = _SCRIPT.sub(lambda found: line(found[1]), text)
    return text


def line(command: str) -> str:
    """How a command is typed, through the door that was used.

    >>> line("init_scaling")
    'lit-byz init-scaling'
    """
    script = _script()
    if script is not None:
        other = script.with_name(f"{command.replace('-', '_')}.py")
        if other.exists():
            return f"python {shlex.quote(str(other))}"
    return f"{door()} {command.replace('_', '-')}"


def door() -> str:
    """What is typed before the name of any command."""
    return MODULE if _is_module() else DOOR


def program() -> str | None:
    """How the command that runs was called, without its arguments; None if by no door."""
    if _script() is not None:
        return f"python {shlex.quote(sys.argv[0])}"
    if _is_module() or _is_door():
        return " ".join([door(), *sys.argv[1:2]])
    return None


def typed(arguments: Sequence[str]) -> str:
    """What was typed, to be typed again, without passwords.

    ``arguments`` are those of a command that was called by no door.
    """
    words = sys.argv[1:]
    start = f"python {shlex.quote(sys.argv[0])}"
    if _is_module() or _is_door():
        start = door()
    elif _script() is None:
        words = list(arguments)
    return " ".join([start, *(shlex.quote(str(without_passwords(word))) for word in words)])


def _script() -> Path | None:
    """The script of a checkout that runs, if one does."""
    found = Path(sys.argv[0])
    return found if found.suffix == ".py" and found.absolute().parent.name == SCRIPTS else None


def _is_module() -> bool:
    found = Path(sys.argv[0])
    return found.name == "__main__.py" and found.parent.name == __package__


def _is_door() -> bool:
    return Path(sys.argv[0]).name in (DOOR, f"{DOOR}.exe")
