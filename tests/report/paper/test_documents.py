"""What other programs make of the report: LaTeX of its tables, a browser of its page."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from docs.browser import Chromium
from lit_byz.report.paper.claims import load_claims
from lit_byz.report.paper.experiment import catalogue
from lit_byz.report.paper.page import Page
from lit_byz.report.paper.render import Part, render
from lit_byz.report.paper.scorecard import Judged, judge, table
from lit_byz.report.paper.survey import Survey
from tests.report.paper.test_render import made_up

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def surveys() -> dict[str, Survey]:
    """The whole catalogue, as if one seed of everything had been computed."""
    return {e.name: made_up(e) for e in catalogue(["seed=[1]"]) if e.points}


@pytest.fixture(scope="module")
def judged(surveys: dict[str, Survey]) -> list[Judged]:
    return judge(load_claims(), surveys)


@pytest.fixture(scope="module")
def parts(surveys: dict[str, Survey], tmp_path_factory: pytest.TempPathFactory) -> list[Part]:
    folder = tmp_path_factory.mktemp("parts")
    return [render(found, folder / name, ["png"]) for name, found in surveys.items()]


def test_every_table_compiles(parts: list[Part], judged: list[Judged], tmp_path: Path) -> None:
    texts = [path.read_text() for part in parts for path in part.files if path.suffix == ".tex"]
    assert len(texts) == len(parts) >= 32
    texts.append(table(judged).latex())
    body = "\n\\clearpage\n".join(texts)
    document = (
        "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
        f"{body}\n\\end{{document}}\n"
    )
    (tmp_path / "tables.tex").write_text(document, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    pages = re.search(r"Output written on tables.pdf \((\d+) pages", done.stdout)
    assert pages is not None
    assert int(pages[1]) >= len(texts)


def test_the_page_opens_in_a_browser_without_a_network(
    parts: list[Part], judged: list[Judged], tmp_path: Path
) -> None:
    page = tmp_path / "index.html"
    Page(["made up"], judged, parts, []).write_html(page)
    with Chromium(1200) as browser:
        browser.call("Network.enable")
        browser.call(
            "Network.emulateNetworkConditions",
            **{"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
        )
        browser.call("Page.navigate", url=page.as_uri())
        images = browser.wait_for(
            "document.readyState == 'complete' && [...document.images].length", "its pictures"
        )
        assert images == sum(part.picture is not None for part in parts)
        shown = browser.evaluate("[...document.images].every(i => i.naturalWidth > 300)")
        assert shown is True
        rows = browser.evaluate("document.querySelectorAll('table')[0].rows.length")
        assert rows == 1 + sum(bool(j.measured) for j in judged)
        browser.resize(1600)
        picture = tmp_path / "page.png"
        browser.picture(picture)
    pixels = np.asarray(Image.open(picture).convert("L"))
    assert 0.01 < (pixels < 128).mean() < 0.5
