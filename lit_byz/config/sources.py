"""Where settings are written: YAML files in the config folders, and ``key=value`` arguments."""

import contextlib
import copy
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from lit_byz._imports import allow_named
from lit_byz.config import plain_yaml
from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

_KEY = re.compile(r"[A-Za-z_]\w*(\.\w+){0,15}")
# An option's name as a file has it: no way out of the folder, no longer than systems allow.
_OPTION = re.compile(r"(?=.{1,200}$)[\w-][\w .@-]*(/[\w-][\w .@-]*)*")
# Sections of the command line in which classes are named by dotted path, beside the groups.
_WITH_CLASSES = ("trainer", "tune")


class Settings(NamedTuple):
    """Settings that were written in one place; ``source`` names it in messages."""

    source: str
    content: dict[str, Any]

    @property
    def prefix(self) -> str:
        return f"{self.source}: " if self.source else ""


@cache
def config_dir() -> Path:
    """The config files that come with the package: a checkout's own, or a wheel's copy."""
    package = Path(__file__).parents[1]
    checkout = package.parent / "configs"
    return checkout if (checkout / "base.yaml").exists() else package / "_configs"


def config_dirs() -> list[Path]:
    """Folders in which a config file is looked for, first match wins.

    Those of ``LIT_BYZ_CONFIGS`` (separated as in ``PATH``), ``configs`` in the working directory,
    and those that come with the package.
    """
    named = tuple(os.environ.get("LIT_BYZ_CONFIGS", "").split(os.pathsep))
    return [folder for folder in _resolved(str(Path.cwd()), named) if _is_there(folder.is_dir)]


@lru_cache(maxsize=16)
def _resolved(here: str, named: tuple[str, ...]) -> list[Path]:
    """The folders that may be there, each once; grids ask for them thousands of times."""
    found: dict[Path, None] = {}
    for part in (*(part for part in named if part), str(Path(here, "configs")), str(config_dir())):
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # a circle of links, say
            found[Path(part).resolve()] = None
    return list(found)


def _is_there(ask: Callable[[], bool]) -> bool:
    """Whether there is a file or folder; none that cannot be looked at, or has too long a name."""
    try:
        return ask()
    except (OSError, ValueError):
        return False


def find(group: str, name: str) -> Path | None:
    """The file of an option, such as ``configs/dataset/mnist.yaml``."""
    if not _OPTION.fullmatch(name):
        return None
    for folder in config_dirs():
        path = folder / group / f"{name}.yaml"
        if _is_there(path.is_file):
            return path
    return None


def files(group: str) -> dict[str, Path]:
    """All files of a group by option name."""
    found: dict[str, Path] = {}
    for folder in config_dirs():
        for path in sorted((folder / group).glob("**/*.yaml")):
            name = path.relative_to(folder / group).with_suffix("").as_posix()
            found.setdefault(name, path)
    return found


def load(path: Path) -> Settings:
    """A YAML file as settings; interpolations are left as they are."""
    try:
        found = path.stat()
        content = _read(path.absolute(), (found.st_mtime_ns, found.st_size, found.st_ino))
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path}: is no text in UTF-8: {error.reason}") from error
    except plain_yaml.NotPlain as error:
        raise BadRequest(f"{path}: {error}") from error
    if not isinstance(content, dict):
        raise BadRequest(f"{path}: a config file is a mapping of keys to values")
    return Settings(_shown(path), copy.deepcopy(content))


@lru_cache(maxsize=256)
def _read(path: Path, _state: tuple[int, ...]) -> Any:
    with path.open("rb") as file:
        raw = file.read(plain_yaml.LONGEST + 1)
    if len(raw) > plain_yaml.LONGEST:
        raise plain_yaml.NotPlain(f"is larger than {plain_yaml.LONGEST:,} bytes")
    content = plain_yaml.read(raw.decode("utf-8-sig"))
    return {} if content is None else content


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def parse(overrides: Sequence[str], groups: Sequence[str]) -> Settings:
    """``key=value`` arguments as settings. The classes that they name may be imported from now on.

    ``rule=cwtm`` chooses an option (``rule.name=cwtm`` says the same); ``rule.f=2`` sets one of its
    arguments, wherever it stands in the list. Of two values for one key the later counts.
    """
    pairs = list(_split(overrides))
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in groups and not isinstance(value, dict):
            content[key] = {"name": value}
    for key, value in pairs:
        if key in groups and not isinstance(value, dict):
            continue
        section = content
        *parents, leaf = key.split(".")
        for parent in parents:
            section = section.setdefault(parent, {})
            if not isinstance(section, dict):
                raise BadRequest(f"{key}: '{parent}' is a value, not a section")
        section[leaf] = value
    for section_name in (*groups, *_WITH_CLASSES):
        allow_named(content.get(section_name))
    return Settings("", content)


def _split(overrides: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise BadRequest(f"'{override}': settings are written as key=value, such as seed=2")
        try:
            value = plain_yaml.read(text)
        except plain_yaml.NotPlain as error:
            raise BadRequest(f"{key}: '{text}' {error}") from error
        yield key, value


def experiment(name: str) -> Settings:
    """The file ``configs/experiment/<name>.yaml``."""
    path = find("experiment", name)
    if path is None:
        raise BadRequest(f"unknown experiment '{name}': {nearest(name, files('experiment'))}")
    return load(path)
