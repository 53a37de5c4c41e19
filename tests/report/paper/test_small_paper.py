"""A small paper, computed, drawn and judged: every kind of figure and table.

``test_render.py`` is the short form: the same from made-up results.
"""

import csv
import json
import re
import statistics
from pathlib import Path

import pytest

from tests.report.paper._small import EXPERIMENTS, compute, draw, furnish

pytestmark = pytest.mark.slow
NAMES = [f"paper/{name}" for name in EXPERIMENTS]


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which one experiment is computed: it has all runs of the others but ``bars``."""
    with pytest.MonkeyPatch.context() as patch:
        folder = furnish(tmp_path_factory.mktemp("paper"), patch)
        assert compute("experiment=paper/lines") == 0
    return folder


@pytest.fixture
def here(computed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(computed)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{computed}/mlruns/mlflow.db")
    return computed


def test_shared_runs_are_computed_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert draw("list", *NAMES, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    by_name = {row["experiment"]: row for row in found["experiments"]}
    assert by_name["paper/lines"]["runs"] == 8 * 2 * 2 + 2
    assert found["done"] == by_name["paper/lines"]["done"]
    assert by_name["paper/bars"]["done"] == 2 * 2 * 2  # none and ARC, extreme: from the others
    assert by_name["paper/bars"]["core_hours_left"] > 0
    for name in ("gain", "table", "curves", "thresholds", "attacks"):
        assert by_name[f"paper/{name}"]["core_hours_left"] == 0


def test_everything_is_on_one_page(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert draw(*NAMES, "--out", "made") == 0
    printed = capsys.readouterr().out
    folder = here / "made" / "paper"
    for name, entry in EXPERIMENTS.items():
        endings = {"md", "tex", "csv"}
        if entry["paper"].get("form") != "table":
            endings |= {"png", "pdf", "svg"}
        assert {path.suffix[1:] for path in (folder / name).iterdir()} == endings
    page = (folder / "index.html").read_text()
    assert page.count('src="data:image/png;base64,') == 5
    # Opens without a network: nothing is fetched.
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert "partial: 8 of 24 runs" in page
    markdown = (folder / "README.md").read_text()
    for link in re.findall(r"\]\((.*?)\)", markdown):
        assert (folder / link).is_file()
    assert "4 claims: 1 reproduced, 2 not reproduced, 1 not enough runs" in printed, printed


def test_numbers_are_those_of_the_runs(here: Path) -> None:
    assert draw("paper/lines", "--out", "one", "--formats", "png") == 0
    folder = here / "one" / "paper" / "lines"
    assert not list(folder.glob("*.pdf"))
    coarse, grid = (folder / "lines.md").read_text().split("**")[2::2]
    rows = list(csv.reader((folder / "lines.csv").read_text().splitlines()))
    cell = "workers.f=1, rule=cwtm, clip=none"
    runs = {(r[1], r[2]): float(r[3]) for r in rows if r[0] == cell and r[2] in ("1", "2")}
    for table, attack in ((coarse, "foe@coarse"), (grid, "foe")):
        worst = [100 * runs[attack, seed] for seed in ("1", "2")]
        expected = f"{statistics.fmean(worst):.1f} ± {statistics.stdev(worst):.1f} (2)"
        assert f"| f = 1 | {expected} |" in table


def test_the_same_runs_make_the_same_files(here: Path) -> None:
    for folder in ("first", "second"):
        assert draw("paper/curves", "--out", folder) == 0
    for path in (here / "first" / "paper" / "curves").iterdir():
        if path.suffix != ".svg":  # which has random names inside
            assert path.read_bytes() == (here / "second/paper/curves" / path.name).read_bytes()


def test_a_smoke_test_says_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compute("experiment=paper/table", "scale=smoke") == 0
    capsys.readouterr()
    assert draw("paper/table", "scale=smoke", "--out", "smoke") == 0
    assert "smoke test, the numbers mean nothing" in " ".join(capsys.readouterr().out.split())
    text = (here / "smoke" / "paper" / "table" / "table.tex").read_text()
    assert "smoke test, the numbers mean nothing" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["paper/nonsense"], "unknown experiment 'paper/nonsense'"),
        (["paper/lines", "--formats", "gif"], "unknown format 'gif'"),
        (["paper/lines", "0123abcd"], "ask for one kind at a time"),
        (["seed=[1]"], "takes tracking.key=value only"),
        (["quickstart"], "is no sweep and no study"),
    ],
)
def test_bad_requests(
    here: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert draw(*words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
