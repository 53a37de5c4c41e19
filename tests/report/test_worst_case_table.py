"""A sweep's table, numbers and figure: what is not known is said, in all of them."""

import csv
import io
import json
from pathlib import Path

import pytest
from matplotlib.image import imread
from rich.console import Console

from lit_byz.report.drawing import pictures
from lit_byz.report.render import render
from lit_byz.report.rendering import console_for, width_of
from lit_byz.report.worst_case_figure import figure
from lit_byz.report.worst_case_table import csv_of, table, tables
from lit_byz.tracking.outcome import Outcome
from lit_byz.tracking.records import CellRecord, CellResult, PlannedRun
from tests.report._results import make_cell, make_study, no_other, text_of
from tests.report.test_figures import ink

WHOLE = make_cell("clip=arc", {"sf": {1: 0.9, 2: 0.8}, "foe": {1: 0.7, 2: 0.85}})
WORSE = make_cell("clip=none", {"sf": {1: 0.3, 2: 0.3}, "foe": {1: 0.1, 2: 0.2}})
FAILED = make_cell("failed", {"sf": {1: 0.95, 2: 0.95}, "foe": {1: "failed", 2: 0.9}})
MISSING = make_cell("missing", {"sf": {1: 0.99}, "foe": {1: None}, "lf": {1: "interrupted"}})
BOUNDED = make_cell("bounded", {"sf": {1: ">= 0.6"}, "foe": {1: 0.65}})
UNKNOWN = make_cell("unknown", {"sf": {1: "failed"}, "foe": {1: "failed"}})
DECIDED = make_cell("decided", {"sf": {1: 0.25}, "foe": {1: None}}, decided=True)
EVERY = [WHOLE, WORSE, FAILED, MISSING, BOUNDED, UNKNOWN, DECIDED]


def row_of(text: str, name: str) -> list[str]:
    """The cells of a row of a printed table."""
    (line,) = [line for line in text.splitlines() if line.lstrip("│ ").startswith(f"{name} ")]
    return [part.strip() for part in line.strip("│").split("│")]


def test_table() -> None:
    text = text_of(table(EVERY, "7 cells"))
    ends = ["unknown", "unknown"]  # of runs that did not record it
    assert row_of(text, "clip=arc") == [
        *("clip=arc", "85.0 ± 7.1", "77.5 ± 10.6", "", "75.0 ± 7.1", *ends),
    ]
    assert row_of(text, "failed") == [
        *("failed", "95.0 ± 0.0", "90.0 (1 failed)", "", "≤ 92.5 (1 failed)", *ends),
    ]
    assert row_of(text, "missing") == ["missing", "99.0", "", "", "≤ 99.0 (2 missing)", *ends]
    assert row_of(text, "bounded") == ["bounded", "≥ 60.0", "65.0", "", "≥ 60.0", *ends]
    assert row_of(text, "unknown") == [
        *("unknown", "failed", "failed", "", "unknown (2 failed)", *ends)
    ]
    assert row_of(text, "decided") == ["decided", "25.0", "", "", "≤ 25.0", *ends]
    assert "≥: at least; ≤: at most" in text
    plain = text_of(table([WHOLE, WORSE], ""))
    assert "≤" not in plain
    assert "≥" not in plain


def test_a_bound_has_no_spread() -> None:
    """Where a run is missing, 100 % stands for it: a deviation would be one of nothing measured."""
    cell = make_cell("clip=arc", {"sf": {1: 0.4, 2: 0.3, 3: None}})
    whole = make_cell("clip=none", {"sf": {1: ">= 0.4", 2: 0.3, 3: 0.2}})
    text = text_of(table([cell, whole], "", ends=False))
    assert row_of(text, "clip=arc")[2] == "≤ 56.7 (1 missing)"
    assert row_of(text, "clip=none")[1:] == ["≥ 30.0", "≥ 30.0"]
    rows = list(csv.DictReader(io.StringIO(csv_of([WHOLE, cell, whole]))))
    spreads = [row["max_accuracy"] for row in rows if row["seed"] == "std"]
    assert [bool(spread) for spread in spreads] == [True, False, False]


def test_seeds_that_are_missing_are_counted_at_their_attack() -> None:
    cell = make_cell("clip=arc", {"foe": {1: 0.4, 2: 0.8, 3: None}, "sf": {1: 0.9, 2: "failed"}})
    row = row_of(text_of(table([cell], "", ends=False)), "clip=arc")
    assert row[1:3] == ["60.0 ± 28.3 (1 missing)", "90.0 (1 failed)"]


