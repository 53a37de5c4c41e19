"""Decoded data sets on disk: four ``.npy`` files that are mapped, not read, and a manifest.

The manifest carries each file's SHA-256, size and time of change. Opening the cache compares size
and time; only where the time differs is the content hashed. :meth:`ArrayCache.damage` always
hashes. Everything is written beside its place and moved there, the manifest last, so that what
has a name is complete.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import IO, Any

import numpy as np

from lit_byz.data._raw import RawImages

NAMES = tuple(field.name for field in fields(RawImages))
FORMAT = 1


class ArrayCache:
    """The arrays of one data set in ``folder``.

    ``contents`` identifies what they were made from (file name → SHA-256): a cache made from
    something else is as good as none.
    """

    def __init__(self, folder: Path, contents: dict[str, str]) -> None:
        self.folder = folder
        self.contents = contents

    @property
    def source(self) -> str:
        """Where the data came from, or "" where nothing is cached."""
        return str((self._manifest() or {}).get("source", ""))

    def open(self) -> RawImages | None:
        """The arrays, mapped into memory; None where they are absent or not what was stored."""
        manifest = self._manifest()
        if manifest is None or not all(self._same_size(manifest, name) for name in NAMES):
            return None
        if not all(self._same_time(manifest, name) for name in NAMES):
            if self.damage() is not None:
                return None
            self._confirm(manifest)
        # Copy on write: torch wants writable memory, and nobody can write into the file by it.
        return RawImages(**{name: np.load(self._path(name), mmap_mode="c") for name in NAMES})

    def damage(self) -> str | None:
        """What is wrong with the cache, every byte looked at; None if nothing is."""
        manifest = self._manifest()
        if manifest is None:
            return "nothing cached" if not self.folder.exists() else "no valid manifest"
        for name in NAMES:
            if not self._same_size(manifest, name):
                return f"{self._path(name).name} is missing or has the wrong size"
        # hashlib releases the interpreter's lock: four files at once use both cores.
        with ThreadPoolExecutor(len(NAMES)) as pool:
            digests = pool.map(lambda name: _digest(self._path(name)), NAMES)
        for name, digest in zip(NAMES, digests, strict=True):
            if digest != manifest["arrays"][name]["sha256"]:
                return f"{self._path(name).name} differs from its checksum"
        return None

    def exists(self) -> bool:
        """Whether anything was ever stored here, sound or not."""
        return self._path_of_manifest().exists()

    def store(self, raw: RawImages, source: str) -> None:
        """Write the arrays, replacing what is there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        entries = {}
        for name, array in vars(raw).items():
            path = self._path(name)

            def save(file: IO[bytes], array: np.ndarray = array) -> None:
                np.save(file, np.ascontiguousarray(array))

            _write(path, save)
            entries[name] = {"sha256": _digest(path), **_stamp(path)}
        self._write_manifest(
            {"format": FORMAT, "source": source, "contents": self.contents, "arrays": entries}
        )

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"

    def _path_of_manifest(self) -> Path:
        return self.folder / "manifest.json"

    def _manifest(self) -> dict[str, Any] | None:
        try:
            manifest = json.loads(self._path_of_manifest().read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            return None
        if manifest.get("contents") != self.contents:
            return None
        arrays = manifest.get("arrays")
        sound = isinstance(arrays, dict) and all(
            isinstance(arrays.get(name), dict)
            and {"sha256", "size", "changed"} <= set(arrays[name])
            for name in NAMES
        )
        return manifest if sound else None

    def _same_size(self, manifest: dict[str, Any], name: str) -> bool:
        try:
            return bool(_stamp(self._path(name))["size"] == manifest["arrays"][name]["size"])
        except OSError:
            return False

    def _same_time(self, manifest: dict[str, Any], name: str) -> bool:
        return bool(_stamp(self._path(name))["changed"] == manifest["arrays"][name]["changed"])

    def _confirm(self, manifest: dict[str, Any]) -> None:
        """Remember the files' times, after a copy of the folder changed them."""
        for name in NAMES:
            manifest["arrays"][name].update(_stamp(self._path(name)))
        # A folder shared for reading only stays as it is, and is hashed at every start.
        with contextlib.suppress(OSError):
            self._write_manifest(manifest)

    def _write_manifest(self, manifest: dict[str, Any]) -> None:
        text = json.dumps(manifest, indent=1)
        _write(self._path_of_manifest(), lambda file: file.write(text.encode()))


def _stamp(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "changed": status.st_mtime_ns}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file so that its name stands for the whole content or the old one, never a part."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
