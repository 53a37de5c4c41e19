"""What Tab makes of a line in a real shell's editor, inside of quotes too."""

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli._doors import environment, install

TELL = b"\x18t"  # Ctrl-X t: what stands in the line, into a file
CLEAR = b"\x15"
START = {
    "bash": (
        ["--noprofile", "--norc", "-i"],
        """eval "$(lit-byz completion bash)"
bind -x '"\\C-xt": printf %s "$READLINE_LINE" >told.new; mv told.new told'""",
    ),
    "zsh": (
        ["-f", "-i", "+m"],
        """autoload -Uz compinit && compinit -u -D; eval "$(lit-byz completion zsh)"
tell() { print -rn -- "$BUFFER" >told.new; mv told.new told }; zle -N tell; bindkey '^Xt' tell""",
    ),
}
# What is typed, and what stands there after Tab. A list is not at its end: more may follow.
BOTH = [
    ("lit-byz sw", "lit-byz sweep "),
    ("lit-byz sweep 'clip=a", "lit-byz sweep 'clip=arc' "),
    ("lit-byz sweep 'rule=gm' rule.n", "lit-byz sweep 'rule=gm' rule.nu="),
    ('lit-byz sweep "rule=gm" "clip=a', 'lit-byz sweep "rule=gm" "clip=arc" '),
]
# zsh leaves a quote open where more may follow. bash closes it, and opens it anew for what does.
LINES = {
    "bash": [
        *BOTH,
        ("lit-byz sweep clip=[none,a", "lit-byz sweep clip=[none,arc"),
        ("lit-byz sweep 'clip=[none,a", "lit-byz sweep 'clip=[none,arc'"),
        ("lit-byz sweep clip='[none,a", "lit-byz sweep clip='[none,arc'"),
        ('lit-byz sweep "attack=[sf,foe@p', 'lit-byz sweep "attack=[sf,foe@published"'),
        ("lit-byz sweep config=g", "lit-byz sweep config=grid\\$\\(touch\\ x\\).yaml "),
        ('lit-byz sweep "config=g', 'lit-byz sweep "config=g'),
    ],
    "zsh": [
        *BOTH,
        ("lit-byz sweep clip=\\[none,a", "lit-byz sweep clip=\\[none,arc"),
        ("lit-byz sweep 'clip=[none,a", "lit-byz sweep 'clip=[none,arc"),
        ("lit-byz sweep clip='[none,a", "lit-byz sweep clip=\\[none,arc"),
        ('lit-byz sweep "attack=[sf,foe@p', 'lit-byz sweep "attack=[sf,foe@published'),
        ("lit-byz sweep config=g", "lit-byz sweep config=grid\\$\\(touch\\ x\\).yaml "),
        ('lit-byz sweep "config=g', 'lit-byz sweep "config=grid\\$(touch x).yaml" '),
    ],
}


@contextmanager
def terminal(shell: str, folder: Path) -> Iterator[int]:
    """A shell at a terminal of its own; gives the end at which a person sits."""
    path = shutil.which(shell)
    assert path is not None, f"{shell} is not installed"
    person, screen = pty.openpty()
    variables = {**environment(folder / "bin"), "HOME": str(folder), "TERM": "dumb", "PS1": "> "}
    process = subprocess.Popen(
        [path, *START[shell][0]],
        cwd=folder,
        env=variables,
        stdin=screen,
        stdout=screen,
        stderr=screen,
        start_new_session=True,
    )
    os.close(screen)
    try:
        yield person
    finally:
        process.kill()
        process.wait()
        os.close(person)


def stands_there(person: int, keys: bytes, told: Path) -> str:
    """The line after these keys."""
    told.unlink(missing_ok=True)
    os.write(person, keys + TELL)
    end, screen = time.monotonic() + 60, b""
    while not told.exists():
        assert time.monotonic() < end, screen
        if select.select([person], [], [], 0.05)[0]:
            screen += os.read(person, 1 << 16)
    return told.read_text()


@pytest.mark.parametrize(
    ("shell", "lines"),
    [
        ("bash", LINES["bash"][5:6]),
        pytest.param("bash", LINES["bash"], marks=pytest.mark.slow),
        pytest.param("zsh", LINES["zsh"], marks=pytest.mark.services),
    ],
)
def test_tab(shell: str, lines: list[tuple[str, str]], tmp_path: Path) -> None:
    install(tmp_path / "bin")
    (tmp_path / "grid$(touch x).yaml").touch()
    told = tmp_path / "told"
    with terminal(shell, tmp_path) as person:
        assert stands_there(person, START[shell][1].encode() + b"\n", told) == ""
        for typed, wanted in lines:
            assert stands_there(person, typed.encode() + b"\t", told) == wanted
            assert stands_there(person, CLEAR, told) == ""
    assert not (tmp_path / "x").exists()
