"""What values and attacks are called in the names of cells and runs."""

from collections.abc import Mapping
from typing import Any

from lit_byz.config.components import component, component_fields
from lit_byz.config.fields import REQUIRED
from lit_byz.config.references import refers


def shown(value: Any) -> str:
    """A value as names of cells show it."""
    if isinstance(value, dict):
        extra = ", ".join(f"{k}={v}" for k, v in value.items() if k != "name")
        return f"{value.get('name', '')}({extra})" if extra else str(value.get("name"))
    return str(value)


def pairs(values: Mapping[str, Any]) -> str:
    """Values as they are typed."""
    return ", ".join(f"{key}={shown(value)}" for key, value in values.items())


def attack_name(
    plain: Mapping[str, Any], chosen: Any = None, beside: Mapping[str, Any] | None = None
) -> str:
    """A config's attack, with how hard it searches and whatever else is not as usual.

    A number depends on the attack's strength, so that is made of the config, and the same wherever
    it was set. ``chosen`` and ``beside`` are the option and the arguments as a grid's point has
    them: what they say is said as they do.

    >>> attack_name({"attack": {"name": "foe", "search": "coarse", "tau": None}})
    'foe@coarse'
    >>> attack_name({"attack": {"name": "foe", "search": "grid", "tau": 2.0}})
    'foe, tau=2'
    """
    from lit_byz.attacks import SearchedAttack, strength_label

    section = plain["attack"]
    kind = section["name"]
    inside = dict(chosen) if isinstance(chosen, Mapping) else {"name": chosen}
    name = str(inside.pop("name", None) or kind).partition("@")[0]
    told = {"name", *inside}
    if issubclass(component("attack", kind), SearchedAttack):
        # Who reads the name of an own class cannot know that it searches, nor how.
        search = section["search"]
        name = f"{name}@{search}" if "." in name else strength_label(name, search)
        inside.pop("search", None)
        told.add("search")
    parts = [shown({"name": name, **inside})]
    parts += [f"{key}={shown(v)}" for key, v in (beside or {}).items() if key not in told]
    told |= {*(beside or {})}
    usual = {field.name: field.default for field in component_fields("attack", kind)[0]}
    for key, value in section.items():
        default = usual.get(key, REQUIRED)
        follows = isinstance(default, str) and refers(default)  # such as a seed
        if key not in told and not follows and value != default:
            parts.append(f"{key}={_brief(value)}")
    return ", ".join(parts)


def _brief(value: Any) -> str:
    """A value as it is typed: 2 for 2.0."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return str(int(value)) if whole else shown(value)
