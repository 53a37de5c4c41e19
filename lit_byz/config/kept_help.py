"""The text of ``--help``, kept in the user's cache.

Making it needs the signature and the docstring of every component, and so torch, whose import takes
longer than anybody wants to wait for help. The kept text is found by all that it is made of: the
sources of the components and the config files.
"""

import contextlib
import hashlib
import os
import sys
from pathlib import Path

from lit_byz._cache import private_folder
from lit_byz.config import sources

PACKAGE = Path(__file__).parents[1]
PARTS = ("attacks", "config", "data", "models", "robust")


def kept_catalogue() -> str:
    """:func:`lit_byz.config.help.catalogue`, made once for each state of the sources."""
    try:
        folder = private_folder("help")
        path = folder / f"{_digest()}.txt"
        if path.exists():
            return path.read_text(encoding="utf-8")
    except OSError:
        return _made()
    text = _made()
    with contextlib.suppress(OSError):
        for old in folder.glob("*.txt"):
            old.unlink(missing_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    return text


def _made() -> str:
    from lit_byz.config.help import catalogue

    return catalogue()


def _digest() -> str:
    """Of every file that the text depends on, its name and its content."""
    found = hashlib.sha256(sys.version.encode())
    for folder, ending in [(PACKAGE / part, "*.py") for part in PARTS] + [
        (sources.config_dir(), "*.yaml")
    ]:
        for path in sorted(folder.rglob(ending)):
            content = path.read_bytes()
            found.update(f"{path.relative_to(folder)} {len(content)}\n".encode())
            found.update(content)
    return found.hexdigest()[:32]
