"""Settings of Python's as they are typed on a command line."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lit_byz.errors import BadRequest


def as_typed(settings: Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Settings as ``key=value`` texts, each a word of a command line.

    >>> as_typed({"train": {"lr": 0.1}, "train.steps": 5, "clip": ["none", "arc"]})
    ['train.lr=0.1', 'train.steps=5', 'clip=["none", "arc"]']
    """
    if isinstance(settings, Mapping):
        return list(_flat(settings))
    if isinstance(settings, str):
        raise BadRequest(f"settings = {settings!r}: must be a list of key=value, or a mapping")
    for word in settings:
        if not isinstance(word, str) or word.startswith("-"):
            raise BadRequest(f"settings: {word!r}: must be key=value; options are arguments here")
    return list(settings)


def _flat(settings: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Nested settings, ``{"train": {"lr": 0.1}}`` or ``{"train.lr": 0.1}``, as they are typed."""
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}={_typed(value, f'{above}{key}')}"


def _typed(value: Any, key: str) -> str:
    """A value as YAML in one line."""
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{key} = {value!r}: cannot be written as a setting: {error}") from error


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, ranges and tuples as what they hold."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, range):
        return list(value)
    raise TypeError(f"a {type(value).__name__}")
