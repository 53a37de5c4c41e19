"""The groups of a config: which classes they offer, and how a section becomes an instance.

A section of a group is ``{name: <registered name or dotted path>, **constructor arguments}``. The
signature of the constructor is the section's schema: a new component declares nothing twice.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from lit_byz.config import sources, words
from lit_byz.config.fields import REQUIRED, Domain, Field, constructor_fields
from lit_byz.config.settled import once
from lit_byz.errors import BadRequest
from lit_byz.registry import Registry, nearest

if TYPE_CHECKING:
    from torch import nn

GROUPS = tuple(words.REGISTRIES)
# Lightning's callbacks have no short names here: a config gives their dotted paths.
CALLBACKS = Registry("callback", "lightning.pytorch.callbacks.Callback")

# Keys of a section that are no arguments of its class.
_OWN_KEYS = {
    "model": (
        Field("init_scale", float, 1.0, "factor of all initial parameters, μ", Domain(above=0)),
    ),
}
# Arguments that come from elsewhere than the config: a model is made for its data set.
_GIVEN = {"model": frozenset({"shape", "classes"})}
# Arguments that follow another key unless they are set.
_FOLLOWED = {
    **{(group, "f"): "${server.f}" for group in ("clip", "mix", "rule")},
    **{(group, "seed"): "${seed}" for group in GROUPS},
}


def registry(group: str) -> Registry:
    """The registry of a group's classes."""
    module, attribute = words.REGISTRIES[group]  # imported now, so that no group depends on another
    found: Registry = getattr(importlib.import_module(module), attribute)
    return found


def options(group: str) -> list[str]:
    """What can be chosen by name: registered classes and config files."""
    return sorted({*registry(group), *sources.files(group)})


def component(group: str, name: str) -> type:
    """The class of a name or dotted path."""
    known = registry(group)
    if name in known or "." in name:
        return known[name]
    described = " or ".join(f"'{other}'" for other in words.meant(group, name))
    hint = f"did you mean {described}?" if described else nearest(name, options(group))
    raise BadRequest(f"unknown {group} '{name}': {hint}")


def component_fields(group: str, name: str) -> tuple[list[Field], bool]:
    """The keys of a section beside ``name``, and whether it takes keys that are not listed."""
    return _fields_of(group, component(group, name))


@lru_cache(maxsize=1024)
def _fields_of(group: str, made_of: type) -> tuple[list[Field], bool]:
    found, takes_others = constructor_fields(made_of)
    own = _OWN_KEYS.get(group, ())
    aside = {"name", *(field.name for field in own), *_GIVEN.get(group, ())}
    _refuse_taken(group, made_of, found)
    fields = [
        replace(field, default=_default(group, made_of, field))
        for field in found
        if field.name not in aside and field.is_setting
    ]
    return [*fields, *own], takes_others


def _refuse_taken(group: str, made_of: type, fields: Sequence[Field]) -> None:
    """A key of the section's own gives no argument: one of that name has to have a default."""
    taken = {"name", *(field.name for field in _OWN_KEYS.get(group, ()))}
    for field in fields:
        if field.name in taken and field.default is REQUIRED:
            raise BadRequest(
                f"{group}={made_of.__module__}.{made_of.__qualname__}: its argument "
                f"'{field.name}' is taken by the key {group}.{field.name}; call it otherwise"
            )


def _default(group: str, made_of: type, field: Field) -> Any:
    """A field's default: its own, or a reference to the key that it follows."""
    # Attackers who imitate the workers' momentum; another's beta may be anything.
    imitates = group == "attack" and field.name == "beta"
    if imitates and (field.default is REQUIRED or issubclass(made_of, registry("attack")["lf"])):
        return "${train.momentum}"
    return _FOLLOWED.get((group, field.name), field.default)


def split_option(group: str, option: str) -> tuple[str, dict[str, Any]]:
    """An option and what its short form sets: ``foe@published`` is foe with that search.

    >>> split_option("attack", "foe@published")
    ('foe', {'search': 'published'})
    """
    if group != "attack" or "@" not in option:
        return option, {}
    from lit_byz.attacks import parse_strength

    name, _, search = option.partition("@")
    if sources.find(group, name) is None:
        parse_strength(option)  # which says what is wrong with it, if anything is
    return name, {"search": search}


@once
def option_settings(group: str, option: str) -> tuple[dict[str, Any], sources.Settings | None]:
    """An option's section as its file gives it, and the settings that the file recommends."""
    option, extra = split_option(group, option)
    path: Path | None = sources.find(group, option) if "." not in option else None
    if path is None:
        return {"name": option, **extra}, None
    source, content = sources.load(path)
    recommended = content.pop("recommended", None)
    section = {"name": option, **content, **extra}
    return section, None if recommended is None else sources.Settings(source, recommended)


@once
def option_fields(group: str, option: str) -> tuple[list[Field], bool]:
    """The arguments of an option, which may be a file or a short form."""
    return component_fields(group, str(option_settings(group, option)[0]["name"]))


@once
def section_with_defaults(group: str, option: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A complete section, its values as they were written; unknown and missing keys are errors."""
    section = {**option_settings(group, option)[0], **settings}
    name = section.pop("name")
    if not isinstance(name, str):
        raise BadRequest(f"{group}.name = {name!r}: must be text")
    fields, takes_others = component_fields(group, name)
    names = [field.name for field in fields]
    for key in section:
        if key not in names and not takes_others:
            raise BadRequest(f"unknown key '{key}' of {group}={name}: {nearest(key, names)}")
    complete: dict[str, Any] = {"name": name}
    for field in fields:
        value = section.pop(field.name, field.default)
        if value is REQUIRED:
            raise BadRequest(
                f"{group}.{field.name} is missing: {group}={name} has no default for it"
            )
        complete[field.name] = value
    return {**complete, **section}


@once
def check_section(group: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """A complete section with each value in the type of its argument."""
    fields, _ = component_fields(group, section["name"])
    return {**section, **{field.name: field.check(group, section[field.name]) for field in fields}}


def build(group: str, section: Mapping[str, Any] | DictConfig, **given: Any) -> Any:
    """An instance of the class that a section names; ``given`` are arguments from elsewhere.

    >>> build("model", {"name": "logreg"}, shape=(1, 8, 8), classes=10).output
    'log_probabilities'
    """
    plain: Any = OmegaConf.to_container(section) if isinstance(section, DictConfig) else section
    arguments = dict(plain)
    name = arguments.pop("name")
    made_of = component(group, name)
    for field in _OWN_KEYS.get(group, ()):
        arguments.pop(field.name, None)
    fields, takes_others = constructor_fields(made_of)
    taken = {field.name for field in fields}
    for key in [field.name for field in fields if field.is_path]:
        if isinstance(arguments.get(key), str):
            arguments[key] = Path(arguments[key])
    arguments |= {key: value for key, value in given.items() if takes_others or key in taken}
    try:
        return made_of(**arguments)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{group}={name}: {' '.join(str(error).split())}") from error
    except (Exception, SystemExit) as error:  # whatever a user's class may raise
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if "before Module.__init__()" in reason:
            reason += f"; begin {made_of.__name__}.__init__ with super().__init__()"
        raise BadRequest(f"{group}={name}: {reason}") from error


def build_model(config: DictConfig) -> "nn.Module":
    """The model of a config with its initial parameters."""
    from lit_byz.models import initialise

    dataset = build("dataset", config.dataset)

    def make() -> "nn.Module":
        model: nn.Module = build(
            "model", config.model, shape=dataset.shape, classes=dataset.classes
        )
        return model

    return initialise(make, config.seed, config.model.init_scale)
