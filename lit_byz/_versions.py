"""Versions of what is installed, and whether a result was made with another torch.

A run gives the same bits however often it is interrupted, within one version of torch: kernels
differ in the last bit from one to the next. Builds of one version (``+cpu``, ``+cu130``) count as
that version.
"""

import json
from functools import cache
from importlib import metadata

# The tag of a run that has the versions it was made with.
VERSIONS = "lit_byz.versions"


@cache
def version(package: str) -> str:
    """The version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def this_torch() -> str:
    """The version of torch, without its build."""
    return version("torch").partition("+")[0]


def other_torch(text: str | None) -> str | None:
    """The torch of a run's tag :data:`VERSIONS`, if it is known and is not this one.

    >>> other_torch('{"torch": "2.12.1+cu130"}')
    '2.12.1'
    """
    try:
        found = json.loads(text or "{}").get("torch", "")
    except (AttributeError, ValueError):
        return None
    public = str(found).partition("+")[0]
    return public if public[:1].isdigit() and public != this_torch() else None
