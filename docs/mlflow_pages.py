"""What MLflow shows at first sight: the ranked cells of a study, and its description."""

import time
from typing import Any

from docs.browser import Chromium
from lit_byz.tracking import Store
from lit_byz.tracking.ledger import Ledger
from lit_byz.tracking.page import page_of, page_of_run

# Sizes of the pictures, in pixels.
WIDE, TALL_CELLS, TALL_DESCRIPTION = 1600, 480, 1180
ROWS = """[...document.querySelectorAll("[role=row][row-id], [role=row][row-index]")]"""
# The texts of the table by row, a cell under the id of its column; rows may be split in two parts.
TABLE = f"""(() => {{
    const rows = {{}};
    for (const row of {ROWS}) {{
        const place = row.getAttribute("row-index");
        if (place === null) continue;
        rows[place] = rows[place] || {{}};
        for (const cell of row.querySelectorAll("[role=gridcell]"))
            rows[place][cell.getAttribute("col-id")] = cell.innerText.trim().split("\\n").pop();
    }}
    return Object.keys(rows).sort((a, b) => a - b).map(place => rows[place]);
}})()"""
NAME = "attributes.`Run Name`"
ASSISTANT = """document.querySelector(
    "[data-component-id='mlflow.assistant.chat_panel.close']")"""
DESCRIPTION = """[...document.querySelectorAll("table")].find(
    table => table.innerText.includes("worst case"))"""
MORE = """[...document.querySelectorAll("button, a")].find(
    button => button.innerText.trim() === "Show more")"""


def without_assistant(page: Chromium) -> None:
    """Close the panel that MLflow opens beside everything."""
    if page.evaluate(f"Boolean({ASSISTANT})"):
        page.click(ASSISTANT, "the assistant's button")
        page.wait_for(f"!{ASSISTANT}", "itself without the assistant")


def cells(page: Chromium, address: str, store: Store, experiment: str) -> dict[str, Any]:
    """Open the link of the newest study, and read its table."""
    ledger = Ledger(store, store.experiment(experiment))
    result = ledger.result(ledger.newest())
    found = page_of(store, result)
    page.resize(TALL_CELLS)
    page.call("Page.navigate", url=address + found.path)
    shown = f"{TABLE}.filter(row => row[{NAME!r}]).length >= {len(result.cells)}"
    page.wait_for(shown, f"{len(result.cells)} cells")
    without_assistant(page)
    page.wait_for(shown, f"{len(result.cells)} cells")
    return {"url": address + found.path, "rows": page.evaluate(TABLE)}


def description(page: Chromium, address: str, store: Store, experiment: str) -> dict[str, Any]:
    """Open the page of the newest study's own run, and read its description."""
    ledger = Ledger(store, store.experiment(experiment))
    run_id = ledger.newest()
    found = page_of_run(store, ledger.experiment_id, run_id)
    page.resize(TALL_DESCRIPTION)
    page.call("Page.navigate", url=address + found.path)
    page.wait_for(f"Boolean({DESCRIPTION})", "a table of worst cases")
    without_assistant(page)
    if page.evaluate(f"Boolean({MORE})"):
        page.click(MORE, "the rest of the description")
    pictures = """[...document.images].filter(image => image.src.includes("get-artifact"))"""
    page.wait_for(f"{pictures}.some(image => image.naturalWidth > 100)", "the figure")
    page.evaluate(f"{DESCRIPTION}.previousElementSibling.scrollIntoView({{block: 'start'}})")
    time.sleep(0.5)  # it scrolls smoothly
    rows = f"[...{DESCRIPTION}.rows].map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    widths = f"{pictures}.map(image => image.naturalWidth)"
    return {"rows": page.evaluate(rows), "pictures": page.evaluate(widths)}
