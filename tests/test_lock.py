"""``requirements.lock`` is a whole environment, and one that pyproject.toml allows."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LINE = re.compile(r"([a-z0-9-]+)==([0-9][A-Za-z0-9.]*)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def locked() -> dict[str, str]:
    found = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if not line.startswith("#"):
            name = LINE.fullmatch(line)
            assert name, line  # a name and a version: no address, no hash, no build
            found[name[1]] = name[2]
    return found


LOCKED = locked()


def test_it_is_sorted_and_names_every_package_once() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        f"{name}=={version}" for name, version in sorted(LOCKED.items())
    ]


def test_it_is_what_the_project_asks_for() -> None:
    extras = PROJECT["optional-dependencies"]
    asked = PROJECT["dependencies"] + extras["test"] + extras["docs"]
    for text in asked:
        requirement = Requirement(text)
        if requirement.name == PROJECT["name"]:
            assert requirement.extras == {"docs"}  # which are among those asked for
            continue
        version = LOCKED.get(canonicalize_name(requirement.name))
        assert version is not None, f"{text}: run python .ci/lock.py > requirements.lock"
        assert requirement.specifier.contains(version, prereleases=True), (text, version)


def test_torch_ends_at_the_version_that_is_locked() -> None:
    bounds = {Requirement(text).name: Requirement(text) for text in PROJECT["dependencies"]}
    for name in ("torch", "torchvision"):
        assert f"<={LOCKED[name]}" in str(bounds[name].specifier)


def test_packages_that_are_installed_in_that_version_have_what_they_require() -> None:
    """Others say nothing about the lock: whoever runs this may have newer ones."""
    for name, version in LOCKED.items():
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if found.version.partition("+")[0] != version:
            continue
        for text in found.requires or []:
            inner = Requirement(text)
            if inner.marker is not None and not inner.marker.evaluate({"extra": ""}):
                continue
            other = LOCKED.get(canonicalize_name(inner.name))
            if inner.name == "pip":
                continue  # which is what installs the others
            assert other is not None, f"{name} needs {text}"
            assert inner.specifier.contains(other, prereleases=True), (name, text, other)
