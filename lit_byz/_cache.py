"""Where things that can be made again are kept: compiled kernels, data."""

import os
from pathlib import Path


def cache_folder(*parts: str) -> Path:
    """A folder below ``LIT_BYZ_CACHE`` (default: the user's cache folder), made if missing."""
    chosen = os.environ.get("LIT_BYZ_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = (Path(chosen) if chosen else home / "lit_byz").joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
