"""One experiment's figure and tables as files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.report.paper import curves, labels, style, worst_cases
from lit_byz.report.paper.experiment import Experiment
from lit_byz.report.paper.survey import SMOKE, Survey
from lit_byz.report.paper.tables import Table, tables
from lit_byz.report.rendering import as_csv
from lit_byz.report.worst_case_table import COLUMNS, run_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWINGS: dict[str, Callable[[Survey], "Figure"]] = {
    "worst_case": worst_cases.draw,
    "accuracy": curves.draw_accuracy,
    "thresholds": curves.draw_thresholds,
    "gain": worst_cases.draw_gain,
}


@dataclass(frozen=True)
class Part:
    """What a report has of an experiment: its tables, and the files that were written."""

    experiment: Experiment
    tables: Sequence[Table]
    files: Sequence[Path]
    partial: str

    @property
    def picture(self) -> Path | None:
        return next((path for path in self.files if path.suffix == ".png"), None)


def render(found: Survey, folder: Path, formats: Sequence[str]) -> Part:
    """Draw an experiment as far as there are runs, and write its tables and numbers."""
    experiment = found.experiment
    made = tables(found)
    files: list[Path] = []
    drawing = DRAWINGS.get(experiment.kind)
    folder.mkdir(parents=True, exist_ok=True)
    if drawing is not None and experiment.form != "table":
        files += style.save(drawing(found), folder, experiment.short, formats)
    markdown = folder / f"{experiment.short}.md"
    markdown.write_text("\n".join(table.markdown() for table in made), encoding="utf-8")
    tex = folder / f"{experiment.short}.tex"
    tex.write_text("% needs \\usepackage{booktabs}\n" + "\n".join(t.latex() for t in made), "utf-8")
    numbers = folder / f"{experiment.short}.csv"
    numbers.write_text(csv_of(found), encoding="utf-8")
    return Part(experiment, made, [*files, markdown, tex, numbers], found.partial)


def csv_of(found: Survey) -> str:
    """Every number: a line per run, and four per cell's worst case at a strength."""
    rows: list[list[Any]] = []
    for cell in found.cells:
        rows += run_rows(cell.result)
        for strength in [None] if cell.baseline else found.strengths:
            worst, begun = cell.at(strength), cell.begun_at(strength).seeds
            name = ", ".join(["worst case", *([strength] if strength else [])])
            if worst.bounds:
                numbers = {"mean": worst.mean, "std": worst.std, "seeds": worst.seeds}
                for what, value in {**numbers, "seeds begun": begun}.items():
                    row = [cell.result.name, name, what, value, worst.lower_bound, worst.kind]
                    rows.append(row)
    if found.experiment.smoke:
        rows = [[*row[:-1], f"{row[-1]} ({SMOKE})"] for row in rows]
    return as_csv(COLUMNS, rows)


def render_labels(experiment: Experiment, folder: Path, formats: Sequence[str]) -> Part:
    """The figure of the partitions, which takes data and no runs."""
    files = style.save(labels.draw_labels(experiment), folder, experiment.short, formats)
    return Part(experiment, [], files, "")
