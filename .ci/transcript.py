"""Type every command that README, docs, examples, help texts and experiment files show.

``python .ci/transcript.py OUT`` in a fresh clone, in a fresh environment with the README's install:
a line for each command in OUT/transcript.tsv (exit code, seconds until it said something and until
it ended), what it printed beside it. Begun again, it goes on behind what stands there; ``--only``
and ``--but`` choose by a pattern. ``--wheel`` types what needs no clone by ``lit-byz``, in the
folder where it is called. What computes for hours is typed with ``--dry-run``, which the line has.
"""

import argparse
import json
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.cli._documented import commands, ours  # noqa: E402

# What needs another machine, the system's own database, or somebody at a prompt; and what would
# type all of this, or run all of the tests, a second time.
ELSEWHERE = re.compile(
    r"^(?:ssh|srun|sudo|ray (?:start|get-auth-token)|mlflow server|apt-get|bash \.ci|python \.ci)\b"
    r"|--ray-address|\$|pytest --durations|gradients --only my_model"
)
# Without a clone there are no scripts, no examples and no docs.
CLONE = re.compile(r"^(?:python|pip|pytest|mkdocs|pre-commit|bash|cffconvert)\b|examples[./]|docs/")
LONG = re.compile(
    r" experiment=(?:paper/|(?:strength|tune|init_scaling|breakdown|breakdown_declared)_mnist)"
)
SERVERS = re.compile(r"^(?:lit-byz ui|python pipelines/ui\.py|mlflow ui)\b")
# Whether it stood in a page or not, an id is one of this store.
ID = re.compile(r"RUN_ID|\b[0-9a-f]{32}\b")
# A run keeps its best parameters where it is asked to.
KEEPS_THEM = ["lit-byz", "train", "tracking.model=both", "train.steps=40", "train.eval_every=10"]
LINK = re.compile(r"http://(?:127\.0\.0\.1|localhost):\d+")
LIMIT = 3600.0  # seconds


@dataclass(frozen=True)
class Said:
    """What came of a command."""

    code: int
    first: float
    seconds: float
    text: str


def typed(wheel: bool) -> Iterator[str]:
    """The commands as they are typed here, each once."""
    for command in commands():
        if ELSEWHERE.search(command) or (wheel and CLONE.search(_by_the_door(command))):
            continue
        line = _by_the_door(command) if wheel else command
        dry = LONG.search(line) and "scale=smoke" not in line and "report" not in line
        yield f"{line} --dry-run" if dry and "--dry-run" not in line else line


def _by_the_door(command: str) -> str:
    found = ours(command)
    return command if found is None else f"lit-byz {found[0].replace('_', '-')} {found[1]}".strip()


def filled(command: str) -> str:
    """With the id of a run of the store in place of the documentation's."""
    if not ID.search(command):
        return command
    if "which=best" in command:
        subprocess.run(KEEPS_THEM, capture_output=True, check=True)
    kind = "run" if "evaluate" in command else "sweep"
    told = subprocess.run(
        ["lit-byz", "list", "--all", "--json"], capture_output=True, text=True, check=True
    )
    entries = json.loads(told.stdout)["entries"]
    # The newest that the documentation's sentence is true of: an own class is asked for by name.
    found = [e for e in entries if e["kind"] == kind and "examples" not in e["name"]]
    return ID.sub(found[0]["run_id"], command)


def say(command: str) -> Said:
    """Type a command; a server is asked for its page and ended by Ctrl-C."""
    begin = time.monotonic()
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}" if SERVERS.search(command) else command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    first: float | None = None
    text, answered = "", not SERVERS.search(command)
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        while True:
            if waiting.select(0.5):
                if not (part := process.stdout.read()):
                    break
                text += part.decode(errors="replace")
                first = time.monotonic() - begin if first is None else first
            if not answered and (link := LINK.search(text)) and _answers(link[0]):
                text, answered = f"{text}\n[its page answers 200; Ctrl-C]\n", True
                os.killpg(process.pid, signal.SIGINT)
            if time.monotonic() - begin > LIMIT:
                os.killpg(process.pid, signal.SIGKILL)
    code, seconds = process.wait(), time.monotonic() - begin
    return Said(code, seconds if first is None else first, seconds, text)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return int(answer.status) == 200
    except OSError:
        return False


def main() -> int:
    """Type them all; 1 if one of them has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--wheel", action="store_true")
    parser.add_argument("--only", type=re.compile, default=re.compile(""))
    parser.add_argument("--but", type=re.compile, default=re.compile("(?!)"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    table = options.out / "transcript.tsv"
    before = table.read_text().splitlines() if table.exists() else []
    done = {line.split("\t")[0] for line in before}
    failed = 0
    for command in typed(options.wheel):
        if command in done or not options.only.search(command) or options.but.search(command):
            continue
        said = say(filled(command))
        failed += said.code != 0
        number = len(done)
        done.add(command)
        with table.open("a") as file:
            file.write(f"{command}\t{said.code}\t{said.first:.1f}\t{said.seconds:.1f}\n")
        (options.out / f"{number:03}.txt").write_text(f"$ {shlex.quote(command)}\n{said.text}")
        sys.stdout.write(f"exit {said.code}, {said.first:.1f} {said.seconds:.1f} s: {command}\n")
        sys.stdout.flush()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
