"""What makes a run the same run: its settings, and the code that makes its numbers.

A result is taken for done only if both are the same. Code means the version of the package's own
numerics and, for a class given by dotted path, the source of its module and of those modules of the
user's that it builds on: where one line of them changes, the run is another one. What a data set
of the user's own consists of counts like its source (see ``own_data``).
"""

import ast
import hashlib
import importlib.util
import inspect
import json
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from omegaconf import DictConfig

from lit_byz._numerics import NUMERICS
from lit_byz.config import typed_in
from lit_byz.config.components import CALLBACKS, GROUPS, component
from lit_byz.config.own_data import SHOWN, own_data
from lit_byz.config.schema import ENVIRONMENT, NOT_IDENTITY
from lit_byz.config.settled import notes, once

# Arguments of attacks that name a class of another group: what the attackers take the server for.
ASSUMED = {"assumed_rule": "rule", "assumed_clip": "clip"}
# Keys that came later than results which are still good, with the value that means "as before".
# While a key has that value it is no part of the identity, so that a run is the one that was
# computed before the key existed. An entry stays for good: without it those results are lost.
ADDED: dict[str, Any] = {"attack.worker": None, "data.validation": 0.0}
# In place of a module's text, where there is none.
NO_SOURCE = "no source"


@dataclass(frozen=True)
class Identity:
    """A run's identity: ``digest`` covers ``settings``, a hash of them, and ``code``, in words."""

    settings: str
    code: str

    @property
    def digest(self) -> str:
        return _sha256(f"{self.settings} {self.code}")


def identify(plain: Mapping[str, Any], origin: str | None = None) -> Identity:
    """The identity of a plain config (see ``NOT_IDENTITY``, ``ADDED`` for what is left out of it).

    ``origin`` is a hash of the checkpoint that a run begins from, if it is another run's.
    """
    # The text of all in one go, put together of parts that the points of a grid share.
    shared, kept = notes(), []
    for name in sorted(plain):
        if name not in NOT_IDENTITY:
            _, noted = shared.get(id(plain[name])) or (None, {})
            kept.append(noted.get(name) or noted.setdefault(name, _kept(name, plain[name])))
    if origin is not None:
        kept = sorted([*kept, json.dumps({"origin": origin})[1:-1]])
    named = [(group, plain[group]["name"]) for group in GROUPS]
    assumed = [(group, plain["attack"].get(key)) for key, group in ASSUMED.items()]
    named += [(group, name) for group, name in assumed if isinstance(name, str) and "." in name]
    data = own_data(plain["dataset"], plain["data"]["root"])
    text = ", ".join([part for part in kept if part])
    return Identity(_sha256(f"{{{text}}}"), _code(named, plain["trainer"]["callbacks"], data))


@once
def _kept(name: str, value: Any) -> str:
    """A section's name and what counts of it, as JSON; "" where nothing does."""
    inner = value.items() if isinstance(value, Mapping) else [("", value)]
    counting = {key: v for key, v in inner if _counts(f"{name}.{key}", v)}
    return json.dumps({name: counting}, sort_keys=True)[1:-1] if counting else ""


@once
def _code(named: Sequence[tuple[str, str]], callbacks: Sequence[Any], data: str) -> str:
    """The code that makes the numbers of a run with these components and callbacks, in words.

    ``data`` is what a user's own data set consists of.
    """
    parts = [f"numerics {NUMERICS}", *_component_versions(named)]
    parts += [f"{path} {source_of(kind)[:SHOWN]}" for path, kind in _own_classes(named, callbacks)]
    return ", ".join(dict.fromkeys([*parts, *([data] if data else [])]))


def _counts(path: str, value: Any) -> bool:
    """Whether a key with this value is a part of the identity."""
    return path not in NOT_IDENTITY and not (path in ADDED and value == ADDED[path])


def identity(config: DictConfig) -> str:
    """A hash of everything that changes a run's result."""
    from lit_byz.config.compose import to_plain

    return identify(to_plain(config)).digest


