"""Robustness coefficients κ, and how many Byzantine workers any algorithm can bear."""

from lit_byz._checks import check_integer, check_number

OWNER = "theory"


def check_workers(n: int, f: int) -> tuple[int, int]:
    """n workers of which f are Byzantine, a minority: everything here assumes it."""
    n = check_integer(OWNER, "n", n, minimum=1)
    f = check_integer(OWNER, "f", f, minimum=0)
    if 2 * f >= n:
        raise ValueError(f"{OWNER}: f must satisfy 2f < n, got f={f}, n={n}")
    return n, f


def check_not_negative(**values: float) -> None:
    """Raise unless all values are at least 0."""
    for name, value in values.items():
        check_number(OWNER, name, value, minimum=0.0)


def check_positive(**values: float) -> None:
    """Raise unless all values are above 0."""
    for name, value in values.items():
        check_number(OWNER, name, value, minimum=0.0, above=True)


def kappa_lower(n: int, f: int) -> float:
    """The κ below which no rule can go: f / (n − 2f)."""
    n, f = check_workers(n, f)
    return f / (n - 2 * f)


def kappa_nnm(n: int, f: int) -> float:
    """A κ of CWTM, CWMed, GM and Multi-Krum after NNM: 8f/(n−f) · (1 + (1 + f/(n−2f))²).

    For the geometric median this speaks of the exact minimiser, not of a few Weiszfeld iterations.
    """
    n, f = check_workers(n, f)
    return 8 * f / (n - f) * (1 + (1 + f / (n - 2 * f)) ** 2)


def kappa_arc(kappa: float, n: int, f: int, zeta: float = 2.0) -> float:
    """A κ of F∘ARC for a rule F with coefficient ``kappa``: κ + ζf/(n − ζf).

    ``zeta`` is ARC's own parameter (it clips ⌊ζ(f/n)(n−f)⌋ vectors); 2 gives Theorem 3.2.
    """
    n, f = check_workers(n, f)
    check_not_negative(kappa=kappa)
    check_number(OWNER, "zeta", zeta, minimum=0.0, maximum=2.0)
    return kappa + zeta * f / (n - zeta * f)


def breakdown_point(B: float) -> float:
    """The share f/n of Byzantine workers that no algorithm survives: 1 / (2 + B²)."""
    check_not_negative(B=B)
    return 1 / (2 + B**2)
