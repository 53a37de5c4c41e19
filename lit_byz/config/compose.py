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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from lit_byz.config import sources
from lit_byz.config.checks import CHECKS, check_tracking
from lit_byz.config.components import (
    GROUPS,
    check_section,
    option_settings,
    section_with_defaults,
    split_option,
)
from lit_byz.config.fields import dataclass_fields
from lit_byz.config.references import References, refers, resolved
from lit_byz.config.schema import SECTIONS, Config
from lit_byz.config.settled import once
from lit_byz.config.sources import Settings
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

_ROOT = {field.name: field for field in dataclass_fields(Config)}
_VALUES = [field for name, field in _ROOT.items() if name not in {*SECTIONS, *GROUPS}]
_KEYS = {
    name: {field.name: field for field in dataclass_fields(SECTIONS[name])} for name in SECTIONS
}
FILES = ("experiment", "config")
NONE = ("clip", "mix", "attack")  # groups with an option of that name
AUTO = "auto"  # what a key has that a run chooses by itself

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
    chosen = _chosen(overrides, beneath)
    lower = _lower(chosen)
    plain = _merged([*lower, *chosen])
    if plain["workers"]["f"] == 0 and plain["attack"]["name"] != "none":
        _refuse_idle_attack(plain["attack"]["name"], chosen)
        plain = _merged([*lower, *chosen, Settings("", {"attack": "none"})])
    check(plain)
    return plain


def _chosen(overrides: Sequence[str], beneath: Mapping[str, Any] | None) -> list[Settings]:
    asked = sources.parse(overrides, GROUPS)
    return [*_files(asked), *([] if beneath is None else [Settings("", dict(beneath))]), asked]


def as_written(
    plain: Plain, overrides: Sequence[str] = (), beneath: Mapping[str, Any] | None = None
) -> Plain:
    """A config, or a part of one, that was composed of these settings, for a file to be changed.

    What follows other keys or is chosen by itself stays so (``${workers.f}``, ``auto``), where a
    value in its place would be that of the old config, whatever the file's reader changes.
    """
    chosen = _chosen(overrides, beneath)
    tree = _tree([*_lower(chosen), *chosen])
    written = {k: v for k, v in tree.items() if k not in GROUPS or k not in plain}
    for group in GROUPS:
        if group in plain and tree[group]["name"] == plain[group].get("name"):
            written[group] = tree[group]
    return {key: _following(value, written.get(key)) for key, value in plain.items()}


def _following(value: Any, written: Any) -> Any:
    if isinstance(value, dict):
        inner = written if isinstance(written, dict) else {}
        return {key: _following(each, inner.get(key)) for key, each in value.items()}
    return written if isinstance(written, str) and ("${" in written or written == AUTO) else value


def check(plain: Plain) -> None:
    """See that everything holds between keys; what follows from others is entered."""
    for each in CHECKS:
        each(plain)


def _lower(chosen: Sequence[Settings]) -> list[Settings]:
    """The settings below those that were chosen: the defaults, and what the data set recommends."""
    base = _base()
    recommended = option_settings("dataset", _choice("dataset", [base, *chosen])[0])[1]
    return [base] if recommended is None else [base, recommended]


def tracking_section(overrides: Sequence[str]) -> Plain:
    """The section ``tracking`` of such a config alone.

    Without the components and their checks, for which torch is imported.
    """
    asked = sources.parse(overrides, GROUPS)
    ordered = [*_lower([asked]), asked]
    written = [(s.prefix, s.content["tracking"]) for s in ordered if "tracking" in s.content]
    section = _section("tracking", written)
    if refers(section):
        section = compose_plain(overrides)["tracking"]
    plain = {"tracking": _typed_section("tracking", section)}
    check_tracking(plain)
    return plain["tracking"]


def written_attack(beneath: Mapping[str, Any]) -> Plain:
    """The section ``attack`` of settings, complete, before its references are resolved."""
    chosen = Settings("", dict(beneath))
    return section_with_defaults("attack", *_choice("attack", [*_lower([chosen]), chosen]))


