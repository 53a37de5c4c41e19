"""Settings of Python's as they are typed on a command line."""

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lit_byz.errors import BadRequest


def as_typed(settings: Iterable[str] | Mapping[str, Any]) -> list[str]:
    """Settings as ``key=value`` texts, each a word of a command line.

    >>> as_typed({"train": {"lr": 0.1}, "train.steps": 5, "clip": ["none", "arc"]})
    ['train.lr=0.1', 'train.steps=5', 'clip=["none", "arc"]']
    """
    if isinstance(settings, Mapping):
        return list(_flat(settings))
    words = _words(settings)
    for word in words:
        if not isinstance(word, str) or word.startswith("-"):
            raise BadRequest(f"settings: {word!r}: must be key=value; options are arguments here")
    return words


def _words(settings: Iterable[str]) -> list[str]:
    """Settings that are no mapping, in a list: a generator can be read only once."""
    try:
        found = None if isinstance(settings, str) else iter(settings)
    except TypeError:
        found = None
    if found is None:
        raise BadRequest(f"settings = {settings!r}: must be a list of key=value, or a mapping")
    return list(found)


def _flat(settings: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Nested settings, ``{"train": {"lr": 0.1}}`` or ``{"train.lr": 0.1}``, as they are typed."""
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}={_typed(value, f'{above}{key}')}"


def _typed(value: Any, key: str) -> str:
    """A value as YAML in one line."""
    try:
        return _yaml(value)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{key} = {value!r}: cannot be written as a setting: {error}") from error


def _yaml(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if value is None or isinstance(value, bool | int | float | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_yaml(str(k))}: {_yaml(value[k])}' for k in value)}}}"
    return _yaml(_plain(value))


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays and ranges as what they hold, paths and classes as text."""
    if isinstance(value, type):
        return _name(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, range):
        return list(value)
    raise TypeError(f"a {type(value).__name__}")


def _name(kind: type) -> str:
    """What chooses a class: its registered name, or its dotted path."""
    if "." in kind.__qualname__:
        raise TypeError(
            f"the class {kind.__qualname__} is inside a class or a function and cannot be named; "
            "put it at the top of its module"
        )
    path = f"{kind.__module__}.{kind.__qualname__}"
    if getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is not kind:
        raise TypeError(f"{path} is another class now, or none; give the one that has this name")
    return _registered(kind, path) if path.startswith("lit_byz.") else path


def _registered(kind: type, path: str) -> str:
    from lit_byz.config.components import GROUPS, registry

    names = (registry(group).name_of(kind) for group in GROUPS)
    return next((name for name in names if name != path), path)
