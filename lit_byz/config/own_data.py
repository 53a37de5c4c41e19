"""Data sets of a user's own: their content is a part of what makes a run the same run.

The package's data sets have checksums, and are the same wherever they lie. Of a class that is given
by dotted path nobody knows what it reads before it has.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from lit_byz.config.components import build, component, option_settings

# Hexadecimal digits of a hash, as people see it.
SHOWN = 8


def is_own(option: Any) -> bool:
    """Whether an option of the group ``dataset``, as it is written, is a user's own class."""
    name = option.get("name") if isinstance(option, Mapping) else option
    return isinstance(name, str) and "." in str(option_settings("dataset", name)[0]["name"])


def own_data(section: Mapping[str, Any], root: str | None) -> str:
    """The content of a user's own data set, in words; "" for one of the package's.

    It is read once for a command, however many runs the command has.
    """
    name = section["name"]
    if "." not in name or component("dataset", name).__module__.partition(".")[0] == "lit_byz":
        return ""
    return _content(json.dumps(section, sort_keys=True), root)


@lru_cache(maxsize=64)
def _content(section: str, root: str | None) -> str:
    from lit_byz.data import data_root

    try:
        found = str(build("dataset", json.loads(section)).digest(root))
    except (Exception, SystemExit):
        # It may be there where the runs are computed; if it is not, they say what is wrong.
        return f"its data in {data_root(root)}"
    return f"its data {hashlib.sha256(found.encode()).hexdigest()[:SHOWN]}"


def forget_data() -> None:
    """Have data sets read again: files may have changed."""
    _content.cache_clear()
