"""Numbers with a spread: what a few repeats on a shared machine allow to say, about a goal too."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

# How sure an interval shall be; with fewer than six repeats it is as wide as they are.
CONFIDENCE = 0.95

REACHED, MISSED, UNDECIDED = "reached", "missed", "undecided"


@dataclass(frozen=True)
class Spread:
    """The median of repeats, and an interval that holds the true median.

    The interval lies between two of the ordered values, chosen by the binomial distribution: it
    assumes nothing about how they are distributed.

    >>> Spread.over([2.0, 1.0, 4.0])
    Spread(median=2.0, low=1.0, high=4.0)
    """

    median: float
    low: float
    high: float

    @classmethod
    def over(cls, values: Iterable[float]) -> Self:
        """From repeats in any order."""
        ordered = sorted(values)
        place = _rank(len(ordered))
        return cls(statistics.median(ordered), ordered[place], ordered[-1 - place])


@dataclass(frozen=True)
class Ratio(Spread):
    """Of paired ratios.

    >>> Ratio.of([3.0, 3.1, 9.0], [2.0, 2.0, 3.0])
    Ratio(median=1.55, low=1.5, high=3.0)
    """

    @classmethod
    def of(cls, above: Sequence[float], below: Sequence[float]) -> Self:
        """From times that ran back to back; what one list has more of is left out."""
        return cls.over(a / b for a, b in zip(above, below, strict=False))

    def verdict(self, goal: float, sign: Literal["≤", "≥"]) -> str:
        """Whether the median is on the right side of a goal, as far as the interval tells.

        >>> Ratio(1.3, 1.2, 1.4).verdict(1.25, "≤")
        'undecided: between 1.2 and 1.4'
        """
        good, bad = (self.high, self.low) if sign == "≤" else (self.low, self.high)
        if (good <= goal) if sign == "≤" else (good >= goal):
            return REACHED
        if (bad > goal) if sign == "≤" else (bad < goal):
            return MISSED
        return f"{UNDECIDED}: between {self.low:.3g} and {self.high:.3g}"


def _rank(count: int) -> int:
    """How many of the ordered values lie outside of the interval at either end."""
    outside, chance = 0, 0.5**count
    while outside + 1 <= (count - 1) // 2:
        chance += math.comb(count, outside + 1) * 0.5**count
        if 2 * chance > 1 - CONFIDENCE:
            break
        outside += 1
    return outside
