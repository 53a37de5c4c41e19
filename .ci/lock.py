"""Print what requirements.lock has: every package of the tested environment in its very version.

``python .ci/lock.py > requirements.lock`` in the environment that the tests have passed in. From
the requirements of pyproject.toml, its extra ``test`` included, it follows those of the packages
that are installed here, so that what else is installed does not matter. Builds (``+cpu``) are left
out: they are the same version, and each index has its own.
"""

import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
HEAD = """\
# The environment that was tested, in Python {python}: every package in its very version.
#   pip install -c requirements.lock -e '.[test]'
# Made by: python .ci/lock.py > requirements.lock
"""


def wanted() -> list[Requirement]:
    """What pyproject.toml asks for; the extra ``test`` has others of its own in it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    waiting = [Requirement(text) for text in project["dependencies"] + extras["test"]]
    found = []
    while waiting:
        requirement = waiting.pop(0)
        if canonicalize_name(requirement.name) == canonicalize_name(project["name"]):
            waiting += [Requirement(text) for extra in requirement.extras for text in extras[extra]]
        else:
            found.append(requirement)
    return found


def needed(requirement: Requirement) -> list[Requirement]:
    """What an installed package requires here, with the extras that are asked of it."""
    found = []
    for text in metadata.requires(requirement.name) or []:
        inner = Requirement(text)
        extras = requirement.extras or {""}
        if inner.marker is None or any(inner.marker.evaluate({"extra": e}) for e in extras):
            found.append(inner)
    return found


def locked() -> dict[str, str]:
    """The version of each package, by its name in one spelling."""
    found: dict[str, str] = {}
    waiting, seen = wanted(), set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        key = (name, frozenset(requirement.extras))
        if key in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(key)
        found[name] = metadata.version(name).partition("+")[0]
        waiting += needed(requirement)
    found.pop("pip", None)  # which is what installs the others
    return dict(sorted(found.items()))


if __name__ == "__main__":
    version = ".".join(map(str, sys.version_info[:2]))
    lines = [f"{name}=={number}" for name, number in locked().items()]
    sys.stdout.write(HEAD.format(python=version) + "\n".join(lines) + "\n")