def environment(plain: Mapping[str, Any]) -> str:
    """A hash of settings outside the identity that may decide whether a run fails."""
    values = [plain[section][key] for section, key in (name.split(".") for name in ENVIRONMENT)]
    return _sha256(json.dumps(values))[:16]


def _component_versions(named: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The versions of the package's own components, where theirs is not the first."""
    for group, name in named:
        version = getattr(component(group, name), "numerics", 1) if "." not in name else 1
        if version != 1:
            yield f"{name} {version}"


def _own_classes(
    named: Sequence[tuple[str, str]], callbacks: Sequence[Any]
) -> Iterator[tuple[str, type]]:
    """The classes of a config that are given by dotted path."""
    for group, name in named:
        if "." in name:
            yield name, component(group, name)
    for entry in callbacks:
        name = str(entry["name"] if isinstance(entry, Mapping) else entry)
        yield name, CALLBACKS[name]


def of_callbacks(callbacks: Sequence[object]) -> str:
    """What tells a run with these callbacks apart from one without; "" where there are none.

    They may change training, so their classes' source and their settings count. The package's own
    only look on.
    """
    foreign = [c for c in callbacks if type(c).__module__.split(".")[0] != "lit_byz"]
    described = []
    for callback in foreign:
        kind: Any = type(callback)
        settings = sorted((name, repr(value)) for name, value in vars(callback).items())
        described.append((kind.__qualname__, source_of(kind), settings))
    return _sha256(repr(described)) if foreign else ""


def source_of(kind: Any) -> str:
    """A hash of the source that a class is made of: its module's, and the user's own beneath it.

    A class that was typed into a session has none; what it does counts.
    """
    module = sys.modules.get(kind.__module__)
    if module is not None and module.__name__ == "__main__" and _text(module) == NO_SOURCE:
        return _sha256(f"{typed_in.made_of(kind, module)} {_sources(kind)}")  # it may change
    return _sources(kind)


@lru_cache(maxsize=256)
def _sources(kind: Any) -> str:
    start = sys.modules.get(kind.__module__)
    found: dict[str, ModuleType] = {}
    waiting = [] if start is None else [start]
    waiting += [m for base in kind.__mro__ if (m := sys.modules.get(base.__module__)) is not None]
    while waiting:
        module = waiting.pop()
        if module.__name__ not in found and (module is start or _is_users(module)):
            found[module.__name__] = module
            waiting += _used_by(module)
    texts = [f"{name} {_text(module)}" for name, module in sorted(found.items())]
    return _sha256("\n".join(texts))


def _used_by(module: ModuleType) -> list[ModuleType]:
    """The modules that a module imports, and those that its global names come from."""
    used = [sys.modules[name] for name in _imported(module) if name in sys.modules]
    for value in vars(module).values():
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        other = sys.modules.get(name) if isinstance(name, str) else None
        if other is not None:
            used.append(other)
    return used


def _imported(module: ModuleType) -> Iterator[str]:
    """What the import statements of a module name: a number says nothing of where it comes from.

    Only those that run whenever the module is imported: of others it depends on what ran before
    whether they are there.
    """
    try:
        statements = ast.parse(_text(module)).body
    except SyntaxError:
        return
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            relative = "." * statement.level + (statement.module or "")
            start = importlib.util.resolve_name(relative, module.__package__)
            yield start
            yield from (f"{start}.{alias.name}" for alias in statement.names)


@lru_cache(maxsize=4096)
def _is_users(module: ModuleType) -> bool:
    """Whether a module is neither installed nor a part of Python or of this package."""
    path = getattr(module, "__file__", None)
    if not path or module.__name__.split(".")[0] == "lit_byz":
        return False
    here = Path(path).resolve()
    return not any(here.is_relative_to(folder) for folder in _installed())


@lru_cache(maxsize=1)
def _installed() -> list[Path]:
    paths = sysconfig.get_paths()
    folders = [paths[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return [Path(folder).resolve() for folder in folders] + [Path(__file__).resolve().parents[1]]


def _text(module: ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):
        return str(getattr(module, "__version__", NO_SOURCE))  # compiled


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
