"""All commands that the documentation, help texts, examples and experiment files show."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "mkdocs.yml")),
    *sorted((ROOT / "docs").glob("**/*.md")),
    *sorted((ROOT / "docs").glob("*.py")),
    *sorted((ROOT / "examples").glob("*.*")),
    *sorted((ROOT / "lit_byz" / "cli").glob("*.py")),
    *sorted((ROOT / "configs" / "experiment").glob("**/*.yaml")),
]
PROGRAMS = (
    "python|pip|pytest|bash|mkdocs|mlflow|ray|srun|sudo|ssh|lit-byz|pre-commit|apt-get|cffconvert"
)
# At the start of a line or of a code span; our own commands anywhere.
COMMAND = re.compile(
    rf"(?:(?:`|^ *)(?=(?:{PROGRAMS}) )|(?=python (?:pipelines|examples|docs)/))([^`\n]*)",
    flags=re.MULTILINE,
)
# What a reader fills in, and what a test does.
FILLED = {"DIR": "out", "FOLDER": "out", "FILE": "runs.jsonl.gz", "PICTURE": "out.png", "N": "2"}
# A command for which nothing can be filled in: it names what only the reader has, or a script.
# Or a sentence goes on behind it.
OPEN = re.compile(
    r"NAME|COMMAND|WORD|\$typed|\{\w|elsewhere|^python pipelines/train\.py resume=auto$"
    r"| (?:says|makes) "
)
# By a script of a checkout, or by the one door.
OURS = re.compile(
    r"^(?:python pipelines/(\w+)\.py|(?:lit-byz|python -m lit_byz) ([a-z][\w-]*))(?: (.*))?$"
)


@cache
def commands() -> dict[str, Path]:
    """Every command, once, with a file that shows it."""
    found: dict[str, Path] = {}
    for source in SOURCES:
        text = re.sub(r" *\\\n *", " ", source.read_text(encoding="utf-8"))
        for line in COMMAND.findall(text):
            for command in _each(line):
                if not OPEN.search(command):
                    found.setdefault(command, source)
    return found


def _each(line: str) -> Iterator[str]:
    """The commands of a line: parts, alternatives, without explanation, comment or punctuation."""
    line = re.split(r"\s{2,}|\\n|\"[,)]| # ", line.strip())[0]
    if line.count('"') % 2:  # the end of a text in code
        line = line.rpartition('"')[0]
    line = re.sub(r"\[((?:--|[A-Z])[^\]]*)\]", r"\1", line)  # what may be left out is taken
    for part in line.split(" && "):
        words = [_filled(word) for word in part.split() if word not in ("…", "&")]
        spread = next((word for word in words if re.fullmatch(r"\w+(\|\w+)+", word)), None)
        for chosen in [None] if spread is None else spread.split("|"):
            yield " ".join(chosen if word is spread else word for word in words).rstrip(",;:)")


def _filled(word: str) -> str:
    return FILLED.get(word, word)


def of(*programs: str) -> list[str]:
    """The commands that begin with one of ``programs``."""
    return [c for c in commands() if any(f"{c} ".startswith(f"{p} ") for p in programs)]


def ours(command: str) -> tuple[str, str] | None:
    """Which of our commands is called, by either door, and its words; None if it is none of ours.

    >>> ours("lit-byz init-scaling --full")
    ('init_scaling', '--full')
    """
    match = OURS.match(command)
    return None if match is None else ((match[1] or match[2]).replace("-", "_"), match[3] or "")


def of_pipeline(*names: str) -> list[str]:
    """Our commands of these names, as ``name words…``."""
    called = [found for command in commands() if (found := ours(command)) is not None]
    return list(dict.fromkeys(" ".join(each).strip() for each in called if each[0] in names))
