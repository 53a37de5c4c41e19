"""Tables, files and figures of breakdown points and of the mis-specified f."""

import csv
import io
from pathlib import Path
from typing import Any

from rich.console import Console

from lit_byz.report.breakdown import (
    ArmResult,
    FullAnswer,
    Level,
    answer,
    as_csv,
    declared_csv,
    declared_figure,
    declared_table,
    figure,
    table,
)
from lit_byz.report.worst_case_table import Summary
from tests.report.test_figures import ink

SCANNED = FullAnswer(3, False, {f: Level(v) for f, v in enumerate((0.9, 0.7, 0.3, 0.6), 1)})
ARMS = {
    "clip=none": ArmResult({2: Level(0.3, kind="at most"), 1: Level(0.2, 0.1, 2)}, 1),
    "clip=arc": ArmResult({2: Level(0.7), 3: Level(0.3, kind="at most")}, 3, scanned=SCANNED),
    "clip=static": ArmResult({2: Level(0.55, kind="at least")}, None, decided=False),
}
MATRICES = {
    "clip=arc": {
        (1, 1): Summary(0.8, 0, 1),
        (1, 2): Summary(0.2, 0.1, 3),
        (2, 2): Summary(0.7, 0, 1),
    }
}


def text_of(made: Any) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(made)
    return console.export_text()


def test_table() -> None:
    text = text_of(table(ARMS, 4, 0.5, "digits"))
    for part in ("≤ 30.0", "20.0 ± 10.0", "≥ 55.0", "f = 3, not monotone", "undecided"):
        assert part in text
    assert answer(None, True, 4) == "holds to f = 4"


def test_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(ARMS))))
    assert [row["by"] for row in rows].count("full grid") == 4
    assert {row["kind"] for row in rows} == {"exact", "at most", "at least"}


def test_figure(tmp_path: Path) -> None:
    figure(ARMS, 4, 0.5, "digits", tmp_path / "all.png")
    figure({}, 4, 0.5, "digits", tmp_path / "none.png")
    assert ink(tmp_path / "all.png") > ink(tmp_path / "none.png")


def test_declared(tmp_path: Path) -> None:
    text = text_of(declared_table(MATRICES, "digits"))
    assert "20.0 ± 10.0" in text
    assert declared_csv(MATRICES).count("clip=arc") == 3
    declared_figure(MATRICES, "digits", tmp_path / "heat.png")
    declared_figure({}, "nothing yet", tmp_path / "none.png")
    assert ink(tmp_path / "heat.png") > 0.1
