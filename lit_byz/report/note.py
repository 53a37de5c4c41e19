"""A study's description in MLflow: its worst cases as a Markdown table, and its figures."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from lit_byz.report.rendering import legend, shown_end, shown_worst_case
from lit_byz.report.tuned import tuned
from lit_byz.report.tuning import of_the_best
from lit_byz.tracking.outcome import MEASURES
from lit_byz.tracking.records import CellResult, StudyResult

NOTE = "mlflow.note.content"
# MLflow takes 8000 characters.
LONGEST = 7500
GAP = "&emsp;"
# What would end a column, or be taken for HTML.
NOT_OURS = str.maketrans({"|": "∣", "<": "&lt;", ">": "&gt;"})
HEADINGS = ("cell", "worst case", "last", "mean of the last five")


def note_of(result: StudyResult, files: Sequence[Path]) -> str:
    """Markdown; ``files`` are kept as artifacts of the study's own run."""
    cells = [cell for cell in result.cells if cell.record.kind in ("cell", "trial")]
    pictures = [path.name for path in files if path.suffix == ".png"]
    numbers = [path.name for path in files if path.suffix == ".csv"]
    below = [f"![{_text(name)}]({_artifact(result.run_id, name)})" for name in pictures]
    below += [f"[{_text(name)}]({_artifact(result.run_id, name)})" for name in numbers]
    chosen = of_the_best(tuned(result)) if result.record.kind == "tuning" else []
    said_first = [part for line in (_title(result), *map(_text, chosen)) for part in (line, "")]
    head = [*said_first, _row(HEADINGS), "|---|---:|---:|---:|"]
    rows = [_row([cell.name or "one cell", *_shown(cell)]) for cell in ranked(cells)]

    def rest(rows: Sequence[str]) -> list[str]:
        said = "; ".join([*_explained(cells), *legend(rows)])
        return ["", said, "", *(line for entry in below for line in (entry, ""))]

    room = LONGEST - len("\n".join([*head, *rest(rows)])) - 40
    kept: list[str] = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            kept.append(_row([f"and {len(rows) - len(kept)} more", "", "", ""]))
            break
        kept.append(row)
    return "\n".join([*head, *kept, *rest(kept)]).strip() + "\n"


def ranked(cells: Sequence[CellResult]) -> list[CellResult]:
    """Cells by worst case, the best first; those of which nothing is known come last."""
    known = [cell for cell in cells if cell.worst_case.kind != "unknown"]
    unknown = [cell for cell in cells if cell.worst_case.kind == "unknown"]
    return [*sorted(known, key=lambda cell: -cell.worst_case.mean), *unknown]


def _shown(cell: CellResult) -> list[str]:
    return [f"**{shown_worst_case(cell)}**", *(shown_end(cell, m) for m in MEASURES[1:])]


def _title(result: StudyResult) -> str:
    return ": ".join(
        _text(part) for part in (result.record.name, result.record.facts["cell"]) if part
    )


def _explained(cells: Sequence[CellResult]) -> list[str]:
    seeds = {cell.worst_case.seeds for cell in cells if cell.worst_case.kind != "unknown"}
    most = max(seeds, default=1)
    over = f"up to {most}" if len(seeds) > 1 else f"{most}"
    spread = f", mean ± standard deviation over {over} seeds" if most > 1 else ""
    images = "test" if all(cell.judged_on == "test" for cell in cells) else "validation"
    worst = f"maximal {images} accuracy in %, the smallest over the attacks{spread}"
    beside = "beside it the same of the last evaluation, and of the mean of the last five"
    return [worst, beside]


def _row(texts: Sequence[str]) -> str:
    first, *others = (text.translate(NOT_OURS) for text in texts)
    # MLflow's page sets columns side by side without a gap.
    return f"| {' | '.join([first, *(f'{GAP}{text}' for text in others)])} |"


def _text(text: str) -> str:
    """Without what Markdown would take for its own."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|" else c for c in text)


def _artifact(run_id: str, name: str) -> str:
    """Relative to MLflow's page, wherever its server puts it."""
    return f"get-artifact?path={quote(name)}&run_uuid={run_id}"
