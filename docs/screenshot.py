"""Take the docs' pictures of MLflow's pages of the newest sweep, and of the docs' first page.

python pipelines/sweep.py
python docs/screenshot.py                      docs/compare.png: its cells on the compare page
python docs/screenshot.py cells                docs/pictures/mlflow_cells.png: what ui opens
python docs/screenshot.py description          docs/pictures/mlflow_description.png
python docs/screenshot.py site                 docs/pictures/docs_first_page.png: of `mkdocs build`
python docs/screenshot.py [--uri sqlite:///mlruns/mlflow.db] [--out PICTURE]

Starts `mlflow ui` on a free port and headless Chromium on a pipe, waits until the page shows what
it should, and prints what it found there as one line of JSON.
"""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs import mlflow_pages
from docs.browser import Chromium, mlflow_ui
from docs.mlflow_pages import WIDE
from lit_byz._passwords import without_passwords
from lit_byz.cli.command import Parser, guarded
from lit_byz.errors import RunFailed
from lit_byz.tracking import Store, default_uri, open_store
from lit_byz.tracking.ledger import Ledger

METRIC = "worst_case/max_accuracy"
PICTURES = {
    "compare": "compare.png",
    "cells": "pictures/mlflow_cells.png",
    "description": "pictures/mlflow_description.png",
    "site": "pictures/docs_first_page.png",
}
# The page's own sizes, in pixels: what is beside the cells' columns, and each of these.
BESIDE, COLUMN = 480, 200
SITE = (1280, 800)  # the docs' first page: what a laptop shows of it


@dataclass(frozen=True)
class Cells:
    """The cells of a sweep: run ids, names and worst-case accuracies, in one order."""

    experiment_id: str
    ids: list[str]
    names: list[str]
    accuracies: list[float]

    @property
    def path(self) -> str:
        """Where MLflow's UI compares them."""
        runs = urllib.parse.quote(json.dumps(self.ids, separators=(",", ":")))
        experiments = urllib.parse.quote(json.dumps([self.experiment_id]))
        return f"/#/compare-runs?runs={runs}&experiments={experiments}"


def newest_cells(store: Store, experiment: str) -> Cells:
    """The cells that have a worst case of the sweep that was worked on last, as it has them."""
    found = store.client.get_experiment_by_name(experiment)
    if found is None:
        raise RunFailed(f"{store.uri}: there is no experiment {experiment}")
    ledger = Ledger(store, str(found.experiment_id))
    result = ledger.result(ledger.newest())
    cells = [cell for cell in result.cells if cell.run_id and cell.worst_case.exact]
    if len(cells) < 2:
        raise RunFailed(f"{store.uri}: the newest sweep has fewer than two cells with results")
    return Cells(
        str(found.experiment_id),
        [str(cell.run_id) for cell in cells],
        [cell.name for cell in cells],
        [cell.worst_case.mean for cell in cells],
    )


# JavaScript: one section of the page, the row of a metric in its table, and the names of the runs.
SECTION = """[...document.querySelectorAll("[class*=collapse-item]")].find(
    item => item.querySelector("[aria-label='collapse NAME']"))"""
ROW = f"""(() => {{
    const section = {SECTION.replace("NAME", "Metrics")};
    const link = section && [...section.querySelectorAll("a")].find(
        a => a.textContent === "{METRIC}");
    if (!link) return null;
    const top = link.parentElement.style.top;
    const cells = [...section.querySelectorAll("[role=grid]")[1].querySelectorAll("div")];
    return cells.filter(cell => cell.style.top === top && cell.style.position === "absolute")
        .sort((a, b) => parseFloat(a.style.left) - parseFloat(b.style.left))
        .map(cell => cell.textContent);
}})()"""
NAMES = """[...document.querySelectorAll("th")].filter(
    head => head.textContent === "Run Name:").flatMap(
    head => [...head.parentElement.querySelectorAll("td")].map(cell => cell.innerText.trim()))"""
# The boxes that choose what the plot shows, and what is chosen: 0 for params, 1 for metrics.
CHOICE = "document.querySelectorAll('[class*=collapse-item] [class*=select-multiple]')[PLACE]"
CHOSEN = f"[...{CHOICE}.querySelectorAll('[class*=selection-item-content]')].map(i => i.innerText)"


