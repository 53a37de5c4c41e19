"""The modules of classes that are given by dotted path, and which of them may be imported.

A module of this package or of an installed one may. Any other is code that merely lies somewhere,
such as beside a config file that came from elsewhere: it has to be named by a person, on the
command line or in the variable ``LIT_BYZ_IMPORT``. What the command line names is added to that
variable, so that the processes which this one starts know of it.
"""

import importlib
import importlib.util
import os
import re
import site
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from lit_byz.errors import BadRequest

VARIABLE = "LIT_BYZ_IMPORT"
# Longer than any name that a person has given to a class.
LONGEST = 300
PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")


def is_path(text: str) -> bool:
    """Whether a text is a dotted path, such as ``my_module.MyClass``."""
    return len(text) <= LONGEST and PATH.fullmatch(text) is not None


def allow(path: str) -> None:
    """Let the class at a dotted path be imported, here and in processes that this one starts."""
    module = path.rpartition(".")[0]
    if module and not is_allowed(module):
        os.environ[VARIABLE] = ",".join([*_allowed(), module])


def allow_named(value: Any) -> None:
    """Let all classes be imported whose dotted paths stand in a value of the command line."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            allow_named(inner)
    elif isinstance(value, str):
        path = value.partition("@")[0]  # an attack's strength may follow
        if is_path(path):
            allow(path)


def is_allowed(module: str) -> bool:
    """Whether a person has named a module, or a package that it is in."""
    return any(module == name or module.startswith(f"{name}.") for name in _allowed())


def _allowed() -> list[str]:
    names = (name.strip() for name in os.environ.get(VARIABLE, "").split(","))
    return [name for name in dict.fromkeys(names) if name]


def module_of(path: str, what: str) -> ModuleType:
    """The module of the class at a dotted path; ``what`` names that in messages."""
    name = path.rpartition(".")[0]
    known = sys.modules.get(name)
    if known is not None:
        return known
    _refuse_unnamed(name, path, what)
    return _imported(name, what)


def _imported(name: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # whatever a module does while it is imported
        if isinstance(error, ImportError):
            _refuse_inner(name, what)
        reason = " ".join(str(error).split())
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise BadRequest(f"{what}: cannot import {name}: {kind}{reason}") from error


def _refuse_inner(name: str, what: str) -> None:
    """Raise ``BadRequest`` where what should be a module is a class, or inside one."""
    parts = name.split(".")
    for end in range(1, len(parts)):
        module, inner = ".".join(parts[:end]), parts[end]
        found = vars(sys.modules[module]).get(inner) if module in sys.modules else None
        if isinstance(found, type):
            raise BadRequest(
                f"{what}: {module}.{inner} is a class, and a class inside a class cannot be named; "
                f"put it at the top of {module}"
            )


def _refuse_unnamed(module: str, path: str, what: str) -> None:
    """Raise ``BadRequest`` for a module that is not installed and that nobody has named."""
    top = module.partition(".")[0]
    if top == __package__ or is_allowed(module):
        return
    places = _places(top)
    if places and not all(_is_installed(place) for place in places):
        raise BadRequest(
            f"{what}: {module} is not installed, and a config file alone cannot have it imported; "
            f"if you trust it, write {path} on the command line, import {module} in Python, or set "
            f"{VARIABLE}={module}"
        )


def _places(top: str) -> list[str]:
    """Where a module or package lies, without importing it; nothing if there is none."""
    known = sys.modules.get(top)
    if known is not None:
        found = [getattr(known, "__file__", None), *getattr(known, "__path__", ())]
        return [str(place) for place in found if place]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return []
    origin = spec.origin if spec.has_location else None
    return [str(place) for place in (origin, *(spec.submodule_search_locations or ())) if place]


def _is_installed(place: str) -> bool:
    here = Path(place).resolve()
    return any(here.is_relative_to(folder) for folder in _folders())


@cache
def _folders() -> list[Path]:
    """Where Python's own modules and installed ones lie."""
    paths = sysconfig.get_paths()
    folders = [paths[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return [Path(folder).resolve() for folder in folders]
