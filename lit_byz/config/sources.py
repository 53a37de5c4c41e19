"""Where settings are written: YAML files in the config folders, and ``key=value`` arguments."""

import copy
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from lit_byz.errors import BadRequest
from lit_byz.registry import nearest

_KEY = re.compile(r"[A-Za-z_]\w*(\.\w+)*")


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
    return [folder for folder in _resolved(str(Path.cwd()), named) if folder.is_dir()]


@lru_cache(maxsize=16)
def _resolved(here: str, named: tuple[str, ...]) -> list[Path]:
    """The folders that may be there, each once; grids ask for them thousands of times."""
    folders = [*(Path(part) for part in named if part), Path(here, "configs"), config_dir()]
    return list(dict.fromkeys(folder.resolve() for folder in folders))


def find(group: str, name: str) -> Path | None:
    """The file of an option, such as ``configs/dataset/mnist.yaml``."""
    for folder in config_dirs():
        path = folder / group / f"{name}.yaml"
        if path.is_file():
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
        content = _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
    except (YAMLError, OmegaConfBaseException, UnicodeDecodeError) as error:
        raise BadRequest(
            f"{path} is not a valid YAML file: {' '.join(str(error).split())}"
        ) from error
    if not isinstance(content, dict):
        raise BadRequest(f"{path}: a config file is a mapping of keys to values")
    return Settings(_shown(path), copy.deepcopy(content))


@lru_cache(maxsize=256)
def _read(path: Path, _changed: int) -> Any:
    content = OmegaConf.load(path)
    return OmegaConf.to_container(content) if isinstance(content, DictConfig) else content


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def parse(overrides: Sequence[str], groups: Sequence[str]) -> Settings:
    """``key=value`` arguments as settings.

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
    return Settings("", content)


def _split(overrides: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise BadRequest(f"'{override}': settings are written as key=value, such as seed=2")
        try:
            value = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]))["value"]  # type: ignore[index,call-overload]
        except (YAMLError, OmegaConfBaseException) as error:
            raise BadRequest(f"{key}: '{text}' is not valid YAML") from error
        yield key, value


def experiment(name: str) -> Settings:
    """The file ``configs/experiment/<name>.yaml``."""
    path = find("experiment", name)
    if path is None:
        raise BadRequest(f"unknown experiment '{name}': {nearest(name, files('experiment'))}")
    return load(path)