def test_the_best_cell_is_one_that_is_exactly_known() -> None:
    """A cell whose worst attack failed looks better than it is."""
    made = table([WHOLE, FAILED, MISSING], "", ends=False)
    shown = list(made.columns[-1].cells)
    assert shown[0].startswith("[bold green]75.0")  # type: ignore[union-attr]
    assert not [text for text in shown[1:] if "green" in str(text)]


def test_csv_has_every_run_and_says_what_became_of_it() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_of(EVERY))))
    runs = [row for row in rows if row["attack"] != "worst case"]
    assert len(runs) == sum(len(cell.record.runs) for cell in EVERY)
    statuses = {(row["cell"], row["attack"], row["seed"]): row["status"] for row in runs}
    assert statuses["failed", "foe", "1"] == "failed"
    assert statuses["missing", "foe", "1"] == "missing"
    assert statuses["missing", "lf", "1"] == "interrupted"
    assert statuses["bounded", "sf", "1"] == "bounded"
    assert {row["max_accuracy"] for row in runs if row["status"] in ("failed", "missing")} == {""}
    means = {row["cell"]: row for row in rows if row["seed"] == "mean"}
    assert means["clip=arc"]["max_accuracy"] == "0.75"
    kinds = {name: row["status"] for name, row in means.items()}
    assert kinds == {
        **{"clip=arc": "exact", "clip=none": "exact", "failed": "at most", "missing": "at most"},
        **{"bounded": "at least", "unknown": "unknown", "decided": "at most"},
    }
    assert means["unknown"]["max_accuracy"] == ""


def ended(name: str, by_attack: dict[str, list[tuple[float, float, float]]]) -> CellResult:
    """A cell of finished runs: the maximum, the last and the mean of the last five, by seed."""
    runs, outcomes = [], {}
    for attack, seeds in by_attack.items():
        for seed, (best, last, mean) in enumerate(seeds, 1):
            identity = f"{name} {attack} {seed}"
            runs.append(PlannedRun(attack, seed, identity, 40))
            outcomes[identity] = Outcome(
                identity, "finished", best, last_accuracy=last, mean_last=mean
            )
    return CellResult(CellRecord(name, runs), outcomes)


ENDED = ended("clip=arc", {"sf": [(0.9, 0.3, 0.5)], "foe": [(0.8, 0.7, 0.6)]})


def test_the_end_of_runs_stands_beside_their_maximum() -> None:
    (whole,) = tables([ENDED], "")
    assert row_of(text_of(whole), "clip=arc") == [
        *("clip=arc", "90.0", "80.0", "80.0", "30.0", "50.0"),
    ]
    rows = list(csv.DictReader(io.StringIO(csv_of([ENDED, BOUNDED]))))
    first, *_ = [row for row in rows if row["attack"] == "sf"]
    assert (first["last_accuracy"], first["last_accuracy_kind"]) == ("0.3", "exact")
    assert (first["mean_last_5"], first["mean_last_5_kind"]) == ("0.5", "exact")
    means = {row["cell"]: row for row in rows if row["seed"] == "mean"}
    assert means["clip=arc"]["mean_last_5"] == "0.5"
    assert (means["bounded"]["last_accuracy"], means["bounded"]["last_accuracy_kind"]) == (
        *("", "unknown"),
    )


