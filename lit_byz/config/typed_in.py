"""What a class is made of that was typed into a session: a notebook, or Python at its prompt.

No file has its source. What counts is the compiled code of its methods, with their constants and
defaults, and whatever else of the session they name. What an object holds is read the same way.
"""

import functools
import hashlib
import pickle
import sys
import uuid
import weakref
from collections.abc import Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from lit_byz._loaded import is_users_file

# What Python itself puts into a class; texts change no result. Of a data class's fields, its
# methods have what counts.
ASIDE = frozenset(
    {
        *("__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__"),
        *("_abc_impl", "__abstractmethods__", "__dataclass_fields__"),
    }
)
# What cannot be looked at is kept, so that nothing else gets its address while this process lasts.
PROCESS = uuid.uuid4().hex
_KEPT: dict[int, Any] = {}
# They are what they show.
PLAIN = (int, float, complex, str, bytes, range, type(None), type(...))


def made_of(kind: "type[Any]", session: ModuleType) -> tuple[str, list[str]]:
    """A text that changes with what a class of this session does, and the modules that it uses."""
    reader = _Reader(session)
    return reader.of(kind), sorted(reader.modules)


def held_by(value: Any, session: ModuleType | None) -> tuple[str, list[str]]:
    """A text that changes with what an object holds, and the modules that it comes from."""
    reader = _Reader(session)
    return reader.of(value), sorted(reader.modules)


class _Reader:
    def __init__(self, session: ModuleType | None) -> None:
        self.session = session
        self.seen: dict[int, tuple[int, Any]] = {}  # with what it was: its address stays its own
        self.modules: set[str] = set()

    def of(self, value: Any) -> str:
        if isinstance(value, PLAIN):
            return repr(value)
        if id(value) in self.seen:
            return f"as {self.seen[id(value)][0]}"
        if isinstance(value, CodeType):
            return self._code(value, {} if self.session is None else vars(self.session))
        if isinstance(value, ModuleType):
            return self._elsewhere(value.__name__)
        self.seen[id(value)] = len(self.seen), value
        if isinstance(value, type | FunctionType):
            return self._defined(value)
        parts = _parts(value)
        if parts is None:
            return repr([self.of(type(value)), _content(value)])
        return repr([self.of(part) for part in parts])

    def _elsewhere(self, module: str, name: str = "") -> str:
        self.modules.add(module)
        return f"{module}.{name}" if name else module

    def _defined(self, value: "type | FunctionType") -> str:
        if self.session is None or value.__module__ != self.session.__name__:
            where = self._elsewhere(str(value.__module__), value.__qualname__)
            # Of a user's function its module has the text, but not which of several it is, nor
            # what that one holds.
            if isinstance(value, type) or not is_users_file(value.__code__.co_filename):
                return where
            return f"{where} {self._function(value, {})}"
        known = vars(self.session)
        return self._class(value) if isinstance(value, type) else self._function(value, known)

    def _class(self, kind: type) -> str:
        inside = [(name, self.of(v)) for name, v in vars(kind).items() if name not in ASIDE]
        return repr([kind.__qualname__, [self.of(base) for base in kind.__bases__], inside])

    def _function(self, function: FunctionType, known: Mapping[str, Any]) -> str:
        held = [self.of(cell.cell_contents) for cell in function.__closure__ or ()]
        given = [self.of(function.__defaults__), self.of(function.__kwdefaults__)]
        return repr([self._code(function.__code__, known), given, held])

    def _code(self, code: CodeType, known: Mapping[str, Any]) -> str:
        named = [(name, self.of(known[name])) for name in code.co_names if name in known]
        constants = [self.of(constant) for constant in code.co_consts]
        return repr([code.co_code.hex(), code.co_names, code.co_varnames, constants, named])


def _parts(value: Any) -> list[Any] | None:
    """The parts of something; None where there are none that could be looked at."""
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    items = _items(value)
    if items is None and not getattr(value, "__dict__", None):
        return None
    return [type(value), *(items if items is not None else [vars(value)])]


def _items(value: Any) -> list[Any] | None:
    """What a container holds, an array among them, whose text is cut short."""
    if isinstance(value, list | tuple):
        return [*value]
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if isinstance(value, weakref.ref):
        return []
    is_sparse = "sparse" in str(getattr(value, "layout", ""))
    if is_sparse or not (hasattr(value, "dtype") and hasattr(value, "tolist")):
        return None
    content = _bytes(value)
    if content is None:
        return [str(value.dtype), value.tolist()]
    return [str(value.dtype), tuple(value.shape), hashlib.sha256(content).hexdigest()]


def _bytes(value: Any) -> bytes | None:
    """The numbers of an array or a tensor, of which there may be many; None of another kind."""
    numpy, torch = (sys.modules.get(name) for name in ("numpy", "torch"))  # which made it, if any
    if torch is not None and isinstance(value, torch.Tensor):
        flat = value.detach().cpu().contiguous().reshape(-1)
        return bytes(flat.view(torch.uint8).numpy().tobytes())
    if numpy is None or not isinstance(value, numpy.ndarray) or value.dtype.hasobject:
        return None
    return bytes(numpy.ascontiguousarray(value).tobytes())


def _content(value: Any) -> str:
    """What tells an object apart that has no parts which could be looked at."""
    try:
        return hashlib.sha256(pickle.dumps(value, protocol=4)).hexdigest()
    except Exception:  # whatever an object may raise that cannot be copied
        _KEPT[id(value)] = value
        return f"{type(value).__qualname__} {id(value)} of {PROCESS}"
