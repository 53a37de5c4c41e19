"""What need not be found out again while many configs are composed.

The points of a grid differ in a few keys; their other sections are the same, come from the same
files and pass the same checks. Inside of :func:`settled` a function that is marked with
:func:`once` is called once for the same arguments, and gives everybody the same result, which
nobody may change. Outside it is called every time: files and classes may have changed.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class _Known:
    """Results by function and arguments; those that are sections by address, with notes on them."""

    results: dict[Any, Any] = field(default_factory=dict)
    sections: dict[int, tuple[Any, dict[str, Any]]] = field(default_factory=dict)


_KNOWN: ContextVar[_Known | None] = ContextVar("known", default=None)


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """Remember what functions marked with :func:`once` have found out, until the outermost end."""
    if _KNOWN.get() is not None:
        yield
        return
    token = _KNOWN.set(_Known())
    try:
        yield
    finally:
        _KNOWN.reset(token)


def once(function: Callable[P, R]) -> Callable[P, R]:
    """Call a function of plain data once for the same arguments, inside of :func:`settled`."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        known = _KNOWN.get()
        if known is None or kwargs:
            return function(*args, **kwargs)
        # A section that was a result is known by its address; anything else but texts by what is
        # written for it, where 1, 1.0 and True are three things.
        key: list[Any] = [function]
        for value in args:
            if type(value) is str:
                key.append(value)
            else:
                key.append(id(value) if id(value) in known.sections else (repr(value),))
        place = tuple(key)
        if place not in known.results:
            found = known.results[place] = function(*args, **kwargs)
            if type(found) is dict:
                known.sections[id(found)] = (found, {})
        result: R = known.results[place]
        return result

    return called


def notes() -> Mapping[int, tuple[Any, dict[str, Any]]]:
    """The sections that configs share now, by address, each with what is noted of it."""
    known = _KNOWN.get()
    return {} if known is None else known.sections
