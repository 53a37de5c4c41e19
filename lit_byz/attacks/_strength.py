"""How hard attackers search, by name: ``foe@published`` is FOE with ``search="published"``."""

from lit_byz.attacks._base import ATTACKS
from lit_byz.attacks._searched import SearchedAttack
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

# Every number depends on how hard the attackers search, so tables name it.
STRENGTHS = {
    "grid": "a wide grid, refined around its highest peaks (the default)",
    "line": "climbs from the highest peaks of the same grid, and from 0",
    "published": "the line search of the authors' library, of 20 evaluations",
    "coarse": "20 evenly spaced factors, unrefined: one reading of the paper's predefined range",
    "z_max": "alie's classical factor, from n and f alone",
}
DEFAULT = "grid"


def parse_strength(text: str) -> tuple[str, str | None]:
    """The attack and the search of ``NAME`` or ``NAME@SEARCH``.

    >>> parse_strength("foe@published"), parse_strength("foe")
    (('foe', 'published'), ('foe', None))
    """
    name, separator, search = text.partition("@")
    if not name or (separator and not search):
        raise BadRequest(f"attack '{text}': must be NAME or NAME@SEARCH, such as foe@published")
    component = ATTACKS[name]
    if not separator:
        return name, None
    if not issubclass(component, SearchedAttack):
        raise BadRequest(f"attack '{text}': {name} has no search, so it must be {name}")
    if search not in component.searches():
        hint = nearest(search, component.searches())
        raise BadRequest(f"attack '{text}': unknown search '{search}': {hint}")
    return name, search


def strength_label(name: str, search: str | None) -> str:
    """An attack and its strength, for tables: the default goes without saying.

    >>> strength_label("foe", "published"), strength_label("foe", "grid")
    ('foe@published', 'foe')
    """
    return name if search in (None, DEFAULT) else f"{name}@{search}"
