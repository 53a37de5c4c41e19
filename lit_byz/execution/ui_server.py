"""MLflow's UI on a store that is no server: started on this machine for this machine, and ended."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lit_byz._passwords import without_secrets_of
from lit_byz.errors import BadRequest, RunFailed
from lit_byz.execution.surroundings import free_ports
from lit_byz.tracking.page import ADDRESS, PORT

# Seconds for it to answer, on a busy machine, and to end when it is asked to.
PATIENCE, GRACE = 120.0, 10.0
PAUSE = 0.1


@dataclass(frozen=True)
class Server:
    """MLflow's UI, and the process that it is."""

    address: str
    process: "subprocess.Popen[bytes]"
    uri: str
    log: Path

    def check(self) -> None:
        """Raise ``RunFailed`` if it has ended."""
        if self.process.poll() is not None:
            lines = self.log.read_text(errors="replace").strip().splitlines() or ["no word of why"]
            told = without_secrets_of(lines[-1], self.uri)
            raise RunFailed(f"MLflow's UI has ended: {told[:300]}")


def choose_port(asked: int | None) -> int:
    """The port that was asked for; otherwise the usual one, or a free one if that is taken."""
    if asked is not None:
        if not 1 <= asked <= 65535:
            raise BadRequest(f"--port {asked}: must be between 1 and 65535")
        if not _is_free(asked):
            raise BadRequest(f"--port {asked}: is taken; without --port a free one is found")
        return asked
    if _is_free(PORT):
        return PORT
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # A port that a server has just left can be taken, as servers do.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def serving(uri: str, port: int, stopped: Callable[[], bool] = lambda: False) -> Iterator[Server]:
    """MLflow's UI on a store while the block lasts; it may not answer yet where one is stopped."""
    command = [sys.executable, "-m", "mlflow", "ui", "--host", ADDRESS, "--port", str(port)]
    others = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
    # Not on the command line, which every user of the machine can read.
    own = {"MLFLOW_BACKEND_STORE_URI": uri, "MLFLOW_DISABLE_TELEMETRY": "true"}
    own["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # more processes, for other work
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "--workers", "1"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**others, **own},
                start_new_session=True,
            )
        server = Server(f"http://{ADDRESS}:{port}", process, uri, log)
        try:
            deadline = time.monotonic() + PATIENCE
            while not stopped() and not answers(server.address):
                server.check()
                if time.monotonic() > deadline:
                    raise RunFailed(f"MLflow's UI does not answer within {PATIENCE:.0f} s")
                time.sleep(PAUSE)
            yield server
        finally:
            _end(process)


def answers(address: str) -> bool:
    """Whether a server says that it is well."""
    try:
        urllib.request.urlopen(f"{address}/health", timeout=5).close()
    except (urllib.error.URLError, OSError):
        return False
    return True


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process and those below it, which are a session of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
