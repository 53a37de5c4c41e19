"""YAML as plain data: mappings with text keys, lists, texts, numbers, true, false and null.

No tag makes an object of another kind, and no text takes more than a moment to read: its length,
its depth and what its aliases stand for are limited. It is read from the parser's events, without
recursion: libyaml's own way of putting them together overflows the stack on deep brackets.

>>> read("{lr: 1e-3, hidden: [10, 20], name: mlp, day: 2025-01-01}")
{'lr': 0.001, 'hidden': [10, 20], 'name': 'mlp', 'day': '2025-01-01'}
"""

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml import events
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

# Characters of a text, values in it once its aliases are written out, and how deep they may lie.
LONGEST = 1_000_000
MOST_VALUES = 100_000
DEEPEST = 32
# Whatever takes integers keeps them in 64 bits: seeds, sizes, databases.
LARGEST = 2**63 - 1

_PREFIX = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$")
# 1e-3 is a number, as in YAML 1.2.
_FLOAT = re.compile(
    r"""[-+]?(?:[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
    |[0-9]+(?:_[0-9]+)*[eE][-+]?[0-9]+
    |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)?
    |\.(?:inf|Inf|INF))$
    |\.(?:nan|NaN|NAN)$""",
    re.VERBOSE,
)
_SIGNS = list("-+0123456789.")
# What a terminal would act on, and what UTF-8 has no bytes for; tabs and line ends are text.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_MERGE = object()
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotPlain(ValueError):
    """A text is no YAML of plain data: a line that says why."""


class _Scalars(Resolver):
    """What a scalar without a tag is."""


class _Dumper(yaml.SafeDumper):
    """Puts into quotes what would be read back as something else than a text."""


for _kind in (_Scalars, _Dumper):
    _kept = {f"{_PREFIX}{name}" for name in ("bool", "null", "merge")}
    _kind.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if pair[0] in _kept]
        for first, pairs in Resolver.yaml_implicit_resolvers.items()
    }
    _kind.add_implicit_resolver(f"{_PREFIX}float", _FLOAT, _SIGNS)
    _kind.add_implicit_resolver(f"{_PREFIX}int", _INTEGER, _SIGNS)


def read(text: str) -> Any:
    """The one value that a text stands for; an empty text is None."""
    if len(text) > LONGEST:
        raise NotPlain(f"is longer than {LONGEST:,} characters")
    _check_text(text)
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark if "\n" in text else None
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise NotPlain(f"is not valid YAML: {error.problem}{where}") from error
    except yaml.YAMLError as error:
        raise NotPlain(f"is not valid YAML: {' '.join(str(error).split())}") from error
    return builder.root


def write(plain: Any) -> str:
    """Plain data as a text that :func:`read` gives back."""
    return str(yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True))


def check(value: Any) -> None:
    """Raise ``NotPlain`` where a value that was not read here is more than plain data."""
    waiting, count = [(value, 0)], 0
    while waiting:
        item, depth = waiting.pop()
        count += 1
        if depth > DEEPEST or count > MOST_VALUES:
            raise NotPlain("is too large or too deep")
        if isinstance(item, dict):
            for key in item:
                _check_key(key)
            waiting += [(inner, depth + 1) for inner in item.values()]
        elif isinstance(item, list):
            waiting += [(inner, depth + 1) for inner in item]
        elif isinstance(item, str):
            _check_text(item)
        elif isinstance(item, int):
            _check_integer(item)
        elif not isinstance(item, float | None):
            raise NotPlain(f"holds a {type(item).__name__}, which is no text and no number")


@dataclass
class _Open:
    """A list, or a mapping as keys and values in turn, of which more is to come."""

    mapping: bool
    anchor: str | None
    before: int
    items: list[Any] = field(default_factory=list)

    def closed(self) -> Any:
        if not self.mapping:
            return [_text_of(item) for item in self.items]
        pairs = list(zip(self.items[::2], self.items[1::2], strict=True))
        made: dict[str, Any] = {}
        for key, value in pairs:
            if key is _MERGE:
                continue
            _check_key(key)
            if key in made:
                raise NotPlain(f"has the key '{key}' twice")
            made[key] = _text_of(value)
        for key, value in pairs:
            for other in _merged(value) if key is _MERGE else ():
                made = {**other, **made}
        return made