def attack_in(plain: Plain, written: Plain) -> Plain:
    """What such a section comes to in a config."""
    if refers(written):
        written = References({**plain, "attack": written}).resolved(written, "attack", ())
    return check_section("attack", written)


def refers_to(name: str, beneath: Mapping[str, Any]) -> bool:
    """Whether another section of settings, or of what lies below them, refers to this one."""
    chosen = Settings("", dict(beneath))
    every = [*_lower([chosen]), chosen]
    written = [value for part in every for key, value in part.content.items() if key != name]
    # An option's file and a constructor's defaults may refer to it, too.
    groups = [group for group in GROUPS if group != name]
    written += [section_with_defaults(group, *_choice(group, every)) for group in groups]
    return any(f"${{{name}" in repr(value) for value in written)


@once
def _base() -> Settings:
    return sources.load(sources.config_dir() / "base.yaml")


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
    return _typed(resolved(_tree(ordered)))


def _tree(ordered: Sequence[Settings]) -> Plain:
    """The same before its references are resolved."""
    tree: Plain = {field.name: field.default for field in _VALUES}
    for settings in ordered:
        _put_over(tree, settings)
    for name in SECTIONS:
        written = [(s.prefix, s.content[name]) for s in ordered if name in s.content]
        tree[name] = _section(name, written)
    for group in GROUPS:
        option, arguments = _choice(group, ordered)
        tree[group] = section_with_defaults(group, option, arguments)
    return tree


def _put_over(tree: Plain, settings: Settings) -> None:
    """Put values over those of the tree."""
    for name, value in settings.content.items():
        if name not in _ROOT:
            raise BadRequest(f"{settings.prefix}unknown key '{name}': {_nearest_key(str(name))}")
        if name not in GROUPS and name not in SECTIONS:
            tree[name] = value


@once
def _section(name: str, written: Sequence[tuple[str, Any]]) -> Plain:
    """A section's defaults with what was written over them, in order."""
    section = {field.name: field.default for field in _KEYS[name].values()}
    for prefix, value in written:
        if not isinstance(value, dict):
            example = next(iter(_KEYS[name]))
            raise BadRequest(
                f"{prefix}{name} = {value!r}: {name} is a section, set its keys, "
                f"such as {name}.{example}"
            )
        for key, inner in value.items():
            if key not in _KEYS[name]:
                hint = nearest(str(key), _KEYS[name])
                raise BadRequest(f"{prefix}unknown key '{key}' in {name}: {hint}")
            section[key] = inner
    return section


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
        hint = f"; for none write {group}=none" if option is None and group in NONE else ""
        must = "must be the name of an option or a dotted path"
        raise BadRequest(f"{group} = {option!r}: {must}{hint}")
    if (extra := split_option(group, option)[1]) and (twice := extra.keys() & arguments.keys()):
        raise BadRequest(f"{group}={option}: sets {min(twice)}, and so does {group}.{min(twice)}")
    return option, arguments


def _typed(tree: Plain) -> Plain:
    """The tree in the order of the schema, each value checked against its field."""
    typed: dict[str, Any] = {}
    for name, field in _ROOT.items():
        if name in GROUPS:
            typed[name] = check_section(name, tree[name])
        elif name in SECTIONS:
            typed[name] = _typed_section(name, tree[name])
        else:
            typed[name] = field.check("", tree[name])
    return typed


@once
def _typed_section(name: str, values: Plain) -> Plain:
    return {key: field.check(name, values[key]) for key, field in _KEYS[name].items()}


def _refuse_idle_attack(name: str, chosen: Sequence[Settings]) -> None:
    """Without Byzantine workers a default attack gives way; one that was asked for is an error."""
    if any("attack" in settings.content for settings in chosen):
        raise BadRequest(
            f"attack={name}: needs at least one Byzantine worker, and workers.f = 0; "
            "must be attack=none"
        )
