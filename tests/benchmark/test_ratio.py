"""Ratios, their intervals, and what they say about a goal."""

import io
import re

import numpy as np
from rich.console import Console

from lit_byz.benchmark import _harness
from lit_byz.benchmark._progress import Cases
from lit_byz.benchmark._ratio import Ratio


def test_interval_holds_the_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(2000):
        times = rng.lognormal(size=15)  # skewed, as times are; their median is 1
        ratio = Ratio.of(list(times), [1.0] * 15)
        held += ratio.low <= 1 <= ratio.high
        assert ratio.low <= ratio.median <= ratio.high
    assert 0.94 < held / 2000 < 0.99


def test_few_repeats_make_a_wide_interval() -> None:
    assert Ratio.of([2.0, 3.0], [1.0, 1.0]) == Ratio(2.5, 2.0, 3.0)
    assert Ratio.of([2.0, 3.0, 9.0], [1.0, 1.0]) == Ratio(2.5, 2.0, 3.0)


def test_verdicts() -> None:
    ratio = Ratio(1.5, 1.4, 1.6)
    assert ratio.verdict(1.6, "≤") == ratio.verdict(1.4, "≥") == "reached"
    assert ratio.verdict(1.3, "≤") == ratio.verdict(1.7, "≥") == "missed"
    assert ratio.verdict(1.5, "≤") == ratio.verdict(1.5, "≥") == "undecided: between 1.4 and 1.6"


def test_verdicts_are_printed() -> None:
    console = Console(file=io.StringIO(), width=40)
    _harness.print_verdicts(console, {"a": True, "b": "missed", "c": "undecided: between 1 and 2"})
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert said.splitlines() == ["reached   a", "missed    b", "undecided c: between 1 and 2"]


class Watched(io.StringIO):
    """A file that remembers what was in it when it was flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[str] = []

    def flush(self) -> None:
        self.flushed.append(self.getvalue())


def test_on_a_pipe_every_case_has_its_lines_at_once() -> None:
    file = Watched()
    with Cases(2, Console(file=file)) as told:
        told.begin("sf, n=11")
        assert file.flushed[-1] == "1/2  sf, n=11 …\n"
        told.end("1.20×")
        assert re.search(r"\n1/2  sf, n=11: 1\.20×, \d+ s\n$", file.flushed[-1])
        told.begin("[red]")
    assert file.getvalue().splitlines()[-1] == "2/2  [red] …"


def test_on_a_terminal_there_is_a_bar() -> None:
    file = io.StringIO()
    with Cases(2, Console(file=file, force_terminal=True, width=80)) as told:
        told.begin("sf, n=11")
        told.end()
    assert "sf, n=11" in file.getvalue()
    assert "1/2" in file.getvalue()
    assert "…" not in file.getvalue()
