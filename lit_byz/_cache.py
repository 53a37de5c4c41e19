"""Where things that can be made again are kept: compiled kernels, data."""

import os
import stat
from pathlib import Path

from platformdirs import user_cache_path

# Whose the system's folders seem to be inside of a container that does not know their owner.
NOBODY = 65534


def cache_folder(*parts: str) -> Path:
    """A folder below ``LIT_BYZ_CACHE`` (default: the user's cache folder), made if missing."""
    chosen = os.environ.get("LIT_BYZ_CACHE")
    home = Path(chosen) if chosen else user_cache_path("lit_byz", appauthor=False)
    if not chosen and not home.is_absolute():
        raise FileNotFoundError("this user has no home folder")
    folder = home.joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def private_folder(*parts: str) -> Path:
    """A cache folder in which nobody but this user can have put anything.

    Raises ``OSError``, with the reason, where there is none: for what is executed, the folder of
    somebody else will not do.
    """
    folder = cache_folder(*parts).resolve()
    if hasattr(os, "geteuid"):
        if not is_own(folder):
            raise PermissionError(f"{folder} belongs to another user")
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
