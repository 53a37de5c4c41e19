"""What a tuned key may be: a number in a range, or one of a few values."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

# Numbers are rounded to so many digits: what is read off a table is what was tried.
DIGITS = 4


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``."""

    low: float
    high: float
    log: bool = False
    integer: bool = False

    @property
    def section(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "log": self.log}

    @property
    def size(self) -> float:
        return self.high - self.low + 1 if self.integer else math.inf

    def __str__(self) -> str:
        return f"from {self.low:g} to {self.high:g}{' on a log scale' if self.log else ''}"

    def values(self) -> list[Any]:
        """Every value of a finite range."""
        return list(range(int(self.low), int(self.high) + 1))

    def ends(self) -> list[Any]:
        return [self.low, self.high]

    def rounded(self, value: Any) -> Any:
        if self.integer:
            return int(value)
        near = min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)
        fine = self.log or abs(near - value) < (self.high - self.low) / 1000
        return near if fine else value

    def distribution(self) -> "BaseDistribution":
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.integer:
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    options: tuple[Any, ...]

    def __str__(self) -> str:
        return f"one of {', '.join(map(str, self.options))}"

    @property
    def section(self) -> dict[str, Any]:
        return {"choices": list(self.options)}

    @property
    def size(self) -> float:
        return len(self.options)

    def values(self) -> list[Any]:
        return list(self.options)

    def ends(self) -> list[Any]:
        return list(self.options)

    def rounded(self, value: Any) -> Any:
        return value

    def distribution(self) -> "BaseDistribution":
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.options)