@pytest.mark.parametrize("columns", ["80", "100", "300"])
def test_a_terminal_of_100_columns_is_wide_enough(
    columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many attacks and seeds the ends have a table of their own."""
    monkeypatch.setenv("COLUMNS", columns)
    seeds = [(0.9, 0.3, 0.5), (0.8, 0.2, 0.4), (0.7, 0.1, 0.3)]
    attacks = ("sf", "lf", "mimic", "foe", "alie")
    wide = ended("clip=static, clip.C=0.2", dict.fromkeys(attacks, seeds))
    first, second = tables([wide], "a title")
    assert row_of(text_of(second), "clip=static,")[1:] == [
        *("80.0 ± 10.0", "20.0 ± 10.0", "40.0 ± 10.0")
    ]
    assert Console(width=1000).measure(second).maximum <= 100
    assert "last five" not in text_of(first)
    assert len(tables([ended("a", dict.fromkeys(attacks, seeds[:1]))], "")) == 1
    long = ended("clip=static, clip.C=0.2", dict.fromkeys(attacks, seeds[:1]))
    assert len(tables([long], "")) == (2 if columns == "80" else 1)


def test_figure(tmp_path: Path) -> None:
    """A bar for each cell of which something is known, a word for others; bounds are hatched."""
    for name, cells in (
        ("every", EVERY),
        ("exact", [WHOLE]),
        ("bound", [make_cell("clip=arc", {"sf": {1: 0.75}, "foe": {1: None}})]),
        ("unknown", [UNKNOWN]),
        ("none", []),
    ):
        figure(cells, "digits", tmp_path / "new" / f"{name}.png")
    shapes = {path.stem: imread(path).shape for path in (tmp_path / "new").glob("*.png")}
    assert shapes["every"][0] > shapes["exact"][0]
    inks = {name: ink(tmp_path / "new" / f"{name}.png") for name in shapes}
    assert inks["every"] > inks["unknown"]
    assert inks["exact"] > inks["none"]
    assert inks["none"] < inks["unknown"] < inks["exact"]


@pytest.mark.filterwarnings("error:constrained_layout")
def test_long_names_and_many_attacks_leave_room_for_the_bars(tmp_path: Path) -> None:
    """As in a large sweep that was interrupted early: matplotlib warns where nothing has room."""
    attacks = {attack: {1: None} for attack in ("lf", "mimic", "foe", "alie", "zero", "span")}
    cells = [
        make_cell(f"workers.f={f}, rule=gm, clip=arc", {"sf": {1: 0.5}, **attacks})
        for f in range(1, 5)
    ]
    figure(cells, "digits", tmp_path / "many.svg")
    text = (tmp_path / "many.svg").read_text()
    assert "(missing: 6 of 7 attacks)" in text
    assert "f = 4, geometric median (GM), " in text  # its first line


def test_a_narrow_terminal_cuts_no_name_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """And where there is none, lines are as long as tables need."""
    attacks = {attack: {1: 0.5} for attack in ("foe@coarse", "alie@coarse", "foe", "alie", "mimic")}
    made = table([make_cell("workers.f=1, rule=cwtm, clip=none", attacks)], "", ends=False)
    monkeypatch.setenv("COLUMNS", "60")
    narrow = io.StringIO()
    Console(file=narrow, width=60).print(made)
    assert "…" not in narrow.getvalue()
    assert console_for([made]).width == 60
    monkeypatch.delenv("COLUMNS")
    assert console_for(["a line", made]).width == max(80, width_of(made)) > 80


def test_report_of_a_sweep(tmp_path: Path) -> None:
    found = render(make_study("sweep", EVERY), tmp_path, no_other)
    assert "21 runs: digits, extreme, f=1, 6 honest workers" in text_of(*found.printed)
    assert found.metrics == {}  # its cells have them
    assert {path.name for path in found.files} == {
        *("worst_case.png", "worst_case.pdf", "worst_case.svg"),
        *("worst_case.csv", "worst_case.txt"),
    }
    assert "(1 failed)" in (tmp_path / "worst_case.txt").read_text()
    content = json.loads(json.dumps(found.content))
    assert content["failed"] == {
        "failed | foe | seed 1": "RuntimeError: it broke",
        "unknown | sf | seed 1": "RuntimeError: it broke",
        "unknown | foe | seed 1": "RuntimeError: it broke",
    }
    assert content["missing"] == ["missing | foe | seed 1", "missing | lf | seed 1"]
    worst = {cell["cell"]: cell["worst_case"] for cell in content["cells"]}
    assert worst["unknown"] is None
    assert worst["bounded"] == {"mean": 0.6, "std": None, "kind": "at least"}
    assert content["cells"][4]["max_accuracy"]["sf"]["1"] == {"value": 0.6, "lower_bound": True}


def test_a_figure_that_is_there_is_not_drawn_again(tmp_path: Path) -> None:
    path = tmp_path / "figure.png"
    figure([WHOLE, WORSE], "title", path)
    before = path.stat().st_ino, path.stat().st_mtime_ns
    figure([WHOLE, WORSE], "title", path)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == before
    for cells, title in (([WORSE, WHOLE], "title"), ([WHOLE], "title"), ([WHOLE], "another")):
        figure(cells, title, path)
        after = path.stat().st_ino, path.stat().st_mtime_ns
        assert after != before
        before = after
    path.write_bytes(b"something else")
    figure([WHOLE], "another", path)
    assert ink(path) > 0
    assert sorted(tmp_path.iterdir()) == sorted(pictures(path))