@dataclass
class _Builder:
    """Puts values together from the events of a parser."""

    root: Any = None
    values: int = 0
    _open: list[_Open] = field(default_factory=list)
    _known: dict[str, tuple[Any, int]] = field(default_factory=dict)
    _documents: int = 0

    def take(self, event: Any) -> None:
        if isinstance(event, events.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise NotPlain("has more than one document")
        elif isinstance(event, events.ScalarEvent):
            self._count(1)
            value = _scalar(event)
            self._put(value)
            self._remember(event.anchor, _text_of(value), 1)
        elif isinstance(event, events.AliasEvent):
            if event.anchor not in self._known:
                raise NotPlain(f"has the alias *{event.anchor} for nothing, or inside of itself")
            value, size = self._known[event.anchor]
            self._count(size)
            self._put(copy.deepcopy(value))
        elif isinstance(event, events.SequenceStartEvent | events.MappingStartEvent):
            mapping = isinstance(event, events.MappingStartEvent)
            _check_tag(event.tag, "map" if mapping else "seq")
            if len(self._open) >= DEEPEST:
                raise NotPlain(f"is nested more than {DEEPEST} deep")
            self._open.append(_Open(mapping, event.anchor, self.values))
            self._count(1)
        elif isinstance(event, events.CollectionEndEvent):
            last = self._open.pop()
            value = last.closed()
            self._put(value)
            self._remember(last.anchor, value, self.values - last.before)

    def _put(self, value: Any) -> None:
        if self._open:
            self._open[-1].items.append(value)
        else:
            self.root = _text_of(value)

    def _remember(self, anchor: str | None, value: Any, size: int) -> None:
        if anchor is not None:
            self._known[anchor] = (value, size)

    def _count(self, more: int) -> None:
        self.values += more
        if self.values > MOST_VALUES:
            raise NotPlain(f"stands for more than {MOST_VALUES:,} values")


def _scalar(event: Any) -> Any:
    tag = event.tag
    if tag in (None, "!"):
        tag = _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
    kind = str(tag).removeprefix(_PREFIX)
    text = str(event.value)
    if kind == "str":
        _check_text(text)
        return text
    if kind == "merge":
        return _MERGE
    if kind == "null":
        return None
    if kind == "bool":
        found = SafeConstructor.bool_values.get(text.lower())
        if found is not None:
            return found
    elif kind == "int" and _INTEGER.match(text):
        return _integer(text)
    elif kind == "float" and (_FLOAT.match(text) or _INTEGER.match(text)):
        return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    _check_tag(tag, "str", "int", "float", "bool", "null")
    raise NotPlain(f"has '{text[:50]}' for !!{kind}")


def _integer(text: str) -> int:
    digits = text.replace("_", "").lower()
    bare = digits.lstrip("+-")
    base = 2 if bare[:2] == "0b" else 16 if bare[:2] == "0x" else 8 if bare[:1] == "0" else 10
    if len(bare) > 80:
        raise NotPlain(f"has an integer of {len(bare)} digits; {_RANGE}")
    try:
        value = int(digits, base)
    except ValueError as error:
        raise NotPlain(f"has '{text}' for a number") from error
    _check_integer(value)
    return value


_RANGE = f"integers must be between -{LARGEST} and {LARGEST}"
_RESOLVER = _Scalars()


def _check_integer(value: int) -> None:
    if abs(value) > LARGEST:
        shown = f"the integer {value}" if value.bit_length() < 300 else "a huge integer"
        raise NotPlain(f"has {shown}; {_RANGE}")


def _check_text(text: str) -> None:
    found = _CONTROL.search(text)
    if found:
        raise NotPlain(f"has the character {found[0]!a}, which is no text")


def _check_key(key: Any) -> None:
    if not isinstance(key, str):
        shown = "..." if isinstance(key, dict | list) else key
        raise NotPlain(f"has the key {shown}, which is no text")
    _check_text(key)


def _check_tag(tag: str | None, *allowed: str) -> None:
    if tag is not None and tag not in ("!", *(f"{_PREFIX}{name}" for name in allowed)):
        shown = f"!!{tag.removeprefix(_PREFIX)}" if tag.startswith(_PREFIX) else tag
        raise NotPlain(f"has the tag {shown[:80]}; there are only texts, numbers, lists, mappings")


def _merged(value: Any) -> Iterator[dict[str, Any]]:
    """The mappings that ``<<`` brings in; what comes first counts."""
    for other in value if isinstance(value, list) else [value]:
        if not isinstance(other, dict):
            raise NotPlain("has << with something else than a mapping")
        yield other


def _text_of(value: Any) -> Any:
    return "<<" if value is _MERGE else value
