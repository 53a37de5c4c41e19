"""Argument checks whose messages name the owner, the argument, its value and what is allowed."""

import math


def check_integer(owner: object, name: str, value: object, minimum: int) -> None:
    """``value`` must be a whole number of at least ``minimum``."""
    where = _where(owner, name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{where} must be an int >= {minimum}, got {value!r}")
    if value < minimum:
        raise ValueError(f"{where} must be an int >= {minimum}, got {value}")


def check_number(
    owner: object,
    name: str,
    value: object,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    *,
    above: bool = False,
) -> None:
    """``value`` must be a number in [minimum, maximum], or in (minimum, maximum] if ``above``."""
    where = _where(owner, name)
    opening = "(" if above or minimum == -math.inf else "["
    allowed = f"a number in {opening}{minimum:g}, {maximum:g}]"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{where} must be {allowed}, got {value!r}")
    if math.isnan(value) or not minimum <= value <= maximum or (above and value == minimum):
        raise ValueError(f"{where} must be {allowed}, got {value}")


def check_minority(owner: object, f: int, n: int, what: str = "rows") -> None:
    """``f`` Byzantine among ``n`` can be tolerated only while 2f < n."""
    if 2 * f >= n:
        raise ValueError(f"{type(owner).__name__}: f must satisfy 2f < n, got f={f}, n={n} {what}")


def _where(owner: object, name: str) -> str:
    return f"{owner if isinstance(owner, str) else type(owner).__name__}: {name}"
