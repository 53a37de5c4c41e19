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

from lit_byz.config import plain_yaml, sources
from lit_byz.config.checks import CHECKS
from lit_byz.config.components import (
    GROUPS,
    check_section,
    option_settings,
    section_with_defaults,
    split_option,
)
from lit_byz.config.fields import LONGEST_TEXT, Field, dataclass_fields
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
# ``${section.key}``. OmegaConf knows more forms, of which one reads the environment: a config that
# came from elsewhere shall not.
_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
_MOST_REFERENCES = 8
_MISSING = "???"  # what OmegaConf takes for a value that is to come

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
    references = _References(tree)
    return {key: references.resolved(value, key, ()) for key, value in tree.items()}


class _References:
    """Replaces references; a list of references to lists of references has an end."""

    def __init__(self, tree: Plain) -> None:
        self.tree = tree
        self.left = 2 * plain_yaml.MOST_VALUES

    def resolved(self, value: Any, key: str, followed: tuple[str, ...]) -> Any:
        """A value with what its references stand for; ``followed`` are those that led here."""
        self.left -= 1
        if self.left < 0:
            raise BadRequest(f"{key}: the ${{…}} of this config stand for too many values")
        if isinstance(value, dict):
            return {k: self.resolved(v, f"{key}.{k}", followed) for k, v in value.items()}
        if isinstance(value, list):
            return [self.resolved(v, key, followed) for v in value]
        if not isinstance(value, str) or ("${" not in value and value != _MISSING):
            return value
        whole = _REFERENCE.fullmatch(value)
        if whole is not None:
            return self._target(whole[1], key, followed)
        text = _REFERENCE.sub(lambda found: str(self._target(found[1], key, followed)), value)
        if "${" in text or text == _MISSING or len(text) > LONGEST_TEXT:
            raise BadRequest(
                f"{key} = {value!r}: must be a value, or refer to another key as ${{seed}} does"
            )
        return text

    def _target(self, name: str, key: str, followed: tuple[str, ...]) -> Any:
        if name in followed or len(followed) > _MOST_REFERENCES:
            raise BadRequest(f"{key}: ${{{name}}} leads in a circle")
        target: Any = self.tree
        for part in name.split("."):
            if not isinstance(target, dict) or part not in target:
                raise BadRequest(f"{key}: ${{{name}}} is no key of this config")
            target = target[part]
        return self.resolved(target, key, (*followed, name))


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
