"""Tables as data, and as a terminal, Markdown, LaTeX and HTML show them."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lit_byz.report.paper.curves import curve_of
from lit_byz.report.paper.survey import (
    BASELINE,
    Cell,
    Survey,
    attack_panels,
    complete_runs,
    grouped,
    mean_and_std,
)
from lit_byz.report.paper.words import STRENGTHS
from lit_byz.report.paper.worst_cases import places_of
from lit_byz.report.rendering import Summary

if TYPE_CHECKING:
    from rich.table import Table as RichTable

# What LaTeX reads otherwise than it is written.
LATEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{"±": r"$\pm$", "≤": r"$\leq$", "≥": r"$\geq$", "α": r"$\alpha$", "μ": r"$\mu$"},
    **{
        "≈": r"$\approx$",
        "→": r"$\to$",
        "−": "--",
        "…": r"\dots ",
        "∘": r"$\circ$",
        "≠": r"$\neq$",
    },
    **{"<": r"$<$", ">": r"$>$", "~": r"\textasciitilde ", "^": r"\textasciicircum "},
    "\\": r"\textbackslash ",
}


@dataclass(frozen=True)
class Table:
    """Rows of text below a header; the first ``names`` columns say what a row is."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1

    def for_terminal(self) -> "RichTable":
        from rich.markup import escape
        from rich.table import Table as RichTable

        made = RichTable(title=escape(self.title), title_justify="left")
        for place, name in enumerate(self.header):
            made.add_column(escape(name), justify="left" if place < self.names else "right")
        for row in self.rows:
            made.add_row(*(escape(text) for text in row))
        return made

    def markdown(self) -> str:
        marks = ["---" if place < self.names else "---:" for place in range(len(self.header))]
        lines = [self.header, marks, *self.rows]
        shown = [
            "| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in lines
        ]
        return "\n".join([f"**{self.title}**", "", *shown, ""])

    def latex(self) -> str:
        """A ``tabular`` with booktabs, to be put into a document as it is."""
        columns = "l" * self.names + "r" * (len(self.header) - self.names)
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{latex(self.title)}}}"]
        lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _latex_row(self.header)]
        lines += [r"\midrule", *(_latex_row(row) for row in self.rows)]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])

    def html(self) -> str:
        head = "".join(f"<th>{html.escape(text)}</th>" for text in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>"
            for row in self.rows
        )
        caption = f"<caption>{html.escape(self.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def latex(text: str) -> str:
    """A text as LaTeX wants it.

    >>> latex("C = 2: 88.2 ± 0.4 %")
    'C = 2: 88.2 $\\\\pm$ 0.4 \\\\%'
    """
    return "".join(LATEX.get(character, character) for character in text)


def _latex_row(row: Sequence[str]) -> str:
    return " & ".join(latex(text) for text in row) + r" \\"


def shown(cell: Cell, strength: str | None) -> str:
    """A worst case in per cent, with its spread and the number of seeds; "" where unknown.

    A bound has no spread. Where further seeds were begun, it says how many were in all.
    """
    found = cell.at(strength)
    if not found.bounds:
        return ""
    text = str(Summary(found.mean, found.std, found.seeds, found.kind))
    begun = cell.begun_at(strength).seeds
    return f"{text} ({found.seeds})" + (f", {begun} begun" if begun > found.seeds else "")


def tables(found: Survey) -> list[Table]:
    """The numbers of an experiment; of worst cases, a table for each strength."""
    kind = found.experiment.kind
    if kind == "accuracy":
        return [_accuracies(found)]
    if kind == "attacks":
        return [_by_attack(found, strength) for strength in found.strengths]
    if kind == "thresholds":
        return [_thresholds(found)]
    return [_worst_cases(found, strength) for strength in found.strengths]


def _title(found: Survey, what: str, strength: str | None) -> str:
    parts = [f"{found.experiment.place}: {what}", STRENGTHS.get(strength or "", "")]
    parts += ["in brackets the number of seeds", found.left_out([strength]), found.partial]
    return "; ".join(part for part in parts if part)


