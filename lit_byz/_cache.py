"""Where things that can be made again are kept: compiled kernels, data."""

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder(*parts: str) -> Path:
    """A folder below ``LIT_BYZ_CACHE`` (default: the user's cache folder), made if missing."""
    chosen = os.environ.get("LIT_BYZ_CACHE")
    home = Path(chosen) if chosen else user_cache_path("lit_byz", appauthor=False)
    folder = home.joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
