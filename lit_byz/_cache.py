"""Where things that can be made again are kept: compiled kernels, data."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from platformdirs import user_cache_path

from lit_byz._warn import warn

# Whose the system's folders seem to be inside of a container that does not know their owner.
NOBODY = 65534
# A variable: the user has been told that there is no cache, and no process of a sweep repeats it.
TOLD = "LIT_BYZ_CACHE_TOLD"


def cache_folder(*parts: str) -> Path:
    """A folder below ``LIT_BYZ_CACHE`` (default: the user's cache folder), made if missing."""
    chosen = os.environ.get("LIT_BYZ_CACHE")
    home = Path(chosen) if chosen else user_cache_path("lit_byz", appauthor=False)
    if not chosen and not home.is_absolute():
        raise FileNotFoundError("this user has no home folder")
    folder = home.joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def spare_folder(*parts: str) -> Path:
    """Instead of a cache folder that cannot be written: one of this user's among temporary files.

    Closed to others. Raises ``OSError`` where another user has made it.
    """
    own = Path(tempfile.gettempdir()) / f"lit_byz-{os.geteuid() if hasattr(os, 'geteuid') else ''}"
    own.mkdir(mode=stat.S_IRWXU, exist_ok=True)
    if hasattr(os, "geteuid"):
        if not is_own(own):
            raise PermissionError(f"{own} belongs to another user")
        if stat.S_IMODE(own.stat().st_mode) != stat.S_IRWXU:
            own.chmod(stat.S_IRWXU)
    folder = own.joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def tell_without_cache() -> None:
    """Say in one line that the cache cannot be written to, if so, for this process and its own."""
    try:
        with tempfile.TemporaryFile(dir=cache_folder()):
            return
    except OSError as error:
        if TOLD not in os.environ:
            os.environ[TOLD] = "1"
            warn(
                f"the cache folder cannot be written ({error}): kernels are compiled by every "
                "process for itself, data sets are kept among temporary files"
            )


def place_matplotlib() -> None:
    """Give matplotlib a folder where it cannot write to its own, of which it would tell at length.

    For this process and those that it starts, before any of them imports it.
    """
    home = Path("~").expanduser()
    folders = [os.environ.get("XDG_CONFIG_HOME") or home / ".config"]
    folders.append(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    if "MPLCONFIGDIR" not in os.environ and not all(_can_be_made(Path(f)) for f in folders):
        with contextlib.suppress(OSError):
            os.environ["MPLCONFIGDIR"] = str(spare_folder("matplotlib"))


def _can_be_made(folder: Path) -> bool:
    """Whether there is a folder, or can be one, that this process can write to."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there):  # permissions alone do not tell, for root
            return True
    except OSError:
        return False


def private_folder(*parts: str) -> Path:
    """A cache folder in which nobody but this user can have put anything.

    Raises ``OSError``, with the reason, where there is none: for what is executed, the folder of
    somebody else will not do.
    """
    folder = cache_folder(*parts).resolve()
    if hasattr(os, "geteuid"):
        if not is_own(folder):
            raise PermissionError(f"{folder} belongs to another user")
        if stat.S_IMODE(folder.stat().st_mode) != stat.S_IRWXU:
            folder.chmod(stat.S_IRWXU)
        for above in folder.parents:
            found = above.stat()
            open_to_all = found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
            if open_to_all or found.st_uid not in (0, NOBODY, os.geteuid()):
                raise PermissionError(f"{above} is open to other users")
    return folder


def is_own(path: Path) -> bool:
    """Whether a file or folder, and not one that it links to, belongs to this user alone."""
    found = path.lstat()
    if stat.S_ISDIR(found.st_mode):
        return found.st_uid == os.geteuid()
    writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not writable