def _worst_cases(found: Survey, strength: str | None) -> Table:
    experiment = found.experiment
    keys = [*experiment.panels, *([experiment.y] if experiment.y else [])]
    methods = list(dict.fromkeys(found.method(cell) for cell in found.methods))
    rows = []
    for title, cells in grouped(found.methods, keys).items():
        for place in places_of(found):
            here = {found.method(c): c for c in cells if c.word(experiment.x) == place}
            if not here:
                continue
            values = [shown(here[name], strength) if name in here else "" for name in methods]
            dsgd = _baseline(found, next(iter(here.values())))
            rows.append([*([title] if keys else []), place, *values, dsgd])
    header = [*([""] if keys else []), "", *methods, BASELINE]
    title = _title(found, "worst-case maximal accuracy in %", strength)
    return Table(title, header, rows, names=2 if keys else 1)


def _baseline(found: Survey, cell: Cell) -> str:
    """A cell's baseline, and of how many honest workers where these are others."""
    baseline = found.baseline_of(cell)
    text = "" if baseline is None else shown(baseline, None)
    if baseline is None or not text or baseline.honest == cell.honest:
        return text
    return f"{text}, {baseline.honest} honest"


def _accuracies(found: Survey) -> Table:
    """Maximal and last accuracy under each attack."""
    rows = []
    several = "attack" in found.experiment.panels
    for title, cells in found.panels().items():
        for word, label, strength in attack_panels(found):
            attack = f"{word} ({strength})" if strength else word
            name = ", ".join(
                part for part in (title, attack if several or strength else "") if part
            )
            rows += [
                [name, found.method(cell), *_highest_and_last(found, cell, label)] for cell in cells
            ]
    for baseline in found.baselines:
        label = baseline.result.attacks[0]
        title = baseline.word("partition") if len(found.baselines) > 1 else ""
        rows.append([title, BASELINE, *_highest_and_last(found, baseline, label)])
    title = _title(found, "accuracy in %", None)
    return Table(title, ["", "method", "maximal", "last"], rows, names=2)


def _highest_and_last(found: Survey, cell: Cell, attack: str) -> list[str]:
    runs = complete_runs(cell, attack)
    texts = []
    for key in ("test/max_accuracy", "test/accuracy"):
        values = [value for run in runs if (value := cell.metric(run, key)) is not None]
        texts.append(of_seeds(values))
    return texts


def of_seeds(values: Sequence[float], scale: float = 100.0, digits: int = 1) -> str:
    """Mean ± deviation (number of seeds); "" where there are none."""
    if not values:
        return ""
    middle, spread = mean_and_std(values)
    text = f"{scale * middle:.{digits}f}"
    if len(values) > 1:
        text += f" ± {scale * spread:.{digits}f}"
    return f"{text} ({len(values)})"


def _by_attack(found: Survey, strength: str | None) -> Table:
    """A row for each attack, a column for each way of clipping, as the paper's ResNet tables."""
    methods = {found.method(cell): cell for cell in found.methods}
    rows = []
    for word, label, of in attack_panels(found):
        if of not in (None, strength):
            continue
        texts = [_highest_and_last(found, cell, label)[0] for cell in methods.values()]
        rows.append([word, *texts])
    rows.append(["worst case", *(shown(cell, strength) for cell in methods.values())])
    return Table(_title(found, "maximal accuracy in %", strength), ["", *methods], rows)


def _thresholds(found: Survey) -> Table:
    from lit_byz.report.paper.measures import follows, trend

    rows = []
    for cell in found.methods:
        for word, label, strength in attack_panels(found):
            name = f"{word} ({strength})" if strength else word
            falls, moves = [], []
            for run in cell.runs(label):
                threshold = curve_of(found, [run], cell, "clip/threshold")
                norm = curve_of(found, [run], cell, "honest/mean_norm")
                falls += [value for value in [trend(threshold)] if value is not None]
                moves += [value for value in [follows(threshold, norm)] if value is not None]
            rows.append([name, of_seeds(falls, 1, 2), of_seeds(moves, 1, 2)])
    header = ["attack", "C_t, last tenth / first", "correlation with the honest mean's norm"]
    return Table(_title(found, "the threshold", None), header, rows)
