"""Links that leave docs/: to the project's own pages, to files, to examples.

On a repository's page such a link opens the file. On the site the project's pages (CONTRIBUTING.md
and its like) are pages too, other files are copied, and an example whose link stands on a line of
its own is shown in its place.
"""

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PROJECT = {
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "README.md": "index.md",
}
LINK = re.compile(r"(?P<before>!?\[[^\]]*\]\()(?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
ALONE = re.compile(r"^\[`?(?P<name>[^\]`]+)`?\]\((?P<target>[^)#\s]+)\)$", re.MULTILINE)
LANGUAGES = {".py": "python", ".yaml": "yaml", ".cff": "yaml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the project's own pages."""
    for name, place in PROJECT.items():
        if name != "README.md":
            text = (ROOT / name).read_text(encoding="utf-8")
            files.append(File.generated(config, place, content=_outside(text, ".", place, files)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Show the examples of a page, and turn its links that leave docs/."""
    place = page.file.src_uri
    if place in PROJECT.values() and place != "index.md":
        return markdown  # turned when it was made
    folder = posixpath.dirname(place)
    shown = ALONE.sub(lambda found: _example(found, f"docs/{folder}"), markdown)
    return _outside(shown, f"docs/{folder}", place, files)


def _target(folder: str, target: str) -> str:
    """A link's target from the root of the repository."""
    return posixpath.normpath(posixpath.join(folder, target))


def _example(found: re.Match[str], folder: str) -> str:
    path = ROOT / _target(folder, found["target"])
    if not path.is_relative_to(ROOT / "examples"):
        return found[0]
    if not path.is_file():
        raise PluginError(f"{found['target']}: there is no such example")
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return _notebook(json.loads(text))
    language = LANGUAGES.get(path.suffix, "text")
    return f'```{language} title="{found["name"]}"\n{text.rstrip()}\n```'


def _notebook(content: dict[str, Any]) -> str:
    """The cells of a notebook with their outputs, as Markdown."""
    parts = []
    for cell in content["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"^# .*\n", "", source))
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/svg+xml" in data:
                drawing = "".join(data["image/svg+xml"])
                parts.append(f"<figure>{drawing[drawing.index('<svg') :].strip()}</figure>")
            elif "text" in output:
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
    return "\n\n".join(parts)


def _outside(markdown: str, folder: str, place: str, files: Files) -> str:
    """Links of a page that is written in ``folder`` and shown at ``place`` of the site."""

    def turned(found: re.Match[str]) -> str:
        target = found["target"]
        if ":" in target or target.startswith(("/", "<")):
            return found[0]
        meant = _target(folder, target)
        inside = meant.startswith("docs/")
        if inside and folder != ".":
            return found[0]
        there = meant.removeprefix("docs/") if inside else PROJECT.get(meant, f"files/{meant}")
        if there.startswith("files/") and files.get_file_from_path(there) is None:
            source = ROOT / meant
            if not source.is_file():
                raise PluginError(f"{place}: {target} leads to no file")
            _copy(files, there, source)
        relative = posixpath.relpath(there, posixpath.dirname(place) or ".")
        return f"{found['before']}{relative}{found['anchor'] or ''})"

    # Not within fences, where brackets are code.
    parts = re.split(r"(^```.*?^```)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(turned, part) for part in parts)


_CONFIG: list[MkDocsConfig] = []


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Keep the settings: a page's turn to speak comes without them."""
    _CONFIG[:] = [config]
    return config


def _copy(files: Files, place: str, source: Path) -> None:
    files.append(File.generated(_CONFIG[0], place, abs_src_path=str(source)))
