"""Composing a config from defaults, files and the command line, and checking it before any work.

>>> config = compose(["dataset=digits", "model=logreg", "workers.f=2", "train.steps=200"])
>>> config.rule.name, config.rule.f, config.server.f
('cwtm', 2, 2)

Later layers win: the schema's defaults and ``configs/base.yaml``, what the data set's file
recommends, the file of ``experiment=`` or ``config=``, the command line. Choosing an option of a
group replaces its whole section, so that no argument of the previous option is left behind.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lit_byz.errors import BadRequest
from lit_byz.experiment import layers
from lit_byz.experiment.checks import CHECKS
from lit_byz.experiment.components import (
    GROUPS,
    build,
    build_model,
    check_section,
    option_layer,
    section_with_defaults,
)
from lit_byz.experiment.fields import Field, dataclass_fields
from lit_byz.experiment.layers import Layer
from lit_byz.experiment.schema import NOT_IDENTITY, SECTIONS, Config
from lit_byz.registry import nearest

__all__ = ["build", "build_model", "compose", "identity", "to_plain"]

_ROOT = {field.name: field for field in dataclass_fields(Config)}
_VALUES = [field for name, field in _ROOT.items() if name not in {*SECTIONS, *GROUPS}]
_KEYS = {
    name: {field.name: field for field in dataclass_fields(SECTIONS[name])} for name in SECTIONS
}
_FILES = ("experiment", "config")


def compose(
    overrides: Sequence[str] = (), beneath: Mapping[str, Any] | DictConfig | None = None
) -> DictConfig:
    """The config that ``key=value`` overrides ask for: complete, typed, checked and read-only.

    ``beneath`` is a layer below the overrides, such as the plain config of a tracked run. Anything
    wrong raises ``BadRequest`` with one line that names the key.
    """
    asked = layers.parse(overrides, GROUPS)
    chosen = [*_files(asked), *([] if beneath is None else [_as_layer(beneath)]), asked]
    base = layers.load(layers.config_dir() / "base.yaml")
    dataset = _choice("dataset", [base, *chosen])[0]
    _, recommended = option_layer("dataset", dataset)
    lower = [base] if recommended is None else [base, recommended]
    plain = _merged([*lower, *chosen])
    if plain["workers"]["f"] == 0 and plain["attack"]["name"] != "none":
        _refuse_idle_attack(plain["attack"]["name"], chosen)
        plain = _merged([*lower, *chosen, Layer("", {"attack": "none"})])
    for check in CHECKS:
        check(plain)
    sections = {name: section(**plain[name]) for name, section in SECTIONS.items()}
    config: DictConfig = OmegaConf.structured(Config(**{**plain, **sections}))
    OmegaConf.set_readonly(config, True)
    return config


def to_plain(config: DictConfig) -> dict[str, Any]:
    """A config as nested dicts and lists, which ``compose(beneath=…)`` takes back."""
    plain: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    return plain


def identity(config: DictConfig) -> str:
    """A hash of everything that changes a run's result (see ``NOT_IDENTITY`` for what does not)."""
    kept: dict[str, Any] = {}
    for name, value in to_plain(config).items():
        if name in NOT_IDENTITY:
            continue
        inner = value.items() if isinstance(value, dict) else [("", value)]
        kept[name] = {key: v for key, v in inner if f"{name}.{key}" not in NOT_IDENTITY}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _files(asked: Layer) -> list[Layer]:
    """The layers that the command line names as files; their keys are taken out of it."""
    named = {key: asked.content.pop(key) for key in _FILES if key in asked.content}
    for key, value in named.items():
        if not isinstance(value, str):
            raise BadRequest(f"{key} = {value!r}: must be text")
    found = []
    if "experiment" in named:
        found.append(layers.experiment(named["experiment"]))
    if "config" in named:
        found.append(layers.load(Path(named["config"])))
    return found


def _as_layer(beneath: Mapping[str, Any] | DictConfig) -> Layer:
    plain = OmegaConf.to_container(
        beneath if isinstance(beneath, DictConfig) else OmegaConf.create(dict(beneath))
    )
    return Layer("", plain)  # type: ignore[arg-type]


def _merged(ordered: Sequence[Layer]) -> dict[str, Any]:
    """One complete tree of typed values out of all layers."""
    tree: dict[str, Any] = {field.name: field.default for field in _VALUES}
    tree |= {
        section: {field.name: field.default for field in fields.values()}
        for section, fields in _KEYS.items()
    }
    for layer in ordered:
        _lay(tree, layer)
    for group in GROUPS:
        option, settings = _choice(group, ordered)
        tree[group] = section_with_defaults(group, option, settings)
    return _typed(_resolved(tree))


def _lay(tree: dict[str, Any], layer: Layer) -> None:
    """Put the fixed keys of a layer over those of the tree."""
    for name, value in layer.content.items():
        if name not in _ROOT:
            raise BadRequest(f"{layer.prefix}unknown key '{name}': {_nearest_key(str(name))}")
        if name in GROUPS:
            continue
        if name not in SECTIONS:
            tree[name] = value
            continue
        if not isinstance(value, dict):
            example = next(iter(_KEYS[name]))
            raise BadRequest(
                f"{layer.prefix}{name} = {value!r}: {name} is a section, set its keys, "
                f"such as {name}.{example}"
            )
        for key, inner in value.items():
            if key not in _KEYS[name]:
                hint = nearest(str(key), _KEYS[name])
                raise BadRequest(f"{layer.prefix}unknown key '{key}' in {name}: {hint}")
            tree[name][key] = inner


def _nearest_key(word: str) -> str:
    """A hint for an unknown first part of a key; it may be one that belongs in a section."""
    for section, fields in _KEYS.items():
        if word in fields:
            return f"did you mean '{section}.{word}'?"
    return nearest(word, {*_ROOT, *_FILES})


def _choice(group: str, ordered: Sequence[Layer]) -> tuple[str, dict[str, Any]]:
    """The option of a group, and the arguments set by the layer that chose it and those above."""
    option: Any = None
    settings: dict[str, Any] = {}
    for layer in ordered:
        value = layer.content.get(group, {})
        if not isinstance(value, dict):
            value = {"name": value}
        settings = dict(value) if "name" in value else {**settings, **value}
        option = settings.pop("name", option)
    if not isinstance(option, str):
        raise BadRequest(f"{group} = {option!r}: must be the name of an option or a dotted path")
    return option, settings


def _resolved(tree: dict[str, Any]) -> dict[str, Any]:
    """The tree with its ``${…}`` replaced by what they stand for."""
    try:
        return OmegaConf.to_container(OmegaConf.create(tree), resolve=True, throw_on_missing=True)  # type: ignore[return-value]
    except OmegaConfBaseException as error:
        reason = str(error.msg or error).split("\n")[0]
        raise BadRequest(f"{error.full_key}: {reason}") from error
    except RecursionError as error:
        raise BadRequest("the ${…} of this config refer to each other in a circle") from error


def _typed(tree: dict[str, Any]) -> dict[str, Any]:
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


def _refuse_idle_attack(name: str, chosen: Sequence[Layer]) -> None:
    """Without Byzantine workers a default attack gives way; one that was asked for is an error."""
    if any("attack" in layer.content for layer in chosen):
        raise BadRequest(
            f"attack={name}: needs at least one Byzantine worker, and workers.f = 0; "
            "must be attack=none"
        )
