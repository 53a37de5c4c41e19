"""``--print-config``: a config as a file that ``config=`` reads back, and that may be changed."""

from collections.abc import Iterator, Mapping
from typing import Any

from lit_byz._passwords import without_passwords
from lit_byz.cli import answer
from lit_byz.config import plain_yaml
from lit_byz.config.labels import shown


def write_config(written: Mapping[str, Any], resolved: Mapping[str, Any]) -> None:
    """Write a config as it was written; what its followers are at present stands below it."""
    stream = answer.stream()
    stream.write(plain_yaml.write(without_passwords(dict(written))))
    if now := [f"{key} = {shown(value)}" for key, value in _followers(written, resolved)]:
        stream.write(f"# at present: {', '.join(now)}\n")


def _followers(
    written: Mapping[str, Any], resolved: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """The keys whose values are not those that stand there, with their values."""
    for key, value in resolved.items():
        there = written.get(key, value)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            yield from _followers(there, value, f"{prefix}{key}.")
        elif there != value:
            yield f"{prefix}{key}", value
