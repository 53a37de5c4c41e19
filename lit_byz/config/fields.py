"""Typed keys: where they come from (a dataclass, a constructor) and what their values may be."""

import dataclasses
import inspect
import math
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Union

from lit_byz.config.plain_yaml import LARGEST
from lit_byz.errors import BadRequest

REQUIRED: Any = inspect.Parameter.empty
# Models compute in 32 bits, where a larger number is no number.
LARGEST_FLOAT = 3.4028234663852886e38
LONGEST_TEXT = 4096
_SCALARS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
_PLURALS = {bool: "true or false", int: "integers", float: "numbers", str: "texts"}


class _MismatchError(Exception):
    """A value is not of the type asked for."""


@dataclass(frozen=True)
class Domain:
    """An interval of finite numbers, for a value or for each of a list."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            math.isfinite(value)
            and (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        words = {"at_least": "at least", "above": "greater than"}
        words |= {"at_most": "at most", "below": "less than"}
        bounds = dataclasses.asdict(self).items()
        return " and ".join(
            f"{words[name]} {bound:g}" for name, bound in bounds if bound is not None
        )


@dataclass(frozen=True)
class Field:
    """One key of a section."""

    name: str
    hint: Any = Any
    default: Any = REQUIRED
    text: str = ""
    domain: Domain | None = None
    is_path: bool = False  # written as text, and given to the constructor as a path

    @property
    def takes_lists(self) -> bool:
        """Whether a list is one value of it, by its type or, without one, by its default."""
        parts = (self.hint, *typing.get_args(self.hint))
        return any(map(is_sequence, parts)) or (self.hint is Any and isinstance(self.default, list))

    @property
    def is_setting(self) -> bool:
        """Whether its default can be written: a class or a function is the constructor's own."""
        return self.default is REQUIRED or _is_written(self.default)

    def check(self, section: str, value: Any) -> Any:
        """``value`` in the type of this field, or a ``BadRequest`` that names the key."""
        key = f"{section}.{self.name}" if section else self.name
        try:
            converted = _convert(value, self.hint)
        except _MismatchError:
            raise BadRequest(f"{key} = {value!r}: must be {describe(self.hint)}") from None
        numbers = converted if isinstance(converted, list) else [converted]
        for number in numbers:
            _check_size(key, number)
        domain = None if converted is None else self.domain
        if domain is not None and not all(number in domain for number in numbers):
            each = "each " if isinstance(converted, list) else ""
            finite = "" if all(map(math.isfinite, numbers)) else "finite and "
            raise BadRequest(f"{key} = {value!r}: {each}must be {finite}{domain}")
        return converted


def _check_size(key: str, value: Any) -> None:
    """Refuse what nothing that computes or stores values can take."""
    if isinstance(value, int) and abs(value) > LARGEST:
        raise BadRequest(f"{key}: integers must be between -{LARGEST} and {LARGEST}")
    if isinstance(value, float) and LARGEST_FLOAT < abs(value) < math.inf:
        raise BadRequest(f"{key} = {value!r}: must be at most {LARGEST_FLOAT:.3g}, as in 32 bits")
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise BadRequest(
            f"{key}: must have at most {LONGEST_TEXT:,} characters, not {len(value):,}"
        )


def dataclass_fields(section: type) -> list[Field]:
    """The keys of a section of the schema."""
    hints = typing.get_type_hints(section)
    found = []
    for item in dataclasses.fields(section):
        factory = item.default_factory
        default = item.default if factory is dataclasses.MISSING else factory()
        text, domain = item.metadata.get("text", ""), item.metadata.get("domain")
        found.append(Field(item.name, hints[item.name], default, text, domain))
    return found


@lru_cache(maxsize=1024)
def constructor_fields(component: type) -> tuple[list[Field], bool]:
    """The named arguments of a class's constructor, and whether it takes any others (``**``)."""
    try:
        hints = typing.get_type_hints(component.__init__)  # type: ignore[misc]
    except (NameError, TypeError):
        hints = {}  # annotations that only a type checker can read: their values go unchecked
    try:
        parameters = inspect.signature(component).parameters
    except ValueError:
        return [], True  # a class of a C extension may not tell: calling it will
    found, takes_others = [], False
    items = dataclasses.fields(component) if dataclasses.is_dataclass(component) else ()
    factories: dict[str, Any] = {item.name: item.default_factory for item in items}
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_others = True
        elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            default = parameter.default
            if type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS":  # as dataclasses have it
                default = factories[name]()
            hint = hints.get(name, Any)
            is_path = isinstance(default, Path) or Path in (hint, *typing.get_args(hint))
            found.append(Field(name, hint, _as_written(default), is_path=is_path))
    return found, takes_others


def _as_written(default: Any) -> Any:
    """A default as a file would have it: tuples as lists, NumPy's numbers as numbers, paths."""
    if isinstance(default, tuple):
        return list(default)
    if type(default).__module__ == "numpy" and getattr(default, "shape", None) == ():
        return default.item()
    return str(default) if isinstance(default, Path) else default


def _is_written(value: Any) -> bool:
    """Whether a value is one of YAML's."""
    if isinstance(value, list | tuple):
        return all(map(_is_written, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_written(value[key]) for key in value)
    return value is None or isinstance(value, bool | int | float | str)


def describe(hint: Any) -> str:
    """A type in words, for a message that ends in "must be …"."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    if hint is type(None):
        return "null"
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        names = ", ".join(str(option) for option in arguments)
        return f"one of {names}" if len(arguments) > 1 else names
    if origin in (Union, types.UnionType):
        return " or ".join(describe(option) for option in arguments)
    if is_sequence(hint):
        item = arguments[0] if arguments else Any
        return f"a list of {_PLURALS[item]}" if item in _PLURALS else "a list"
    if dict in (hint, origin):
        return "a mapping"
    return getattr(hint, "__name__", str(hint))


def is_sequence(hint: Any) -> bool:
    """Whether a type is one of lists."""
    kind = typing.get_origin(hint) or hint
    return kind in (list, tuple, Sequence)


def _convert(value: Any, hint: Any) -> Any:
    """``value`` as ``hint``. Only conversions that lose nothing: int to float, int to text."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _convert_to_any_of(value, arguments)
    if origin is Literal:
        fits = any(value == option and type(value) is type(option) for option in arguments)
    elif hint is float:
        if value in ("inf", "-inf"):
            return float(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return float(value) if abs(value) <= LARGEST else value  # which is refused by its size
        fits = isinstance(value, float)
    elif hint is str:
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)  # an experiment called 2024
        fits = isinstance(value, str)
    elif hint is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif hint in (bool, type(None)):
        fits = isinstance(value, hint)
    elif is_sequence(hint):
        if not isinstance(value, list):
            raise _MismatchError
        return [_convert(item, arguments[0] if arguments else Any) for item in value]
    elif dict in (hint, origin):
        fits = isinstance(value, dict)
    else:
        return value  # a type that YAML has no values of: the constructor is the judge
    if not fits:
        raise _MismatchError
    return value


def _convert_to_any_of(value: Any, hints: Sequence[Any]) -> Any:
    """The first hint that takes ``value`` as it is, else the first that can convert it."""
    converted = []
    for hint in hints:
        try:
            converted.append(_convert(value, hint))
        except _MismatchError:
            continue
    if not converted:
        raise _MismatchError
    unchanged = [result for result in converted if type(result) is type(value)]
    return (unchanged or converted)[0]
