"""Data sets that are downloaded: once, verified, and safe from other processes."""

import hashlib
import os
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from filelock import FileLock, Timeout

from lit_byz._cache import TOLD, cache_folder, spare_folder
from lit_byz._warn import warn
from lit_byz.data._cache import ArrayCache
from lit_byz.data._dataset import Dataset, FetchReport
from lit_byz.data._progress import progress_bar, say
from lit_byz.data._raw import RawImages
from lit_byz.data._sources import ARCHIVES, Source, SourceFailed, unpack
from lit_byz.errors import RunFailed, disk_is_full


def data_root(root: str | Path | None = None) -> Path:
    """The folder for data: ``root``, else ``LIT_BYZ_DATA``, else one in the user's cache."""
    chosen = root or os.environ.get("LIT_BYZ_DATA")
    if chosen:
        return Path(chosen).expanduser().absolute()
    try:
        return cache_folder("data")
    except OSError:
        return _spare_root("this user's cache folder cannot be made")


def _spare_root(reason: str) -> Path:
    """Where data is kept if nobody has chosen a folder and the cache cannot be written to."""
    folder = spare_folder("data")
    if TOLD not in os.environ:
        warn(f"{reason}: data is kept in {folder}; choose a folder with data.root or LIT_BYZ_DATA")
    return folder


