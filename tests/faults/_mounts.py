"""File systems of a test's own; to mount one is root's right."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]


def _call(*words: str | Path) -> None:
    subprocess.run([*ROOT, *words], check=True, capture_output=True)


@contextlib.contextmanager
def _mounted(folder: Path, *how: str | Path) -> Iterator[None]:
    """Have something mounted at ``folder``, for no longer than this process lives."""
    _call("mount", *how, folder)
    # It unmounts when its input ends: because we say so, or because somebody has killed us.
    guard = subprocess.Popen(
        ["sh", "-c", 'read -r _; exec "$@"', "sh", *ROOT, "umount", "--lazy", folder],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        guard.communicate(timeout=60)
    assert guard.returncode == 0


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """A disk of a few megabytes at ``folder``."""
    folder.mkdir(parents=True)
    owner = f"uid={os.geteuid()},gid={os.getegid()}"
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={megabytes}m,{owner}", "tmpfs"):
        yield


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
    # Made elsewhere, where nobody has opened a file for writing: it could not be so here.
    with TemporaryDirectory() as elsewhere, _mounted(Path(elsewhere), "--bind", folder):
        _call("mount", "-o", "remount,bind,ro", elsewhere)
        with _mounted(folder, "--bind", elsewhere):
            yield
