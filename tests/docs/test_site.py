"""The documentation as a site: built without a warning, and open without a network."""

import importlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from filelock import FileLock
from PIL import Image

from lit_byz.attacks import ATTACKS
from lit_byz.config.components import GROUPS, options
from lit_byz.config.fields import dataclass_fields
from lit_byz.config.schema import SECTIONS
from lit_byz.robust import CLIPS, MIXES, RULES
from tests.cli._documented import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("**/*.md")),
]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
ELSEWHERE = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)


class Loaded(HTMLParser):
    """What a page loads by itself: scripts, styles, pictures, frames; not where its links lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.formulas = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.formulas += tag == "math"
        if tag != "a":
            named = (given.get(name) for name in ("src", "srcset", "href", "data", "poster"))
            self.addresses += [address for address in named if address]


def test_links_of_pages_lead_to_files() -> None:
    """As they are read in a repository, without the site."""
    broken = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target, _ in LINK.findall(text):
            if ":" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_the_readme_lists_every_option() -> None:
    text = (ROOT / "README.md").read_text()
    for registry, group in ((CLIPS, "clip"), (MIXES, "mix"), (RULES, "rule")):
        listed = re.findall(rf"^\| `{group}=(\w+)` \|", text, re.MULTILINE)
        assert sorted(listed) == [*registry]
    table = text[text.index("| `attack=` |") : text.index("## Clipping, mixing, rules")]
    listed = [
        name
        for row in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", table, re.MULTILINE)
        for name in re.findall(r"\w+", row)
    ]
    assert sorted(listed) == [*ATTACKS]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once, also where several processes share these tests."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with FileLock(shared / "site.lock"):
        if not (shared / "site").exists():
            build(shared / "site")
    return shared / "site"


def build(folder: Path) -> None:
    new = folder.with_suffix(".new")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    built = subprocess.run(
        [*command, "--site-dir", str(new)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
        env={"PATH": "", "PYTHONPATH": str(ROOT), "HOME": str(new), "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    new.rename(folder)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    found = []
    for page in pages:
        loaded = Loaded(page.read_text(encoding="utf-8"))
        found += [(page.name, a) for a in loaded.addresses if ELSEWHERE.match(a)]
        for address in loaded.addresses:
            path = address.partition("#")[0].partition("?")[0]
            if path and not re.match(r"data:|mailto:", path) and page.name != "404.html":
                assert (page.parent / path).exists(), f"{page}: {address}"
    for style in site.rglob("*.css"):
        found += re.findall(r"@import[^;]*|url\(['\"]?https?:[^)]*", style.read_text())
    assert found == []
    # Material's script would fetch these, if a page had a diagram or a repository's address.
    everything = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert 'class="mermaid"' not in everything
    assert "md-source" not in everything


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_is_generated(site: Path) -> None:
    configuration = (site / "reference" / "configuration.html").read_text(encoding="utf-8")
    for group in GROUPS:
        for option in options(group):
            assert f"<code>{option}</code>" in configuration
    for name, section in SECTIONS.items():
        for field in dataclass_fields(section):
            assert f"<code>{name}.{field.name}</code>" in configuration
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert "usage: python pipelines/sweep.py" in commands
    for module in ("robust", "attacks"):
        exported = importlib.import_module(f"lit_byz.{module}")
        classes = [name for name in exported.__all__ if isinstance(getattr(exported, name), type)]
        page = (site / "reference" / "api" / f"{module}.html").read_text(encoding="utf-8")
        missing = [name for name in classes if f'id="lit_byz.{module}.{name}"' not in page]
        assert missing == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_formulas_and_examples(site: Path) -> None:
    for name in ("robust_dsgd", "clipping", "rules", "attacks", "measure", "theory"):
        page = (site / "concepts" / f"{name}.html").read_text(encoding="utf-8")
        assert Loaded(page).formulas >= 3
        assert "arithmatex" not in page
        assert "merror" not in page
    rule = (site / "howto" / "own_rule.html").read_text(encoding="utf-8")
    assert "SoftKrum" in rule
    assert 'class="filename"' in rule
    assert "<svg" in (site / "howto" / "notebook.html").read_text(encoding="utf-8")


@pytest.mark.services
@pytest.mark.timeout(900)
def test_the_first_page_in_a_browser(site: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "docs" / "screenshot.py"), "site", "--site", str(site)]
    picture = tmp_path / "page.png"
    done = subprocess.run(
        [*command, "--out", str(picture)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["headings"][:2] == ["lit_byz", "Start"]
    assert min(found["pictures"]) > 500
    with Image.open(picture) as taken:
        assert taken.size == (1280, 800)
