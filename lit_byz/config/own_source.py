"""The source that a user's own class is made of: its module's, and that of the modules beneath it.

Of a module that is imported, the text that was loaded counts, whatever its file says since. What
a function imports while it runs counts by its file, whether or not it has run.
"""

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from lit_byz._loaded import (
    NO_SOURCE,
    as_loaded,
    is_users_file,
    text_at,
    text_of,
    was_reloaded_since,
)
from lit_byz.config import typed_in
from lit_byz.errors import BadRequest

# What is not run when a module is imported.
LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Calls that import what their first argument names.
BY_NAME = ("import_module", "__import__")


def source_of(kind: Any, path: str | None = None) -> str:
    """A hash of the source that a class is made of: its module's, and the user's own beneath it.

    ``path`` is where it was asked for: another module than its own may decide which class that is.
    A class that was typed into a session has no source; what it does counts.
    """
    texts = _joined(_beneath(kind, path))
    itself = f"{kind.__module__}.{kind.__qualname__}"
    if path not in (None, itself):
        texts += f"\n{path} is {itself}"
    session = _session(kind)
    return sha256(texts if session is None else f"{_typed(kind, session)[0]} {sha256(texts)}")


def held_by(value: Any, owner: type) -> str:
    """A hash of what an object of a class holds: its parts, and the user's own source of these."""
    main = sys.modules["__main__"]
    session = main if as_loaded(main).text == NO_SOURCE else None
    text, modules = _told(owner, lambda: typed_in.held_by(value, session))
    return sha256(f"{text} {_joined(_reached(modules, session, always=''))}")


def changed_since(kind: Any, path: str | None = None) -> list[str]:
    """What a class's modules in memory are not any more: what their files say, or consistent."""
    beneath = _beneath(kind, path)
    modules = {name: sys.modules[name] for name in beneath.texts if name in sys.modules}
    modules.pop("__main__", None)
    found = []
    for name, module in modules.items():
        file, load = getattr(module, "__file__", None), as_loaded(module)
        if file and text_of(module) != load.text:
            found.append(f"{file}: changed since it was imported here")
        found += [
            f"{file or name}: loaded before {other} was reloaded"
            for other in beneath.reached_from(name)
            if other in modules and was_reloaded_since(other, load)
        ]
    return found


def is_outdated(kind: type) -> bool:
    """Whether another class has its name since, as after its module was reloaded."""
    module = sys.modules.get(kind.__module__)
    return getattr(module, kind.__qualname__, kind) is not kind


