"""A study's description in MLflow: what the table says, in the table's words."""

from pathlib import Path

from lit_byz.report.note import GAP, LONGEST, note_of, ranked
from lit_byz.report.rendering import shown_worst_case
from tests.report._results import make_cell, make_study
from tests.report.test_worst_case_table import EVERY, UNKNOWN, WHOLE, WORSE

FILES = [Path("outputs/worst_case.png"), Path("outputs/worst_case.csv"), Path("a.txt")]


def rows(note: str) -> dict[str, list[str]]:
    lines = [line.replace(GAP, "") for line in note.splitlines() if line.startswith("|")]
    found = [line.strip("| ").split(" | ") for line in lines]
    return {cell: rest for cell, *rest in found}


def test_every_cell_is_there_as_the_terminal_shows_it() -> None:
    found = rows(note_of(make_study("sweep", EVERY), FILES))
    for cell in EVERY:
        assert found[cell.name][0] == f"**{shown_worst_case(cell)}**"
    assert found["failed"][0] == "**≤ 92.5 (1 failed)**"
    assert found["missing"][0] == "**≤ 99.0 (2 missing)**"
    assert found["bounded"][0] == "**≥ 60.0**"
    assert found["unknown"] == ["**unknown (2 failed)**", "unknown", "unknown"]
    assert found["clip=arc"][1:] == ["unknown", "unknown"]  # runs that did not record it


def test_the_best_come_first_and_the_unknown_last() -> None:
    assert ranked([UNKNOWN, WORSE, WHOLE]) == [WHOLE, WORSE, UNKNOWN]


def test_figures_are_shown_and_numbers_linked() -> None:
    note = note_of(make_study("sweep", [WHOLE]), FILES)
    assert "![worst\\_case.png](get-artifact?path=worst_case.png&run_uuid=an id)" in note
    assert "[worst\\_case.csv](get-artifact?path=worst_case.csv&run_uuid=an id)" in note
    assert "a.txt" not in note
    assert "mean ± standard deviation over 2 seeds" in note
    assert "≤" not in note


def test_the_number_of_seeds_is_said_of_all_cells() -> None:
    single = make_cell("clip=none", {"sf": {1: 0.5}})
    note = note_of(make_study("sweep", [WHOLE, single]), [])
    assert "mean ± standard deviation over up to 2 seeds" in note
    assert "standard deviation" not in note_of(make_study("sweep", [single, UNKNOWN]), [])


def test_a_large_study_fits() -> None:
    many = [make_cell(f"clip=static, clip.C={c / 100}", {"sf": {1: 0.5}}) for c in range(900)]
    note = note_of(make_study("sweep", many), FILES)
    assert len(note) <= LONGEST
    more = [cell for cell in rows(note) if cell.startswith("and ")]
    assert len(more) == 1
    assert len(rows(note)) - 3 + int(more[0].split()[1]) == 900
    assert "get-artifact" in note


def test_names_cannot_break_it() -> None:
    odd = make_cell("rule=a|b](x)<img>", {"sf": {1: 0.5}})
    note = note_of(make_study("sweep", [odd]), [])
    assert f"| rule=a∣b](x)&lt;img&gt; | {GAP}**50.0** |" in note
