"""A PostgreSQL of a test's own: made for it, crashed and started at will, and thrown away."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

BINARIES = "/usr/lib/postgresql/*/bin"
# Either half is blotted out wherever it stands, so neither is a word that messages have.
SECRET = "hush/to-be-seen"


def _programs() -> Path:
    """Where PostgreSQL's programs are; Debian keeps those of the server off the PATH."""
    found = sorted(Path("/").glob(BINARIES[1:]), key=lambda path: float(path.parent.name))
    return found[-1] if found else Path(str(shutil.which("initdb"))).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgreSQL:
    """A server with a password."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        # PostgreSQL refuses to run as root; another user cannot look into pytest's folders.
        self._somebody: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._somebody = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        password = folder / "password"
        password.write_text(SECRET)
        if self._somebody:
            shutil.chown(folder, self._somebody["user"])
            shutil.chown(password, self._somebody["user"])
        access = ["-U", "lit_byz", "--auth=scram-sha-256", f"--pwfile={password}"]
        self._call("initdb", *access, "--no-locale", "--encoding=UTF8", "--no-sync")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        # A crash of this program alone loses nothing that was handed to the operating system.
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off -k {self.folder}"
        patiently = ("-w", "-t", "180")
        self._call("pg_ctl", *patiently, "-l", str(self.folder / "log"), "-o", settings, "start")

    def crash(self) -> None:
        """End it without a word to those who are connected; it has to recover afterwards."""
        self._call("pg_ctl", "-m", "immediate", "stop")

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Crash it, and start it again, whatever happens meanwhile: others have it after us."""
        self.crash()
        try:
            yield
        finally:
            self.start()

    def end(self) -> None:
        """Crash it if it runs."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self.crash()

    def address(self, database: str = "postgres") -> str:
        password = quote(SECRET, safe="")
        return f"postgresql+psycopg2://lit_byz:{password}@127.0.0.1:{self.port}/{database}"

    def create(self, database: str, template: str = "template1") -> None:
        """Make a database: empty, or a copy of one that nobody is connected to."""
        import psycopg2

        plain = self.address().replace("+psycopg2", "")
        with contextlib.closing(psycopg2.connect(plain)) as connection:
            connection.autocommit = True
            connection.cursor().execute(f"create database {database} template {template}")

    def _call(self, program: str, *words: str) -> None:
        subprocess.run(
            [_programs() / program, "-D", self.folder / "data", *words],
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            **self._somebody,
        )


@contextlib.contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """A server that runs."""
    with TemporaryDirectory() as name:
        server = PostgreSQL(Path(name))
        try:
            server.start()
            yield server
        finally:
            server.end()
