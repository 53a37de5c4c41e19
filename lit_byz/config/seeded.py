"""Configs that differ in their seed alone: two are composed, the others follow from them."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lit_byz.config.compose import Plain, compose_plain
from lit_byz.config.plain_yaml import LARGEST


class Seeded:
    """The configs of a grid's points, whose seeds are the largest part of most grids."""

    def __init__(self) -> None:
        self._known: dict[str, list[Plain]] = {}

    def plain(
        self, values: dict[str, Any], settings: Callable[[dict[str, Any]], Mapping[str, Any]]
    ) -> Plain:
        """The config of the point with these values; ``settings`` says what it is composed of."""
        seed = values.get("seed")
        if type(seed) is not int:
            return compose_plain(beneath=settings(values))
        rest = repr({key: value for key, value in values.items() if key != "seed"})
        known = self._known.setdefault(rest, [])
        if len(known) == 2 and 0 <= seed <= LARGEST:
            try:
                return _reseeded(known[0], known[1], [*(k["seed"] for k in known), seed])
            except LookupError:
                pass  # something is made of the seed, and not the seed itself
        plain = compose_plain(beneath=settings(values))
        if len(known) < 2:
            known.append(plain)
        return plain


def _reseeded(first: Plain, second: Plain, seeds: Sequence[int]) -> Plain:
    """What two configs have in common, and a third seed wherever they have theirs."""
    made: Plain = {}
    for key, value in first.items():
        other = second[key]
        if isinstance(value, dict):
            made[key] = _reseeded(value, other, seeds)
        elif value == other:
            made[key] = copy.copy(value)
        elif [value, other] == seeds[:2]:
            made[key] = seeds[2]
        else:
            raise LookupError(key)
    return made
