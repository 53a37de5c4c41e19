"""Where a study's figures and tables go: a folder of its own, which no other study writes to."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from lit_byz.config.grid import Point
from lit_byz.tracking.records import StudyRecord

OUTPUTS = "outputs"
# A file in a study's folder that says whose it is.
OWNER = ".study"
LONGEST, LONGEST_KEY = 60, 64
# A name that stays below ``outputs/``.
PLAIN = re.compile(rf"\w[\w.-]{{0,{LONGEST - 1}}}")
ONE = "one-cell"
# What varies in every study of a kind, and does not tell one from another.
IMPLIED = {
    "breakdown": ("attack", "workers.f"),
    "init-scaling": ("attack", "model.init_scale"),
    "declared": ("attack", "workers.f", "server.f"),
}


def folder_name(
    kind: str,
    settings: Sequence[str],
    points: Iterable[Point],
    tuned: Iterable[str] = (),
    *,
    bare: str,
) -> str:
    """What to call a study's folder: its experiment or file, else its kind and what varies.

    ``bare`` is the experiment that the command takes when nothing is asked for.
    """
    asked = {key: value for key, _, value in (word.partition("=") for word in settings)}
    if not settings:
        return _plain(bare)
    if "experiment" in asked:
        return _plain(asked["experiment"])
    if "config" in asked:
        return _plain(Path(asked["config"]).stem)
    seen: dict[str, set[str]] = {}
    for point in points:
        for key, value in point.values.items():
            seen.setdefault(key, set()).add(repr(value))
    implied = ("seed", *IMPLIED.get(kind, ()))
    varies = [key for key, values in seen.items() if len(values) > 1 and key not in implied]
    varies.sort(key=lambda key: (key.startswith("attack"), key))  # however it was typed
    return _plain("-".join([kind, *(list(tuned) or varies or [ONE])]))


def _plain(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text).strip("-.")[:LONGEST] or "study"


def folder_of(record: StudyRecord, chosen: str | None = None) -> Path:
    """The folder of a study: the one that was chosen, else its own below ``outputs/``.

    Where another study has a folder of that name, a part of this one's key tells them apart.
    """
    if chosen is not None:
        return Path(chosen)
    name = str(record.facts.get("folder") or record.kind.replace("_", "-"))
    if not PLAIN.fullmatch(name):  # whoever can write to the store wrote it
        name = _plain(name)
    key = re.sub(r"\W", "", record.key)[:LONGEST_KEY]
    for length in (0, 6, 12, LONGEST_KEY):
        folder = Path(OUTPUTS, f"{name}-{key[:length]}" if length else name)
        if _is_ours(folder, record.key):
            return folder
    return folder


def _is_ours(folder: Path, key: str) -> bool:
    """Whether a folder belongs to the study with this key; one that nobody has is taken."""
    owner = folder / OWNER
    if not owner.exists() and folder.exists() and any(folder.iterdir()):
        return False  # somebody else has put something there
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with owner.open("x", encoding="utf-8") as file:
            file.write(f"{key}\n")
    except FileExistsError:
        return owner.read_text(encoding="utf-8").strip() == key
    return True
