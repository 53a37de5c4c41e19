"""What a person should know before runs start, because it costs time."""

from collections.abc import Iterable, Mapping
from typing import Any

from lit_byz.config.components import build, component

# Searches that try some twenty factors a step; the others try hundreds.
FEW = ("coarse", "published")


def slow_rules(configs: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line about rules that know no short cut under attacks that try many factors a step.

    Such a rule is a user's ``Rule.aggregate``: the n vectors are formed for every factor.
    """
    rules: dict[str, None] = {}
    attacks: dict[str, None] = {}
    many = False
    kinds = {repr((p["rule"]["name"], p["attack"], p["workers"]["f"])): p for p in configs}
    for plain in kinds.values():
        search = _search(plain["attack"]) if plain["workers"]["f"] else None
        if search is not None and _forms_vectors(plain["rule"]["name"]):
            rules[plain["rule"]["name"]] = attacks[plain["attack"]["name"]] = None
            many |= search not in FEW
    if not rules:
        return []
    fewer = "; or let the attack try fewer factors: attack.search=coarse" if many else ""
    return [
        f"slow: {', '.join(rules)} forms all n vectors anew for every factor that "
        f"{' and '.join(attacks)} tries at a step. Derived from lit_byz.robust.GeometricRule (a "
        "weighted sum of its inputs) or CoordinateRule (per coordinate, of sorted values) it does "
        f"not, and is many times as fast{fewer}"
    ]


def _forms_vectors(name: str) -> bool:
    from lit_byz.robust import Rule

    found: Any = component("rule", name)
    return found.damages is Rule.damages


def _search(section: Mapping[str, Any]) -> str | None:
    """How an attack searches; None if it does not."""
    from lit_byz.attacks import SearchedAttack, Span

    attack = build("attack", section)
    if isinstance(attack, SearchedAttack):
        return attack.search if attack.tau is None else None
    return "span" if isinstance(attack, Span) else None
