"""Reference pages, made from what the code itself says when the site is built.

A page asks for its contents with a comment, `<!-- generated: configuration -->`, so that it can be
read without the site too, where it says which command prints the same.
"""

import contextlib
import importlib
import inspect
import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_origin

from lit_byz.cli.door import COMMANDS as DOOR
from lit_byz.config import sources
from lit_byz.config.components import GROUPS, component_fields, options, registry
from lit_byz.config.fields import REQUIRED, Field, dataclass_fields, describe
from lit_byz.config.schema import NOT_IDENTITY, SECTIONS, Config

MARKER = re.compile(r"<!-- generated: (?P<what>\w+) ?(?P<of>[\w.]*) -->")
PIPELINES = Path(__file__).parents[2] / "pipelines"
COMMANDS = (  # those that are used most come first
    "train",
    "sweep",
    "tune",
    "init_scaling",
    "breakdown",
    "report",
    "evaluate",
    "benchmark",
    "data",
    "cluster",
    "ui",
    "list",
    "completion",
)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill the places of a page that are to be generated."""
    return MARKER.sub(lambda found: MAKERS[found["what"]](found["of"]), markdown)


def _api(module: str) -> str:
    return f"::: {module}"


def _configuration(_: str) -> str:
    return "\n".join([*_groups(), *_keys(), *_experiments()])


def _groups() -> Iterator[str]:
    chosen = sources.load(sources.config_dir() / "base.yaml").content
    for group in GROUPS:
        known = registry(group)
        yield f"\n### {group}\n\nDefault: `{group}={chosen[group]}`. Own classes: `{known.base}`.\n"
        yield "| option | what it is | arguments and defaults |\n|---|---|---|"
        for option in options(group):
            path = sources.find(group, option)
            settings = sources.load(path).content if path else {}
            name = str(settings.get("name", option))
            fields, _ = component_fields(group, name)
            arguments = "<br>".join(_argument(group, field, settings) for field in fields)
            text = (inspect.getdoc(known[name]) or "").split("\n")[0]
            yield f"| `{option}` | {_cell(text)} | {arguments} |"


def _argument(group: str, field: Field, settings: dict[str, Any]) -> str:
    default = settings.get(field.name, field.default)
    needed = default is REQUIRED
    text = f"`{group}.{field.name}`" if needed else f"`{group}.{field.name}={_yaml(default)}`"
    kind = "must be given" if needed else describe(field.hint)
    return f"{text} ({_cell(kind)})"


def _keys() -> Iterator[str]:
    yield "\n## Keys\n\nKeys marked ° do not change what a run computes, nor its identity.\n"
    root = [field for field in dataclass_fields(Config) if field.name not in {*SECTIONS, *GROUPS}]
    yield from _table("", root)
    for name, section in SECTIONS.items():
        yield f"\n### {name}\n\n{(section.__doc__ or '').strip()}\n"
        yield from _table(name, dataclass_fields(section))


def _table(section: str, fields: list[Field]) -> Iterator[str]:
    yield "| key | default | allowed | what it is |\n|---|---|---|---|"
    for field in fields:
        key = f"{section}.{field.name}" if section else field.name
        mark = " °" if NOT_IDENTITY & {key, section} else ""
        default = _yaml(field.default)
        yield f"| `{key}`{mark} | `{default}` | {_allowed(field)} | {_cell(field.text)} |"


def _allowed(field: Field) -> str:
    kind = describe(field.hint)
    if get_origin(field.hint) is Literal or field.domain is None:
        return _cell(kind)
    return _cell(f"{kind}, {field.domain}")


def _experiments() -> Iterator[str]:
    yield "\n## Experiments\n\n`experiment=NAME` takes a file of `configs/experiment/`.\n"
    yield "| name | what it is |\n|---|---|"
    for name in sources.files("experiment"):
        path = sources.find("experiment", name)
        assert path is not None
        text = path.read_text(encoding="utf-8")
        comment = re.match(r"((?:#.*\n)+)", text)
        words = " ".join(re.sub(r"^# ?", "", comment[0], flags=re.MULTILINE).split())
        yield f"| `{name}` | {_cell(re.split(r'(?<=[.:]) ', words)[0])} |"


def _commands(_: str) -> str:
    others = {path.stem for path in PIPELINES.glob("*.py")} - {*COMMANDS}
    names = [*COMMANDS, *sorted(others)]
    return "\n".join(f"\n## {name}\n\n```text\n{_help_of(name)}\n```" for name in names)


def _help_of(name: str) -> str:
    """What a command prints for --help, without the list of settings, which has its own page."""
    script = (PIPELINES / f"{name}.py").exists()  # what has none is entered by the door alone
    main = importlib.import_module(f"pipelines.{name}" if script else DOOR[name]).main
    shown = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    try:
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            main(["--help"])
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    typed = f"python pipelines/{name}.py" if script else f"lit-byz {name}"
    text = re.sub(r"^usage: \S+", f"usage: {typed}", shown.getvalue())
    return text.split("\ngroups: group=option chooses")[0].rstrip()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`")


def _yaml(value: Any) -> str:
    import yaml

    if isinstance(value, str):
        return value
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()


MAKERS: dict[str, Callable[[str], str]] = {
    "api": _api,
    "commands": _commands,
    "configuration": _configuration,
}
