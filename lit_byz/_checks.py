"""Argument checks whose messages name the owner, the argument, its value and what is allowed."""

import math
from numbers import Integral, Real


def check_integer(owner: object, name: str, value: object, minimum: int) -> int:
    """``value``, a whole number of at least ``minimum``; NumPy's integers are made Python's."""
    where = f"{owner_name(owner)}: {name}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{where} must be an int >= {minimum}, got {value!r}")
    number = int(value)
    if number < minimum:
        raise ValueError(f"{where} must be an int >= {minimum}, got {value}")
    return number


def check_number(
    owner: object,
    name: str,
    value: object,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    *,
    above: bool = False,
) -> float:
    """``value``, a number in [minimum, maximum], or in (minimum, maximum] if ``above``.

    NumPy's numbers are made Python's.
    """
    where = f"{owner_name(owner)}: {name}"
    opening = "(" if above or minimum == -math.inf else "["
    allowed = f"a number in {opening}{minimum:g}, {maximum:g}]"
    if isinstance(value, bool) or not isinstance(value, int | Real):
        raise TypeError(f"{where} must be {allowed}, got {value!r}")
    number = value if isinstance(value, int) else float(value)
    if math.isnan(number) or not minimum <= number <= maximum or (above and number == minimum):
        raise ValueError(f"{where} must be {allowed}, got {value}")
    return number


def keep_integer(owner: object, name: str, minimum: int) -> None:
    """:func:`check_integer` of a frozen owner's attribute, which is then Python's int."""
    object.__setattr__(owner, name, check_integer(owner, name, getattr(owner, name), minimum))


def keep_number(
    owner: object,
    name: str,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    *,
    above: bool = False,
) -> None:
    """:func:`check_number` of a frozen owner's attribute, which is then Python's int or float."""
    value = check_number(owner, name, getattr(owner, name), minimum, maximum, above=above)
    object.__setattr__(owner, name, value)


def check_minority(owner: object, f: int, n: int, what: str = "rows") -> None:
    """``f`` Byzantine among ``n`` can be tolerated only while 2f < n."""
    if 2 * f >= n:
        raise ValueError(f"{owner_name(owner)}: f must satisfy 2f < n, got f={f}, n={n} {what}")


def owner_name(owner: object) -> str:
    """What a message calls an owner: a name as it is, an object by its class."""
    return owner if isinstance(owner, str) else type(owner).__name__
