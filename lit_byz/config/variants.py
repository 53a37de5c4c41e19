"""The configs of a grid's points, most of which differ in their attack and seed alone.

What they have in common is composed for the first two seeds; the other seeds and attacks are put
into that, and give the same configs as if each had been composed by itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lit_byz.config.compose import Plain, attack_in, check, compose_plain, refers_to, written_attack
from lit_byz.config.plain_yaml import LARGEST
from lit_byz.config.settled import once

Values = dict[str, Any]


@dataclass
class _Rest:
    """Configs that agree in all but attack and seed: by seed, and the attacks that were checked.

    Their ``attacks``, as they are written, depend on the others too: what was not chosen the data
    set may recommend.
    """

    by_seed: dict[int, Plain] = field(default_factory=dict)
    attacks: dict[str, Plain] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)
    apart: bool = False  # whether nothing can be taken from one to another


class Variants:
    """Composes the configs of points; ``settings`` says what a point's is composed of."""

    def __init__(self, settings: Callable[[Values], Mapping[str, Any]]) -> None:
        self._settings = settings
        self._rests: dict[str, _Rest] = {}

    def plain(self, values: Values) -> Plain:
        """The config of the point with these values."""
        seed = values.get("seed")
        others, of_attack = _divided(tuple(values))
        attack = repr([(key, values[key]) for key in of_attack])
        rest = self._rests.setdefault(repr([(key, values[key]) for key in others]), _Rest())
        if type(seed) is not int or not 0 <= seed <= LARGEST or rest.apart:
            return compose_plain(beneath=self._settings(values))
        base = rest.by_seed.get(seed) or _reseeded(rest.by_seed, seed)
        if base is None:
            return self._composed(values, seed, attack, rest)
        rest.by_seed[seed] = base
        if attack not in rest.attacks:
            rest.attacks[attack] = written_attack(self._settings(values))
        plain = {**base, "attack": attack_in(base, rest.attacks[attack])}
        if attack not in rest.checked:
            check(dict(plain))
            rest.checked.add(attack)
        return plain

    def _composed(self, values: Values, seed: int, attack: str, rest: _Rest) -> Plain:
        settings = self._settings(values)
        plain = compose_plain(beneath=settings)
        # Without Byzantine workers the attack gives way; and whatever refers to it follows it.
        rest.apart = plain["workers"]["f"] == 0 or refers_to("attack", settings)
        rest.by_seed[seed] = plain
        rest.checked.add(attack)
        return plain


@lru_cache(maxsize=64)
def _divided(keys: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The keys that are neither the attack's nor the seed, and those of the attack."""
    of_attack = [key for key in keys if key.partition(".")[0] == "attack"]
    return [key for key in keys if key != "seed" and key not in of_attack], of_attack


def _reseeded(known: Mapping[int, Plain], seed: int) -> Plain | None:
    """What the first two configs have in common, with another seed wherever they have theirs.

    None where there are not two yet, or something is made of the seed and not the seed itself.
    """
    if len(known) < 2:
        return None
    one, two, *_ = known
    first, second = known[one], known[two]
    try:
        return {
            key: value if key == "attack" else _follow(value, second[key], (one, two, seed))
            for key, value in first.items()
        }
    except LookupError:
        return None


def _follow(first: Any, second: Any, seeds: tuple[int, int, int]) -> Any:
    if first is second or first == second:
        return first
    if isinstance(first, dict):
        return _section(first, second, seeds)
    if (first, second) == seeds[:2]:
        return seeds[2]
    raise LookupError(f"{first}, {second}")


@once
def _section(first: Plain, second: Plain, seeds: tuple[int, int, int]) -> Plain:
    return {key: _follow(value, second[key], seeds) for key, value in first.items()}
