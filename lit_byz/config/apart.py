"""What settings a config has that nobody would expect of its data set and its options."""

from collections.abc import Iterator, Mapping
from typing import Any

from lit_byz.config.components import GROUPS, component_fields
from lit_byz.config.compose import compose_plain
from lit_byz.config.fields import REQUIRED
from lit_byz.config.grid import layered
from lit_byz.config.schema import NOT_IDENTITY
from lit_byz.errors import BadRequest

Plain = Mapping[str, Any]

# Keys that are said anyhow, some of them in the names of options.
NAMED = ("seed", "train.steps", "partition.alpha", "partition.gamma", "attack.search", "attack.tau")


def apart(plain: Plain) -> dict[str, Any]:
    """The keys, ``section.key``, whose values are not those that they have by themselves.

    Of those on which results depend; what the options of the groups are is no part of it.

    >>> apart(compose_plain(["dataset=digits", "train.lr=0.2", "rule=gm", "clip.zeta=1"]))
    {'clip.zeta': 1.0, 'train.lr': 0.2}
    """
    chosen = {group: _option(group, plain[group]) for group in GROUPS if group != "dataset"}
    workers = {key: plain["workers"][key] for key in ("honest", "f")}
    settings = {"dataset": plain["dataset"], "workers": workers, **chosen}
    try:
        usual = dict(_flat(compose_plain(beneath=settings)))
        found = {key: value for key, value in _flat(plain) if usual.get(key) != value}
        found = {k: v for k, v in found.items() if not NOT_IDENTITY & {k, k.partition(".")[0]}}
        return {key: value for key, value in found.items() if not _follows(key, found, settings)}
    except BadRequest:
        return {}  # of options that work with some settings alone


def _follows(key: str, found: Plain, settings: Plain) -> bool:
    """Whether a value is what it is because of the others that were found."""
    others = {k: v for k, v in found.items() if k != key}
    return dict(_flat(compose_plain(beneath=layered(settings, others)))).get(key) == found[key]


def _option(group: str, section: Plain) -> dict[str, Any]:
    """An option of a group with the arguments alone for which it has no defaults."""
    fields, _ = component_fields(group, section["name"])
    needed = [field.name for field in fields if field.default is REQUIRED]
    return {"name": section["name"], **{name: section[name] for name in needed}}


def _flat(plain: Plain) -> Iterator[tuple[str, Any]]:
    for name, value in plain.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        else:
            yield name, value