def compare(page: Chromium, address: str, cells: Cells) -> dict[str, Any]:
    """Open the compare page, bring the worst case into the picture, and read what it shows."""
    page.call("Page.navigate", url=address + cells.path)
    shown = f"({NAMES}).length === {len(cells.names)} && ({ROW} || []).length"
    page.wait_for(shown, f"{len(cells.names)} runs and {METRIC}")
    assistant = """document.querySelector(
        "[data-component-id='mlflow.assistant.chat_panel.close']")"""
    if page.evaluate(f"Boolean({assistant})"):
        page.click(assistant, "the assistant's button")
        page.wait_for(f"!{assistant}", "itself without the assistant")
    switch = """document.querySelector("[aria-label='Parameters - Show diff only']")"""
    page.click(switch, "the switch of the parameters")
    page.wait_for(f"{switch}.ariaChecked === 'true'", "only the parameters that differ")
    _plot(page, cells)
    section = SECTION.replace("NAME", "Artifacts")
    page.resize(int(page.evaluate(f"({section}).getBoundingClientRect().top")))
    names, values = page.evaluate(NAMES), page.evaluate(ROW)
    return {"url": address + cells.path, "metric": METRIC, "names": names, "values": values}


def _plot(page: Chromium, cells: Cells) -> None:
    """Have the plot show the worst case over the settings that the cells are named after."""
    axes = {part.split("=")[0] for name in cells.names for part in name.split(", ")}
    params, metrics = (CHOSEN.replace("PLACE", place) for place in "01")
    for place, chosen in enumerate((params, metrics)):
        for name in page.evaluate(chosen):
            if place == 0 and name.removesuffix(".name") in axes:
                continue
            item = f"""[...{CHOICE.replace("PLACE", str(place))}.querySelectorAll(
                "[class*=selection-item-content]")].find(i => i.innerText === "{name}")
                .parentElement.querySelector("[class*=selection-item-remove]")"""
            page.click(item, f"a way to leave out {name}")
            page.wait_for(f"!{chosen}.includes({name!r})", f"the plot without {name}")
    page.click(
        f"{CHOICE.replace('PLACE', '1')}.querySelector('[class*=select-selector]')", "metrics"
    )
    option = f"""[...document.querySelectorAll("[class*=select-item-option]")].find(
        option => option.textContent === "{METRIC}" && option.getBoundingClientRect().width)"""
    page.click(option, f"{METRIC} among the metrics")
    drawn = f"""[...document.querySelectorAll(".axis-title")].some(
        title => title.textContent === "{METRIC}")"""
    page.wait_for(f"{metrics}.includes({METRIC!r})", f"{METRIC} chosen")
    page.wait_for(drawn, f"{METRIC} in its plot")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Escape", windowsVirtualKeyCode=27)
    page.wait_for(f"!({option})", "the plot without the list of metrics")


def first_page(site: Path, out: Path) -> dict[str, Any]:
    """Open the docs' first page as it was built, and read its headings and pictures."""
    built = site.resolve() / "index.html"
    if not built.exists():
        raise RunFailed(f"{built}: the site is not built; mkdocs build makes it")
    with Chromium(SITE[0]) as page:
        page.resize(SITE[1])
        page.call("Page.navigate", url=built.as_uri())
        drawn = "[...document.querySelectorAll('article img')].map(image => image.naturalWidth)"
        page.wait_for(f"({drawn}).length && ({drawn}).every(Boolean)", "its pictures")
        headings = (
            "[...document.querySelectorAll('h1, h2')].map(each => each.firstChild.textContent)"
        )
        found = {"headings": page.evaluate(headings), "pictures": page.evaluate(drawn)}
        page.picture(out)
    return found


def main(arguments: Sequence[str]) -> int:
    parser = Parser(__doc__ or "")
    shown = without_passwords(default_uri()).replace("%", "%%")
    parser.add_argument("--uri", default=default_uri(), help=f"of the store; default: {shown}")
    parser.add_argument("--experiment", default="lit_byz", help="default: %(default)s")
    parser.add_argument("--site", type=Path, default="site", help="of the docs; default: site")
    parser.add_argument("what", nargs="?", choices=PICTURES, default="compare")
    parser.add_argument("--out", type=Path, help="default: where the docs have it")
    options = parser.parse_args(arguments)
    out = options.out or Path(__file__).parent / PICTURES[options.what]
    if options.what == "site":
        sys.stdout.write(json.dumps(first_page(options.site, out)) + "\n")
        return 0
    store = open_store(options.uri)
    cells = newest_cells(store, options.experiment)
    wide = BESIDE + COLUMN * (len(cells.names) + 1) if options.what == "compare" else WIDE
    with mlflow_ui(options.uri) as address, Chromium(wide) as page:
        if options.what == "compare":
            found = compare(page, address, cells)
        else:
            show = mlflow_pages.cells if options.what == "cells" else mlflow_pages.description
            found = show(page, address, store, options.experiment)
        page.picture(out)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main))