def sha256(text: str) -> str:
    """A hash of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class _Beneath:
    """The texts of modules by their names, and what each names that runs when it is imported."""

    texts: dict[str, str] = field(default_factory=dict)
    named: dict[str, set[str]] = field(default_factory=dict)

    def reached_from(self, name: str) -> list[str]:
        reached: dict[str, None] = {}
        waiting = list(self.named.get(name, ()))
        while waiting:
            other = waiting.pop()
            if other in self.texts and other not in reached:
                reached[other] = None
                waiting += self.named.get(other, ())
        return [other for other in reached if other != name]


def _joined(beneath: _Beneath) -> str:
    return "\n".join(f"{name} {text}" for name, text in sorted(beneath.texts.items()))


def _beneath(kind: Any, path: str | None) -> _Beneath:
    """The modules that a class is made of."""
    session = _session(kind)
    names = [kind.__module__, *(base.__module__ for base in kind.__mro__)]
    names += [] if path is None else [path.rpartition(".")[0]]
    names += [] if session is None else _typed(kind, session)[1]
    return _reached(names, session, always=kind.__module__)


def _reached(names: Iterable[str], session: ModuleType | None, always: str) -> _Beneath:
    """The user's own among some modules, and beneath them; ``always`` counts whoever's it is."""
    found, waiting = _Beneath(), [*names]
    while waiting:  # what is imported whenever one of them is
        name = waiting.pop()
        module = sys.modules.get(name)
        counts = module is not None and (name == always or _is_users(module))
        if module is None or not counts or name in found.texts:
            continue
        text = found.texts[name] = as_loaded(module).text
        used = {*_imported(text, module.__package__, later=False), *_packages(name)}
        used.update(() if module is session else _used_by(module))
        found.named[name] = used
        waiting += used
    waiting = [n for name in found.texts for n in _imported_by(name, found.texts[name])]
    while waiting:
        name = waiting.pop()
        spec = None if name in found.texts or _is_installed(name) else _find(name)
        if spec is not None and spec.origin and is_users_file(spec.origin):
            module = sys.modules.get(name)
            text = found.texts[name] = text_at(spec) if module is None else as_loaded(module).text
            waiting += [*_imported(text, spec.parent, later=True), *_packages(name)]
    return found


def _session(kind: Any) -> ModuleType | None:
    """The module of a class if nothing but the session has it, as at a prompt or in a notebook."""
    module = sys.modules.get(kind.__module__)
    return module if module is not None and as_loaded(module).text == NO_SOURCE else None


def _typed(kind: Any, session: ModuleType) -> tuple[str, list[str]]:
    return _told(kind, lambda: typed_in.made_of(kind, session))


def _told(kind: Any, tell: Callable[[], tuple[str, list[str]]]) -> tuple[str, list[str]]:
    try:
        return tell()
    except Exception as error:  # whatever somebody's objects may raise when they are looked at
        raise BadRequest(
            f"{kind.__module__}.{kind.__qualname__}: what it uses of this session cannot be told "
            f"({type(error).__name__}: {' '.join(str(error).split())[:120]}); put it into a file"
        ) from error


def _packages(name: str) -> Iterator[str]:
    """The packages that a module is in, if anything is written there: it runs before the module."""
    parts = name.split(".")
    for end in range(1, len(parts)):
        package = ".".join(parts[:end])
        module = sys.modules.get(package)
        spec = _find(package) if module is None else None
        text = as_loaded(module).text if module is not None else text_at(spec) if spec else ""
        if text not in ("", NO_SOURCE):
            yield package


def _used_by(module: ModuleType) -> Iterator[str]:
    """The modules that the global names of a module come from."""
    for value in vars(module).values():
        try:
            known = value.__name__ if isinstance(value, ModuleType) else value.__module__
        except Exception:  # whatever an object may raise when it is looked at
            continue
        if isinstance(known, str):
            yield known


def _imported_by(name: str, text: str) -> tuple[str, ...]:
    return _imported(text, sys.modules[name].__package__, later=True)


@lru_cache(maxsize=1024)
def _imported(text: str, package: str | None, *, later: bool) -> tuple[str, ...]:
    """What import statements name: a number says nothing of where it comes from.

    Those that run whenever the module is imported, and ``later`` those of functions as well.
    """
    try:
        waiting: list[ast.AST] = [ast.parse(text)]
    except (SyntaxError, ValueError):
        return ()
    found: list[str] = []
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.Import):
            found += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            start = _resolved("." * statement.level + (statement.module or ""), package)
            found += [start, *(f"{start}.{alias.name}" for alias in statement.names)]
        elif later or not isinstance(statement, LATER):
            waiting += ast.iter_child_nodes(statement)
            if isinstance(statement, ast.Call) and (named := _by_name(statement)):
                found.append(_resolved(named, package))
    return tuple(name for name in found if name)


def _by_name(call: ast.Call) -> str:
    """What a call imports whose argument says it in so many letters."""
    function = call.func
    called = getattr(function, "attr", None) or getattr(function, "id", None)
    given = call.args[0] if called in BY_NAME and call.args else None
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""


def _resolved(name: str, package: str | None) -> str:
    try:
        return importlib.util.resolve_name(name, package)
    except ImportError:  # beyond the package's top, which a function may never come to
        return ""


def _is_installed(name: str) -> bool:
    """Whether a name's first part is imported, and none of the user's."""
    first = sys.modules.get(name.partition(".")[0])
    return first is not None and bool(getattr(first, "__file__", "")) and not _is_users(first)


def _find(name: str) -> ModuleSpec | None:
    """Where a module lies, without importing it or what it is in."""
    parent = name.rpartition(".")[0]
    if not parent:
        return PathFinder.find_spec(name)
    above = _find(parent)
    places = None if above is None else above.submodule_search_locations
    return None if places is None else PathFinder.find_spec(name, places)


def _is_users(module: ModuleType) -> bool:
    """Whether a module is neither installed nor a part of Python or of this package."""
    path = getattr(module, "__file__", None)
    own = module.__name__.split(".")[0] == "lit_byz"
    return isinstance(path, str) and not own and is_users_file(path)
