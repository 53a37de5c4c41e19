"""Runs of ``scale=smoke`` are called so wherever they are shown, and decide no claim."""

import json
from pathlib import Path

import pytest

from lit_byz.report.paper.claims import UNDECIDED, load_claims
from lit_byz.report.paper.experiment import find
from lit_byz.report.paper.page import Page
from lit_byz.report.paper.render import DRAWINGS, csv_of, render
from lit_byz.report.paper.scorecard import decided, judge
from lit_byz.report.paper.survey import SMOKE
from tests.report.paper._small import EXPERIMENTS, compute, draw, furnish
from tests.report.paper.test_render import made_up


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return furnish(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_figures_and_tables_say_so(name: str, here: Path) -> None:
    found = made_up(find(f"paper/{name}", ["scale=smoke"]))
    drawing = DRAWINGS.get(found.experiment.kind)
    if drawing is not None:
        assert SMOKE in drawing(found).get_suptitle().replace("\n", " ")
    part = render(found, here / "out", [])
    assert part.partial == SMOKE
    assert all(SMOKE in made.title for made in part.tables)
    for path in part.files:
        assert SMOKE in path.read_text(), path
    assert all(SMOKE in line for line in csv_of(found).splitlines()[1:])


@pytest.mark.parametrize("settings", [["scale=smoke"], ["scale='smoke'"], ["seed=[1]"]])
def test_no_claim_is_decided_by_them(settings: list[str], here: Path) -> None:
    surveys = {f"paper/{name}": made_up(find(f"paper/{name}", settings)) for name in EXPERIMENTS}
    judged = judge(load_claims(), surveys)
    assert len(judged) == 4
    if settings == ["seed=[1]"]:
        assert decided(judged) == 4
        return
    assert {j.verdict for j in judged} | {j.verdict_at_ours for j in judged} == {UNDECIDED}
    assert not any(j.measured or j.at_ours or j.seeds for j in judged)


def test_the_page_says_so(here: Path) -> None:
    part = render(made_up(find("paper/table", ["scale=smoke"])), here / "table", ["png"])
    page = Page([SMOKE], [], [part], [])
    page.write_html(here / "index.html")
    page.write_markdown(here / "README.md")
    for path in (here / "index.html", here / "README.md"):
        text = path.read_text()
        assert text.count(SMOKE) >= 3
        assert "No claim is judged" in text
        assert "claims:" not in text


@pytest.mark.slow
def test_runs_that_were_shortened_are_not_the_papers(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Computed, and then asked for with and without ``scale=smoke``."""
    assert compute("experiment=paper/table", "scale=smoke", "rule=cwtm", "clip=arc") == 0
    capsys.readouterr()
    chosen = ["paper/table", "paper/attacks"]
    assert draw(*chosen, "--out", "full", "--formats", "png", "--json") == 0
    claims = json.loads(capsys.readouterr().out)["claims"]
    assert all(claim["verdict"] == UNDECIDED and not claim["measured"] for claim in claims)
    full = (here / "full" / "paper" / "README.md").read_text()
    assert "\n0 finished runs" in full
    smoke = ["scale=smoke", "rule=cwtm", "clip=arc"]
    assert draw(*chosen, *smoke, "--out", "smoke", "--formats", "png", "--json") == 0
    assert json.loads(capsys.readouterr().out)["claims"] == []
    page = (here / "smoke" / "paper" / "README.md").read_text()
    assert page.splitlines()[2] == "Smoke test, the numbers mean nothing."
    assert draw("list", "paper/table", *smoke) == 0
    assert SMOKE in " ".join(capsys.readouterr().out.split())
