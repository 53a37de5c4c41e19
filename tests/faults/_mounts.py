"""File systems of a test's own; to mount one is root's right."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


def _call(*words: str | Path) -> None:
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    subprocess.run([*root, *words], check=True, capture_output=True)


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """A disk of a few megabytes at ``folder``."""
    folder.mkdir(parents=True)
    owner = f"uid={os.geteuid()},gid={os.getegid()}"
    _call("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,{owner}", "tmpfs", folder)
    try:
        yield
    finally:
        _call("umount", "--lazy", folder)


@contextlib.contextmanager
def full(folder: Path) -> Iterator[None]:
    """Leave no byte on the disk that ``folder`` is, for a while."""
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 12))
        yield
    finally:
        filler.unlink()


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing below ``folder`` can be opened for writing, or made, for a while."""
    _call("mount", "--bind", folder, folder)
    try:
        _call("mount", "-o", "remount,bind,ro", folder)
        yield
    finally:
        _call("umount", "--lazy", folder)
