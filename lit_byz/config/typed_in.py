"""What a class is made of that was typed into a session: a notebook, or Python at its prompt.

No file has its source. What counts is the compiled code of its methods, with their constants and
defaults, and whatever else of the session they name.
"""

import functools
from collections.abc import Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

# What Python itself puts into a class; texts change no result. Of a data class's fields, its
# methods have what counts.
ASIDE = frozenset(
    {
        *("__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__"),
        *("_abc_impl", "__abstractmethods__", "__dataclass_fields__"),
    }
)
# They are what they show.
PLAIN = (int, float, complex, str, bytes, range, type(None), type(...))


def made_of(kind: "type[Any]", session: ModuleType) -> str:
    """A text that changes with what a class of this session does."""
    return _Reader(session).of(kind)


class _Reader:
    def __init__(self, session: ModuleType) -> None:
        self.session = session
        self.seen: dict[int, int] = {}

    def of(self, value: Any) -> str:
        if id(value) in self.seen:
            return f"as {self.seen[id(value)]}"
        if isinstance(value, CodeType):
            return self._code(value)
        if isinstance(value, ModuleType):
            return value.__name__
        if isinstance(value, type | FunctionType):
            self.seen[id(value)] = len(self.seen)
            if value.__module__ != self.session.__name__:
                return f"{value.__module__}.{value.__qualname__}"
            return self._class(value) if isinstance(value, type) else self._function(value)
        if isinstance(value, PLAIN):
            return repr(value)
        self.seen[id(value)] = len(self.seen)
        if hasattr(value, "tolist"):  # an array, or a tensor, of which the text is cut short
            return repr([str(value.dtype), value.tolist()])
        inside = _inside(value)
        return repr(value) if inside is None else repr([self.of(each) for each in inside])

    def _class(self, kind: type) -> str:
        inside = [(name, self.of(v)) for name, v in vars(kind).items() if name not in ASIDE]
        return repr([kind.__qualname__, [self.of(base) for base in kind.__bases__], inside])

    def _function(self, function: FunctionType) -> str:
        held = [self.of(cell.cell_contents) for cell in function.__closure__ or ()]
        given = [self.of(function.__defaults__), self.of(function.__kwdefaults__)]
        return repr([self.of(function.__code__), given, held])

    def _code(self, code: CodeType) -> str:
        known = vars(self.session)
        named = [(name, self.of(known[name])) for name in code.co_names if name in known]
        constants = [self.of(constant) for constant in code.co_consts]
        return repr([code.co_code.hex(), code.co_names, code.co_varnames, constants, named])


def _inside(value: Any) -> list[Any] | None:
    """The parts of something; None where it is what it shows."""
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, list | tuple):
        return [type(value), *value]
    if isinstance(value, set | frozenset):
        return [type(value), *sorted(value, key=repr)]
    if isinstance(value, Mapping):
        return [type(value), *(part for item in value.items() for part in item)]
    return [type(value), vars(value)] if hasattr(value, "__dict__") else None
