"""Composing a config from defaults, files and the command line, and checking it before any work.

>>> config = compose(["dataset=digits", "model=logreg", "workers.f=2", "train.steps=200"])
>>> config.rule.name, config.rule.f, config.server.f
('cwtm', 2, 2)

Later settings win: the schema's defaults and ``configs/base.yaml``, what the data set's file
recommends, the file of ``experiment=`` or ``config=``, the command line. Choosing an option of a
group replaces its whole section, so that no argument of the previous option is left behind.

A config is composed once, as plain nested dicts; a process that is sent one takes it as it is.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lit_byz.config import sources
from lit_byz.config.checks import CHECKS
from lit_byz.config.components import (
    GROUPS,
    check_section,
    option_settings,
    section_with_defaults,
    split_option,
)
from lit_byz.config.fields import Field, dataclass_fields
from lit_byz.config.schema import SECTIONS, Config
from lit_byz.config.sources import Settings
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

_ROOT = {field.name: field for field in dataclass_fields(Config)}
_VALUES = [field for name, field in _ROOT.items() if name not in {*SECTIONS, *GROUPS}]
_KEYS = {
    name: {field.name: field for field in dataclass_fields(SECTIONS[name])} for name in SECTIONS
}
FILES = ("experiment", "config")
# ``${section.key}``: nearly all interpolations are of this form, and need no parser.
_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
_UNRESOLVED = object()

Plain = dict[str, Any]


def compose(
    overrides: Sequence[str] = (), beneath: Mapping[str, Any] | DictConfig | None = None
) -> DictConfig:
    """The config that ``key=value`` overrides ask for: complete, typed, checked and read-only.

    ``beneath`` are settings below the overrides, such as the plain config of a tracked run.
    Anything wrong raises ``BadRequest`` with one line that names the key.
    """
    if isinstance(beneath, DictConfig):
        beneath = OmegaConf.to_container(beneath)  # type: ignore[assignment]
    return as_config(compose_plain(overrides, beneath))


def compose_plain(overrides: Sequence[str] = (), beneath: Mapping[str, Any] | None = None) -> Plain:
    """The same as nested dicts and lists, many times as fast."""
    asked = sources.parse(overrides, GROUPS)
    chosen = [*_files(asked), *([] if beneath is None else [Settings("", dict(beneath))]), asked]
    base = sources.load(sources.config_dir() / "base.yaml")
    dataset = _choice("dataset", [base, *chosen])[0]
    _, recommended = option_settings("dataset", dataset)
    lower = [base] if recommended is None else [base, recommended]
    plain = _merged([*lower, *chosen])
    if plain["workers"]["f"] == 0 and plain["attack"]["name"] != "none":
        _refuse_idle_attack(plain["attack"]["name"], chosen)
        plain = _merged([*lower, *chosen, Settings("", {"attack": "none"})])
    for check in CHECKS:
        check(plain)
    return plain


def as_config(plain: Mapping[str, Any]) -> DictConfig:
    """A composed config with attributes, as the code that uses one likes it; read-only."""
    config: DictConfig = OmegaConf.create(copy.deepcopy(dict(plain)))
    OmegaConf.set_readonly(config, True)
    return config


def to_plain(config: DictConfig) -> Plain:
    """A config as nested dicts and lists, which ``compose(beneath=…)`` takes back."""
    plain: Plain = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    return plain


def _files(asked: Settings) -> list[Settings]:
    """The settings of the files that the command line names; their keys are taken out of it."""
    named = {key: asked.content.pop(key) for key in FILES if key in asked.content}
    for key, value in named.items():
        if not isinstance(value, str):
            raise BadRequest(f"{key} = {value!r}: must be text")
    found = []
    if "experiment" in named:
        found.append(sources.experiment(named["experiment"]))
    if "config" in named:
        found.append(sources.load(Path(named["config"])))
    return found


def _merged(ordered: Sequence[Settings]) -> Plain:
    """One complete tree of typed values out of all settings."""
    tree: Plain = {field.name: field.default for field in _VALUES}
    tree |= {
        section: {field.name: field.default for field in fields.values()}
        for section, fields in _KEYS.items()
    }
    for settings in ordered:
        _put_over(tree, settings)
    for group in GROUPS:
        option, arguments = _choice(group, ordered)
        tree[group] = section_with_defaults(group, option, arguments)
    return _typed(_resolved(tree))


def _put_over(tree: Plain, settings: Settings) -> None:
    """Put fixed keys over those of the tree."""
    for name, value in settings.content.items():
        if name not in _ROOT:
            raise BadRequest(f"{settings.prefix}unknown key '{name}': {_nearest_key(str(name))}")
        if name in GROUPS:
            continue
        if name not in SECTIONS:
            tree[name] = value
            continue
        if not isinstance(value, dict):
            example = next(iter(_KEYS[name]))
            raise BadRequest(
                f"{settings.prefix}{name} = {value!r}: {name} is a section, set its keys, "
                f"such as {name}.{example}"
            )
        for key, inner in value.items():
            if key not in _KEYS[name]:
                hint = nearest(str(key), _KEYS[name])
                raise BadRequest(f"{settings.prefix}unknown key '{key}' in {name}: {hint}")
            tree[name][key] = inner


def _nearest_key(word: str) -> str:
    """A hint for an unknown first part of a key; it may be one that belongs in a section."""
    for section, fields in _KEYS.items():
        if word in fields:
            return f"did you mean '{section}.{word}'?"
    return nearest(word, {*_ROOT, *FILES})


def _choice(group: str, ordered: Sequence[Settings]) -> tuple[str, Plain]:
    """The option of a group, and the arguments set where it was chosen and above."""
    option: Any = None
    arguments: Plain = {}
    for settings in ordered:
        value = settings.content.get(group, {})
        if not isinstance(value, dict):
            value = {"name": value}
        arguments = dict(value) if "name" in value else {**arguments, **value}
        option = arguments.pop("name", option)
    if not isinstance(option, str):
        raise BadRequest(f"{group} = {option!r}: must be the name of an option or a dotted path")
    if (extra := split_option(group, option)[1]) and (twice := extra.keys() & arguments.keys()):
        raise BadRequest(f"{group}={option}: sets {min(twice)}, and so does {group}.{min(twice)}")
    return option, arguments


def _resolved(tree: Plain) -> Plain:
    """The tree with its ``${…}`` replaced by what they stand for."""
    found = _followed(tree, tree, 0)
    if found is not _UNRESOLVED:
        return dict(found)
    try:
        return OmegaConf.to_container(OmegaConf.create(tree), resolve=True, throw_on_missing=True)  # type: ignore[return-value]
    except OmegaConfBaseException as error:
        reason = str(error.msg or error).split("\n")[0]
        raise BadRequest(f"{error.full_key}: {reason}") from error
    except RecursionError as error:
        raise BadRequest("the ${…} of this config refer to each other in a circle") from error


def _followed(value: Any, tree: Plain, depth: int) -> Any:
    """A value with plain references replaced; ``_UNRESOLVED`` where OmegaConf has to look at it."""
    if isinstance(value, dict):
        pairs = {key: _followed(inner, tree, depth) for key, inner in value.items()}
        return _UNRESOLVED if any(v is _UNRESOLVED for v in pairs.values()) else pairs
    if isinstance(value, list):
        items = [_followed(inner, tree, depth) for inner in value]
        return _UNRESOLVED if any(v is _UNRESOLVED for v in items) else items
    if not isinstance(value, str) or ("${" not in value and value != "???"):
        return value
    reference = _REFERENCE.fullmatch(value)
    if reference is None or depth > 8:
        return _UNRESOLVED
    target: Any = tree
    for part in reference[1].split("."):
        if not isinstance(target, dict) or part not in target:
            return _UNRESOLVED
        target = target[part]
    return _followed(target, tree, depth + 1)


def _typed(tree: Plain) -> Plain:
    """The tree in the order of the schema, each value checked against its field."""
    typed: dict[str, Any] = {}
    for name, field in _ROOT.items():
        if name in GROUPS:
            typed[name] = check_section(name, tree[name])
        elif name in SECTIONS:
            typed[name] = _typed_section(name, _KEYS[name], tree[name])
        else:
            typed[name] = field.check("", tree[name])
    return typed


def _typed_section(
    name: str, fields: Mapping[str, Field], values: dict[str, Any]
) -> dict[str, Any]:
    return {key: field.check(name, values[key]) for key, field in fields.items()}


def _refuse_idle_attack(name: str, chosen: Sequence[Settings]) -> None:
    """Without Byzantine workers a default attack gives way; one that was asked for is an error."""
    if any("attack" in settings.content for settings in chosen):
        raise BadRequest(
            f"attack={name}: needs at least one Byzantine worker, and workers.f = 0; "
            "must be attack=none"
        )
