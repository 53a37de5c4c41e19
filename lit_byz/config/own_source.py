"""The source that a user's own class is made of: its module's, and that of the modules beneath it.

Of a module that is imported, the text that was imported counts, whatever its file says since. What
a function imports while it runs counts by its file, whether or not it has run.
"""

import ast
import hashlib
import importlib.util
import inspect
import marshal
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from lit_byz.config import typed_in

# In place of a module's text, where there is none.
NO_SOURCE = "no source"
# What is not run when a module is imported.
LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# The texts of modules as they were imported, with their specs: reloading makes another one.
_TEXTS: dict[str, tuple[ModuleSpec | ModuleType, str]] = {}


def source_of(kind: Any) -> str:
    """A hash of the source that a class is made of: its module's, and the user's own beneath it.

    A class that was typed into a session has none; what it does counts.
    """
    texts = "\n".join(f"{name} {text}" for name, text in sorted(_texts_of(kind).items()))
    module = sys.modules.get(kind.__module__)
    if module is not None and module.__name__ == "__main__" and _text(module) == NO_SOURCE:
        return sha256(f"{typed_in.made_of(kind, module)} {sha256(texts)}")
    return sha256(texts)


def changed_since(kind: Any) -> list[str]:
    """The files of a class's modules that do not say any more what was imported."""
    modules = [sys.modules[name] for name in _texts_of(kind) if name in sys.modules]
    files = {m: getattr(m, "__file__", None) for m in modules if m.__name__ != "__main__"}
    return sorted(str(file) for m, file in files.items() if file and _has_changed(m))


def sha256(text: str) -> str:
    """A hash of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def _texts_of(kind: Any) -> dict[str, str]:
    """The texts of the modules that a class is made of, by their names."""
    start, texts = sys.modules.get(kind.__module__), dict[str, str]()
    waiting = [kind.__module__, *(base.__module__ for base in kind.__mro__)]
    while waiting:  # what is imported whenever the class's module is
        name = waiting.pop()
        module = sys.modules.get(name)
        if name not in texts and module is not None and (module is start or _is_users(module)):
            texts[name] = _text(module)
            waiting += [*_used_by(module), *_imported(texts[name], module.__package__, later=False)]
    packages = {name: sys.modules[name].__package__ for name in texts}
    waiting = [n for name in texts for n in _imported(texts[name], packages[name], later=True)]
    while waiting:
        name = waiting.pop()
        spec = None if name in texts or _is_installed(name) else _find(name)
        if spec is not None and spec.origin and _is_users_file(spec.origin):
            module = sys.modules.get(name)
            texts[name] = _written(spec.origin) if module is None else _text(module)
            waiting += _imported(texts[name], spec.parent, later=True)
    return texts


def _used_by(module: ModuleType) -> Iterator[str]:
    """The modules that the global names of a module come from."""
    for value in vars(module).values():
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        if isinstance(name, str):
            yield name


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
            relative = "." * statement.level + (statement.module or "")
            try:
                start = importlib.util.resolve_name(relative, package)
            except ImportError:  # beyond the package's top, which a function may never come to
                continue
            found += [start, *(f"{start}.{alias.name}" for alias in statement.names)]
        elif later or not isinstance(statement, LATER):
            waiting += ast.iter_child_nodes(statement)
    return tuple(found)


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


@lru_cache(maxsize=4096)
def _is_users(module: ModuleType) -> bool:
    """Whether a module is neither installed nor a part of Python or of this package."""
    path = getattr(module, "__file__", None)
    own = module.__name__.split(".")[0] == "lit_byz"
    return bool(path) and not own and _is_users_file(str(path))


@lru_cache(maxsize=4096)
def _is_users_file(path: str) -> bool:
    here = Path(path).resolve()
    return not any(here.is_relative_to(folder) for folder in _installed())


@lru_cache(maxsize=1)
def _installed() -> list[Path]:
    paths = sysconfig.get_paths()
    folders = [paths[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return [Path(folder).resolve() for folder in folders] + [Path(__file__).resolve().parents[1]]


def _text(module: ModuleType) -> str:
    """The text of a module as it was when it was first asked for, since it was imported."""
    made_by = getattr(module, "__spec__", None) or module
    known = _TEXTS.get(module.__name__)
    if known is None or known[0] is not made_by:
        known = _TEXTS[module.__name__] = (made_by, _text_now(module))
    return known[1]


def _text_now(module: ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return str(getattr(module, "__version__", NO_SOURCE))  # compiled


def _written(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return NO_SOURCE


def _has_changed(module: ModuleType) -> bool:
    now = _text_now(module)
    return now != _text(module) or _was_compiled_otherwise(module, now)


def _was_compiled_otherwise(module: ModuleType, text: str) -> bool:
    """Whether Python's cache, which has what was imported, differs from what a file says now.

    Where it does not write the cache, nobody knows.
    """
    spec = getattr(module, "__spec__", None)
    if spec is None or type(spec.loader) is not SourceFileLoader or sys.dont_write_bytecode:
        return False
    cached = Path(spec.cached or "")
    if not cached.is_file() or not os.access(cached.parent, os.W_OK):
        return False
    content = cached.read_bytes()
    if content[:4] != importlib.util.MAGIC_NUMBER or any(content[4:8]):
        return False
    try:
        now = compile(text, str(spec.origin), "exec", dont_inherit=True)
        return bool(marshal.loads(content[16:]) != now)
    except (SyntaxError, ValueError, EOFError):
        return True
