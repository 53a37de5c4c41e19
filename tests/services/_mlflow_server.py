"""An MLflow server that keeps artifacts itself, killed and started at will, always at one place."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.services._postgresql import free_port

PATIENCE = 90.0  # seconds for its start, on a busy machine


class MlflowServer:
    """A server in front of a database, with a folder for artifacts that nobody else looks into."""

    def __init__(self, database: str, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.options = [option.replace("PORT", str(self.port)) for option in options]
        self.folder = folder
        self._database = database
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "mlflow", "server", "--workers", "1"]
        command += ["--backend-store-uri", self._database]
        command += ["--artifacts-destination", str(self.folder / "artifacts")]
        command += ["--host", "127.0.0.1", "--port", str(self.port)]
        command += self.options
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            alive = self._process.poll() is None and time.monotonic() < deadline
            assert alive, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.1)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{self.address}/health", timeout=5).close()
            return True
        return False

    def kill(self) -> None:
        """Kill -9 all of its processes."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Kill it, and start it again."""
        self.kill()
        yield
        self.start()


@contextlib.contextmanager
def mlflow_server(database: str, folder: Path, *options: str) -> Iterator[MlflowServer]:
    """A server that runs; PORT in its options is its port."""
    server = MlflowServer(database, folder, *options)
    try:
        server.start()
        yield server
    finally:
        server.kill()
