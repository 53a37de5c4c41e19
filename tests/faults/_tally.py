"""How many faults there were, and what was looked at after them."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.faults._records import Verdict

PROPERTY = "faults"
COUNTS = ("faults", "runs", "points", "lost", "doubled", "wrong", "attempts", "resumed")


def entry(kind: str, faults: int, verdict: Verdict | None = None) -> tuple[str, dict[str, Any]]:
    """What a test's report carries, from whichever process it ran in."""
    found = Verdict() if verdict is None else verdict
    seen = {name: getattr(found, name) for name in COUNTS if name not in ("faults", "wrong")}
    return PROPERTY, {"kind": kind, "faults": faults, "wrong": len(found.wrong), **seen}


def lines(reports: Iterable[pytest.TestReport]) -> list[str]:
    """A line for each kind of fault, and their sum."""
    kinds: dict[str, dict[str, int]] = {}
    total = dict.fromkeys(COUNTS, 0)
    for report in reports:
        for name, found in report.user_properties:
            if name == PROPERTY and report.when == "call":
                kind = kinds.setdefault(found["kind"], dict.fromkeys(COUNTS, 0))  # type: ignore[index]
                for count in COUNTS:
                    kind[count] += found[count]  # type: ignore[index]
                    total[count] += found[count]  # type: ignore[index]
    if not kinds:
        return []
    width = max(map(len, kinds))
    listed = [f"{kind:{width}}  {_words(counts)}" for kind, counts in sorted(kinds.items())]
    return [*listed, _words(total)]


def _words(counts: dict[str, int]) -> str:
    text = (
        f"faults: {counts['faults']}, runs checked: {counts['runs']}, "
        f"metric points checked: {counts['points']}, lost {counts['lost']}, "
        f"doubled {counts['doubled']}"
    )
    if counts["wrong"]:
        text += f", otherwise wrong {counts['wrong']}"
    if counts["resumed"]:
        text += f", gone on with {counts['resumed']}"
    return text + (f", attempts given up {counts['attempts']}" if counts["attempts"] else "")
