"""What the store has, newest first, and what can be chosen.

lit-byz list                         the newest sweeps, studies and runs of their own
lit-byz list --all --json            all of them, for a program to read
lit-byz list rules                   or attacks, clips, mixes, models, datasets, partitions,
                                     experiments, callbacks, strengths: each with a line about it
lit-byz list tracking.uri=sqlite:///elsewhere/mlflow.db

Of a sweep or a study the worst cases of its cells are shown, of a run its maximal accuracy: on the
test images, but for studies that say validation. The ids are those that lit-byz report and lit-byz
evaluate take.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lit_byz._counted import counted
from lit_byz._door import here
from lit_byz.cli.command import Parser, guarded
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

if TYPE_CHECKING:
    from lit_byz.config.words import Option
    from lit_byz.tracking.shown import Entry

KINDS = {
    "rules": "how the server aggregates",
    "attacks": "what the Byzantine workers send",
    "clips": "how the server clips",
    "mixes": "how it mixes before the rule",
    "models": "what is trained",
    "datasets": "what it is trained on",
    "partitions": "how that is divided among the workers",
    "experiments": "what experiment= names",
    "callbacks": "what trainer.callbacks names",
    "strengths": "how hard foe and alie search",
}
GROUPS = {"mixes": "mix"}
MOST = 20
AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for; returns the exit code."""
    parser = Parser(__doc__ or "")
    parser.add_argument("what", nargs="*", help=f"{', '.join(KINDS)}, tracking.key=value")
    parser.add_argument("--all", action="store_true", help=f"not only the newest {MOST}")
    parser.add_argument("--json", action="store_true", help="print JSON, no table")
    options = parser.parse_intermixed_args(arguments)
    words = [word for word in options.what if "=" not in word]
    settings = [word for word in options.what if "=" in word]
    if len(words) > 1:
        raise BadRequest(f"list: one kind at a time, not {', '.join(words)}")
    for word in settings:
        if words or not word.startswith("tracking."):
            raise BadRequest(f"{word}: a list of the store takes tracking.key=value only")
    if words:
        return _options(words[0], options.json)
    return _store(settings, None if options.all else MOST, options.json)


def _options(kind: str, as_json: bool) -> int:
    """What can be chosen, read from source files: importing the classes takes seconds."""
    from lit_byz.config import words

    if kind not in KINDS:
        raise BadRequest(f"unknown kind '{kind}': {nearest(kind, KINDS)}")
    if kind == "strengths":
        found = [words.Option(name, text) for name, text in words.strengths().items()]
    elif kind in ("experiments", "callbacks"):
        found = getattr(words, kind)()
    else:
        found = words.options(GROUPS.get(kind, kind.removesuffix("s")))
    if as_json:
        from lit_byz.cli.plan import write_json

        rows = [{"name": o.name, "text": o.text, "arguments": list(o.arguments)} for o in found]
        write_json({kind: rows})
        return 0
    width = max((len(_signature(option)) for option in found), default=0)
    for option in found:
        print(f"{_signature(option):<{width}}  {option.text}".rstrip())
    return 0


def _signature(option: "Option") -> str:
    arguments = f"({', '.join(option.arguments)})" if option.arguments else ""
    return f"{option.name} {arguments}".strip()


def _store(settings: Sequence[str], most: int | None, as_json: bool) -> int:
    from lit_byz.config.compose import tracking_section
    from lit_byz.tracking.shown import entries

    found, left = entries(tracking_section(settings), most)
    if as_json:
        from lit_byz.cli.plan import write_json

        write_json({"entries": [entry.plain for entry in found], "left_out": left})
        return 0
    if not found:
        print(here("nothing is there yet; for a first sweep:  python pipelines/sweep.py"))
        return 0
    from rich.console import Console
    from rich.table import Table

    made = Table(box=None, pad_edge=False)
    for column in ("kind", "name", "status"):
        made.add_column(column, overflow="fold")
    made.add_column("accuracy in %", justify="right", no_wrap=True)
    made.add_column("age", justify="right", no_wrap=True)
    made.add_column("id", no_wrap=True)
    for entry in found:
        row = (entry.kind, entry.name, entry.status, accuracy(entry), age(entry.when))
        made.add_row(*(_plain(cell) for cell in row), entry.run_id)
    console = Console()
    # As wide as it needs to be where nobody's window says how wide it is.
    (console if console.is_terminal else Console(width=200)).print(made, highlight=False)
    if left:
        print(f"{left} older ones: --all")
    return 0


def _plain(text: str) -> str:
    """A text in which rich finds no markup."""
    from rich.markup import escape

    return escape(text)


def accuracy(entry: "Entry") -> str:
    """What is known: a run's maximal accuracy, or the range of the exact worst cases of cells.

    Of images held out it says so: all others are on the test images.
    """
    if entry.low is None or entry.high is None:
        return "" if entry.kind == "run" else f"0 of {counted(entry.cells, 'cell')}"
    if entry.kind == "run":
        return f"{100 * entry.low:.1f}"
    range_ = f"{100 * entry.low:.1f}"
    if entry.high > entry.low:
        range_ += f" to {100 * entry.high:.1f}"
    of = "" if entry.exact == entry.cells else f"{entry.exact} of "
    cells = f"({of}{counted(entry.cells, 'cell')})"
    return " ".join([range_, cells, *(["(validation)"] if entry.judged_on == "validation" else [])])


def age(when: float) -> str:
    """How long ago a moment was, in its largest unit.

    >>> age(time.time() - 7300)
    '2 h'
    """
    seconds = max(0.0, time.time() - when)
    for length, unit in AGES:
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return "now"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(run, argv)