class DownloadedDataset(Dataset):
    """A data set made from files that have to be fetched.

    A subclass declares ``files``, each with the SHA-256 of its uncompressed content, and the
    ``sources`` to try in order; :meth:`find` gets a file's content out of a folder, in whichever
    form a source (or a person, by hand) has put it there, and :meth:`decode` makes arrays of the
    contents. The arrays are cached in ``<root>/<name>``; the files are not kept.
    """

    to_write: ClassVar[tuple[str, ...]] = ("find", "decode")
    example: ClassVar[str] = (
        "import io, numpy; from lit_byz.data import DownloadedDataset, RawImages\n"
        "class MyData(DownloadedDataset):\n"
        "    classes, shape, files, sources, by_hand, find, decode = 3, (13,), "
        "{'my.npz': 'its SHA-256'}, (), 'my.npz', lambda self, folder, file: "
        "next((p.read_bytes() for p in folder.glob(file)), None), lambda self, contents: "
        "RawImages(**numpy.load(io.BytesIO(contents['my.npz'])))"
    )
    files: ClassVar[Mapping[str, str]]
    sources: ClassVar[tuple[Source, ...]]
    by_hand: ClassVar[str]  # what a person may put into the folder, for messages
    also_in: ClassVar[tuple[str, ...]] = ()  # other folders of ``root`` where the files may lie

    @abstractmethod
    def find(self, folder: Path, file: str) -> bytes | None:
        """The uncompressed content of ``file`` from somewhere below ``folder``, if it is there."""

    @abstractmethod
    def decode(self, contents: Mapping[str, bytes]) -> RawImages:
        """The arrays, from the verified contents of all ``files``."""

    def read(self, root: str | Path | None) -> RawImages:
        place = _root(root)
        raw = self._cache(place).open()
        if raw is None:
            place = self._fetch(root, place, sound=lambda cache: cache.open() is not None)
            raw = self._cache(place).open()
        if raw is None:
            folder = self._cache(place).folder
            raise RunFailed(f"data set '{self.name}': {folder} changed while it was read")
        return raw

    def digest(self, root: str | Path | None = None) -> str:
        """A hash of the files' checksums, for which nothing is fetched."""
        if type(self).read is not DownloadedDataset.read:
            return super().digest(root)
        return hashlib.sha256(repr(sorted(self.files.items())).encode()).hexdigest()

    def fetch(self, root: str | Path | None = None) -> FetchReport:
        """Look at every cached byte; fetch what is missing or damaged."""
        place = _root(root)
        cache = self._cache(place)
        damage = cache.damage()
        known = cache.exists()
        if damage is not None:
            place = self._fetch(root, place, sound=lambda cache: cache.damage() is None)
            cache = self._cache(place)
        raw = self.read(place)
        state = f"in {cache.folder}, from {cache.source}"
        if damage is None:
            state = f"are there and verified, {state}"
        elif known:
            state = f"repaired ({damage}) and verified, {state}"
        else:
            state = f"fetched and verified, {state}"
        return FetchReport(self.name, len(raw.train_labels), len(raw.test_labels), state)

    def _cache(self, root: Path) -> ArrayCache:
        return ArrayCache(root / self.name, dict(self.files))

    def _fetch(
        self, asked: str | Path | None, root: Path, sound: Callable[[ArrayCache], bool]
    ) -> Path:
        """Fill the cache, unless another process has made it ``sound`` in the meantime.

        Gives back the folder for data: ``root``, or another one if nobody ``asked`` for that.
        """
        try:
            root.mkdir(parents=True, exist_ok=True)
            with self._alone(root):
                if not sound(self._cache(root)):
                    contents, source = self._obtain(root)
                    self._cache(root).store(self.decode(contents), source)
        except OSError as error:
            reason = f"{root}: {error.strerror or error}"
            if not disk_is_full(error) and (spare := _another(asked, root, reason)):
                return self._fetch(spare, spare, sound)
            raise RunFailed(
                f"data set '{self.name}' cannot be stored in {reason}; "
                "choose another folder with data.root or LIT_BYZ_DATA"
            ) from error
        return root

    @contextmanager
    def _alone(self, root: Path) -> Iterator[None]:
        """No other process fetches this data set into ``root`` meanwhile."""
        lock = FileLock(root / f".{self.name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            say(f"{self.name}: another process is fetching it into {root}; waiting for it")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _obtain(self, root: Path) -> tuple[dict[str, bytes], str]:
        """The verified content of every file, and where it came from."""
        prefix = f".partial-{self.name}-"
        for left_over in root.glob(prefix + "*"):  # of a process that was killed
            shutil.rmtree(left_over, ignore_errors=True)
        failures = []
        for folder in (root / self.name, *(root / other for other in self.also_in)):
            with tempfile.TemporaryDirectory(prefix=prefix, dir=root) as work:
                try:
                    return self._from_folder(folder, Path(work)), f"files in {folder}"
                except SourceFailed as failure:
                    if folder.name == self.name:
                        failures.append(f"files in {folder}: {failure}")
        for source in self.sources:
            with tempfile.TemporaryDirectory(prefix=prefix, dir=root) as work:
                try:
                    with progress_bar(f"{self.name} from {source}") as advance:
                        source.download(Path(work), advance)
                    return self._from_folder(Path(work), Path(work)), str(source)
                except SourceFailed as failure:
                    failures.append(f"{source}: {failure}")
        cache = self._cache(root)
        state = f"is damaged ({cache.damage()}) and " if cache.exists() else ""
        raise RunFailed(
            f"data set '{self.name}' {state}could not be had from any source "
            f"({'; '.join(failures)}); "
            f"by hand: put {self.by_hand} into {root / self.name} and try again"
        )

    def _from_folder(self, folder: Path, work: Path) -> dict[str, bytes]:
        """Find and verify all files below ``folder``, its archives unpacked into ``work``."""
        contents: dict[str, bytes] = {}
        missing = []
        if folder.is_dir():
            archives = [path for path in folder.iterdir() if path.name.endswith(ARCHIVES)]
            for archive in sorted(archives):
                unpack(archive, work)
        for file, expected in self.files.items():
            content = self.find(folder, file)
            if content is None:
                content = self.find(work, file)
            if content is None:
                missing.append(file)
                continue
            found = hashlib.sha256(content).hexdigest()
            if found != expected:
                raise SourceFailed(
                    f"{file} has the wrong content (SHA-256 {found[:12]}…, not {expected[:12]}…)"
                )
            contents[file] = content
        if missing:
            raise SourceFailed("no " + (", ".join(missing) if contents else "data files"))
        return contents


def _another(asked: str | Path | None, root: Path, reason: str) -> Path | None:
    """The folder to take instead of ``root``, if that is none that somebody has chosen."""
    if asked or os.environ.get("LIT_BYZ_DATA"):
        return None
    try:
        spare = _spare_root(reason)
    except OSError:
        return None
    return None if spare == root else spare


def _root(root: str | Path | None) -> Path:
    try:
        return data_root(root)
    except (OSError, RuntimeError) as error:
        raise RunFailed(f"no folder for data ({error}); set data.root or LIT_BYZ_DATA") from error
