"""Several experiments on one page: HTML that needs nothing else, Markdown beside its pictures."""

import base64
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lit_byz.report.paper.experiment import Experiment
from lit_byz.report.paper.render import Part
from lit_byz.report.paper.scorecard import Judged, summary, table
from lit_byz.report.paper.tables import Table

TITLE = "Adaptive Robust Clipping: the paper beside our runs"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; }
caption { text-align: left; color: #444; padding: .3rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .25rem .6rem; text-align: left; }
td { vertical-align: top; }
thead th { border-bottom: 2px solid #444; }
img { max-width: 100%; }
.partial { color: #a33; }
.reproduced { color: #17693b; } .not { color: #a33; } .few { color: #777; }
code { background: #f3f3f3; padding: .1rem .3rem; }
"""
COLOURS = {"reproduced": "reproduced", "not reproduced": "not", "not enough runs": "few"}


@dataclass(frozen=True)
class Page:
    """What goes onto a page: what is known of the runs, the claims, and the experiments."""

    origin: Sequence[str]
    judged: Sequence[Judged]
    parts: Sequence[Part]
    without: Sequence[Experiment]
    """Experiments that have no runs yet."""

    def write_html(self, path: Path) -> None:
        """One file with its pictures inside."""
        body = [f"<h1>{TITLE}</h1>", *(f"<p>{html.escape(line)}</p>" for line in self.origin)]
        body += ["<h2>Scorecard</h2>"]
        body += [_coloured(table(self.judged, undecided=False))] if self.judged else []
        body += [_undecided_line(self.judged, html.escape)]
        for part in self.parts:
            experiment = part.experiment
            body.append(f'<h2 id="{experiment.short}">{html.escape(experiment.place)}</h2>')
            body.append(f"<p>{html.escape(experiment.shows)}</p>")
            if part.partial:
                body.append(f'<p class="partial">{html.escape(part.partial)}</p>')
            body.append(f"<p><code>{html.escape(experiment.command)}</code></p>")
            if part.picture is not None:
                data = base64.b64encode(part.picture.read_bytes()).decode()
                name = html.escape(experiment.place)
                body.append(f'<img alt="{name}" src="data:image/png;base64,{data}">')
            body += [each.html() for each in part.tables]
        body.append(_without_line(self.without, html.escape))
        head = f'<meta charset="utf-8"><title>{TITLE}</title><style>{STYLE}</style>'
        text = "\n".join(body)
        page = f'<html lang="en"><head>{head}</head>\n<body>\n{text}\n</body></html>\n'
        path.write_text(f"<!doctype html>\n{page}", encoding="utf-8")

    def write_markdown(self, path: Path) -> None:
        """The same beside its pictures, which lie in the folders of their experiments."""
        lines = [f"# {TITLE}", "", *self.origin, "", "## Scorecard", ""]
        lines += [table(self.judged, undecided=False).markdown()] if self.judged else []
        lines += [_undecided_line(self.judged, str), ""]
        for part in self.parts:
            experiment = part.experiment
            lines += [f"## {experiment.place}", "", experiment.shows, ""]
            if part.partial:
                lines += [f"*{part.partial}*", ""]
            lines += [f"`{experiment.command}`", ""]
            if part.picture is not None:
                where = part.picture.relative_to(path.parent).as_posix()
                lines += [f"![{experiment.place}]({where})", ""]
            lines += [each.markdown() for each in part.tables]
        lines += [_without_line(self.without, str), ""]
        path.write_text("\n".join(lines), encoding="utf-8")


def _undecided_line(judged: Sequence[Judged], quoted: Callable[[str], str]) -> str:
    if not judged:
        return quoted("No claim is judged: the paper has none of these runs.")
    left = [j for j in judged if not j.measured]
    if not left:
        return ""
    return quoted(f"Of {len(left)} further claims there are no runs yet.")


def _without_line(without: Sequence[Experiment], quoted: Callable[[str], str]) -> str:
    if not without:
        return ""
    return quoted(f"No runs yet: {', '.join(experiment.place for experiment in without)}.")


def _coloured(made: Table) -> str:
    """A scorecard whose verdicts are seen at a glance."""
    text = made.html()
    for verdict, name in COLOURS.items():
        text = text.replace(f"<td>{verdict}</td>", f'<td class="{name}">{verdict}</td>')
    return text


__all__ = ["Page", "summary"]
