"""What a config can say, as text for ``--help``."""

import inspect
from pathlib import Path
from typing import Any, Literal, get_origin

import yaml

from lit_byz.config import sources
from lit_byz.config.components import GROUPS, component_fields, options, registry
from lit_byz.config.fields import REQUIRED, Field, dataclass_fields, describe
from lit_byz.config.schema import SECTIONS, Config

_WIDTH = 34


def catalogue() -> str:
    """All groups with their options, all fixed keys with their defaults, and the config files."""
    chosen = sources.load(sources.config_dir() / "base.yaml").content
    lines = ["groups: group=option chooses, group.argument=value sets one of its arguments;"]
    lines += ["an option may also be the dotted path of a class, such as my_module.MyRule"]
    for group in GROUPS:
        lines.append(f"\n  {group} (default: {chosen[group]})")
        for option in options(group):
            signature, text = _option(group, option)
            lines += _row(f"    {signature}", text)
        if group == "attack":
            lines += _strengths()
    lines.append("\nkeys:")
    root = [field for field in dataclass_fields(Config) if field.name not in {*SECTIONS, *GROUPS}]
    for field in root:
        lines += _row(f"  {_assignment(field)}", field.text)
    for name, section in SECTIONS.items():
        for field in dataclass_fields(section):
            lines += _row(f"  {name}.{_assignment(field)}", field.text + _allowed(field))
    lines.append("\nfiles:")
    lines += _row("  config=PATH", "a YAML file of keys, such as --print-config writes")
    lines += _row(
        "  experiment=NAME", f"one of: {', '.join(sources.files('experiment')) or 'none yet'}"
    )
    return "\n".join(lines)


def _strengths() -> list[str]:
    from lit_byz.attacks import STRENGTHS

    rows = [_row(f"      @{name}", text) for name, text in STRENGTHS.items()]
    return [
        "    foe and alie search as hard as NAME@STRENGTH says:",
        *(r for row in rows for r in row),
    ]


def _row(left: str, right: str) -> list[str]:
    if len(left) >= _WIDTH:
        return [left, " " * _WIDTH + right] if right else [left]
    return [f"{left:<{_WIDTH}}{right}".rstrip()]


def _option(group: str, option: str) -> tuple[str, str]:
    """An option with its arguments, and the first line that is written about it."""
    path = sources.find(group, option)
    settings = sources.load(path).content if path else {}
    name = settings.get("name", option)
    fields, _ = component_fields(group, name)
    arguments = ", ".join(
        _assignment(Field(field.name, field.hint, settings.get(field.name, field.default)))
        for field in fields
    )
    if path is None or option in registry(group):
        text = (inspect.getdoc(registry(group)[name]) or "").split("\n")[0]
    else:
        text = _first_comment(path)
    return f"{option} ({arguments})" if arguments else option, text


def _first_comment(path: Path) -> str:
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""


def _assignment(field: Field) -> str:
    return field.name if field.default is REQUIRED else f"{field.name}={_as_yaml(field.default)}"


def _allowed(field: Field) -> str:
    if field.domain is not None:
        return f" ({field.domain})"
    return f" ({describe(field.hint)})" if get_origin(field.hint) is Literal else ""


def _as_yaml(value: Any) -> str:
    if isinstance(value, str):
        return value
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()
