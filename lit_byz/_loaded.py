"""What the user's modules said when Python loaded them: their files may say something else since.

An onlooker in ``sys.meta_path`` notes it. It finds nothing itself, so that Python's own finders
load whatever is imported or reloaded as they would without it.
"""

import contextlib
import hashlib
import itertools
import os
import site
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.abc import MetaPathFinder
from importlib.machinery import BYTECODE_SUFFIXES, EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType
from typing import Any

# In place of a module's text, where there is none.
NO_SOURCE = "no source"


@dataclass
class Load:
    """A module's text as it was loaded, and when, in the order of all loads."""

    order: int
    file: str | None
    text: str
    # What the module was made by, once somebody has asked for it: reloading makes another one.
    made_by: object = None


_LOADS: dict[str, list[Load]] = {}
_ORDER = itertools.count()
_USERS_TOPS: dict[str, bool] = {}


def as_loaded(module: ModuleType) -> Load:
    """The last load of a module; of one that nobody saw being loaded, as it is now."""
    made_by = getattr(module, "__spec__", None) or module
    known = _LOADS.get(module.__name__, [])[-1:]
    for load in known:
        if load.file == _file(module) and (load.made_by is None or load.made_by is made_by):
            load.made_by = made_by
            return load
    load = _note(module.__name__, _file(module), text_of(module))
    load.made_by = made_by
    return load


def was_reloaded_since(name: str, importer: Load) -> bool:
    """Whether a module says something else than it did when one that imports it was loaded."""
    loads = _LOADS[name]
    before = [load for load in loads if load.order < importer.order]
    return (before or loads[:1])[-1].text != loads[-1].text


def text_of(module: ModuleType) -> str:
    """What a module's file says now."""
    return _text(module.__name__, getattr(module, "__loader__", None), _file(module))


def text_at(spec: ModuleSpec) -> str:
    """What a file says now from which a module would be loaded."""
    return _text(spec.name, spec.loader, spec.origin)


def is_users_file(path: str) -> bool:
    """Whether a file is neither installed nor a part of Python or of this package."""
    return not path.startswith(_installed()) and _is_elsewhere(path)


@lru_cache(maxsize=4096)
def _is_elsewhere(path: str) -> bool:
    return not str(Path(path).resolve()).startswith(_installed())


@lru_cache(maxsize=1)
def _installed() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = [paths[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parent)]
    return tuple(f"{place}{os.sep}" for f in folders for place in {f, str(Path(f).resolve())})


def _file(module: ModuleType) -> str | None:
    # Not by getattr: a module that is loaded when it is first used would be now.
    found = object.__getattribute__(module, "__dict__").get("__file__")
    return found if isinstance(found, str) else None


def _text(name: str, loader: Any, file: str | None) -> str:
    try:
        content = Path(file or "").read_bytes()
    except OSError:  # none, or in an archive
        with contextlib.suppress(Exception):  # whatever a loader may raise
            return str(loader.get_source(name) or NO_SOURCE)
        return NO_SOURCE
    compiled = str(file).endswith((*BYTECODE_SUFFIXES, *EXTENSION_SUFFIXES))
    with contextlib.suppress(SyntaxError, UnicodeError):
        if not compiled:
            text = str(decode_source(content))
            return text if text.endswith("\n") else f"{text}\n" if text else NO_SOURCE
    return hashlib.sha256(content).hexdigest()


def _note(name: str, file: str | None, text: str) -> Load:
    load = Load(next(_ORDER), file, text)
    if name not in sys.modules:  # what was loaded under that name before is gone
        _LOADS.pop(name, None)
    _LOADS.setdefault(name, []).append(load)
    return load


class _Onlooker(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        with contextlib.suppress(Exception):  # whatever it is, it is in no import's way
            if _is_users_top(fullname.partition(".")[0]):
                spec = PathFinder.find_spec(fullname, path, target)
                if spec is not None and spec.origin and is_users_file(spec.origin):
                    _note(fullname, spec.origin, text_at(spec))
        return None


def _is_users_top(name: str) -> bool:
    if name in sys.stdlib_module_names or name == "lit_byz":
        return False
    if name not in _USERS_TOPS:
        spec = PathFinder.find_spec(name)
        if spec is None:  # for now
            return False
        places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
        _USERS_TOPS[name] = any(map(is_users_file, places))
    return _USERS_TOPS[name]


def look_on() -> None:
    """Note what is loaded from now on, and what the user's modules say that are there already."""
    if any(isinstance(finder, _Onlooker) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Onlooker())
    for module in list(sys.modules.values()):
        file = _file(module) if isinstance(module, ModuleType) else None
        if file is not None and is_users_file(file):
            as_loaded(module)
