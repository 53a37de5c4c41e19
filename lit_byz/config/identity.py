"""What makes a run the same run: its settings, and the code that makes its numbers.

A result is taken for done only if both are the same. Code means the version of the package's own
numerics and, for a class given by dotted path, the source of its module and of those modules of the
user's that it builds on (see ``own_source``): where one line of them changes, the run is another
one. What a data set of the user's own consists of counts like its source (see ``own_data``).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from lit_byz._numerics import NUMERICS
from lit_byz.config.components import CALLBACKS, GROUPS, component
from lit_byz.config.own_data import SHOWN, own_data
from lit_byz.config.own_source import changed_since, held_by, is_outdated, sha256, source_of
from lit_byz.config.schema import ENVIRONMENT, NOT_IDENTITY
from lit_byz.config.settled import notes, once
from lit_byz.errors import BadRequest

# Arguments of attacks that name a class of another group: what the attackers take the server for.
ASSUMED = {"assumed_rule": "rule", "assumed_clip": "clip"}
# Keys that came later than results which are still good, with the value that means "as before".
# While a key has that value it is no part of the identity, so that a run is the one that was
# computed before the key existed. An entry stays for good: without it those results are lost.
ADDED: dict[str, Any] = {"attack.worker": None, "data.validation": 0.0}


@dataclass(frozen=True)
class Identity:
    """A run's identity: ``digest`` covers ``settings``, a hash of them, and ``code``, in words."""

    settings: str
    code: str

    @property
    def digest(self) -> str:
        return sha256(f"{self.settings} {self.code}")


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
    data = own_data(plain["dataset"], plain["data"]["root"])
    text = ", ".join([part for part in kept if part])
    return Identity(sha256(f"{{{text}}}"), _code(*_named(plain), data))


def _named(plain: Mapping[str, Any]) -> tuple[list[tuple[str, str]], Sequence[Any]]:
    """The components and the callbacks of a plain config, by their names."""
    named = [(group, plain[group]["name"]) for group in GROUPS]
    assumed = [(group, plain["attack"].get(key)) for key, group in ASSUMED.items()]
    named += [(group, name) for group, name in assumed if isinstance(name, str) and "." in name]
    return named, plain["trainer"]["callbacks"]


def changed_classes(plain: Mapping[str, Any], groups: Sequence[str], code: str) -> list[str]:
    """The own classes of some groups that are not any more what the code of a run says."""
    own = _own_classes([(group, plain[group]["name"]) for group in groups], [])
    return [path for path, kind in own if _in_words(path, kind) not in code.split(", ")]


def _in_words(path: str, kind: type) -> str:
    return f"{path} {source_of(kind, path)[:SHOWN]}"


def refuse_changed(plains: Iterable[Mapping[str, Any]], callbacks: Sequence[object] = ()) -> None:
    """Raise ``BadRequest`` if own classes were imported here, and are not any more what files say.

    What would be computed here, and by processes that import them anew, would not be the same.
    """
    kinds = {(path, kind) for plain in plains for path, kind in _own_classes(*_named(plain))}
    given = [type(callback) for callback in _foreign(callbacks)]
    found = [line for path, kind in kinds for line in changed_since(kind, path)]
    found += [line for kind in given for line in changed_since(kind)]
    found += [
        f"{k.__module__}.{k.__qualname__}: defined anew since" for k in given if is_outdated(k)
    ]
    if found:
        raise BadRequest(
            f"{', '.join(sorted(set(found)))}; start Python anew, or reload it (importlib.reload)"
        )


def refuse_other_code(plain: Mapping[str, Any], code: str) -> None:
    """Raise ``BadRequest`` if own classes are here not what the process had that planned a run."""
    named, callbacks = _named(plain)
    own = [path for path, _ in _own_classes(named, callbacks)]
    if not own or any(path.startswith("__main__.") for path in own):
        return
    here = _code(named, callbacks, "")
    if code != here and not code.startswith(f"{here}, "):
        raise BadRequest(
            f"{', '.join(dict.fromkeys(own))}: the code here is not that with which the runs were "
            f"planned (planned: {code}; here: {here}); was a file changed meanwhile, or is it "
            "another one on this machine?"
        )


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
    parts += [_in_words(path, kind) for path, kind in _own_classes(named, callbacks)]
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
    return sha256(json.dumps(values))[:16]


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

    They may change training, so their classes' source and what they hold count. The package's own
    only look on.
    """
    described = []
    for callback in _foreign(callbacks):
        kind: Any = type(callback)
        held = held_by(vars(callback), kind)
        described.append((kind.__qualname__, source_of(kind), held))
    return sha256(repr(described)) if described else ""


def _foreign(callbacks: Sequence[object]) -> list[object]:
    return [c for c in callbacks if type(c).__module__.split(".")[0] != "lit_byz"]
