"""MLflow's UI on a free port, and headless Chromium on a pipe."""

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from lit_byz.errors import RunFailed
from lit_byz.execution.ui_server import serving

TALL = 4000  # pixels, at first, so that nothing is left out for want of room
PATIENCE = 90.0  # seconds for a page, on a busy machine
# Chromium's names on various systems.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@contextlib.contextmanager
def mlflow_ui(uri: str) -> Iterator[str]:
    """MLflow's UI on a store, on a free port of this machine; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with serving(uri, port) as server:
        yield server.address


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and its own: they are a session of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)


class Chromium:
    """One page of a headless Chromium, spoken to by its DevTools protocol over a pair of pipes."""

    def __init__(self, width: int) -> None:
        self.width = width
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if browser is None:
            raise RunFailed(f"none of {', '.join(BROWSERS)} is installed")
        self._folder = TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        command = [browser, "--headless=new", "--remote-debugging-pipe", "--disable-gpu"]
        command += ["--no-first-run", "--hide-scrollbars", f"--user-data-dir={self._folder.name}"]
        command += ["--disable-dev-shm-usage", "--disable-background-networking"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium has none for root, and says so by ending
        self._process = subprocess.Popen(
            # Chromium reads commands from descriptor 3 and answers on 4.
            ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_browser, from_browser),
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._count = 0
        self._session: str | None = None

    def __enter__(self) -> Self:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.resize(TALL)
        return self

    def __exit__(self, *_: object) -> None:
        _end(self._process)
        os.close(self._write)
        os.close(self._read)
        self._folder.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events in between are of no interest."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") != self._count:
                continue
            if "error" in answer:
                raise RunFailed(f"Chromium refuses {method}: {answer['error']['message']}")
            result: dict[str, Any] = answer["result"]
            return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise RunFailed("Chromium does not answer")
            read = os.read(self._read, 1 << 16)
            if not read:
                raise RunFailed("Chromium has ended")
            self._buffer += read
        text, self._buffer = self._buffer.split(b"\0", 1)
        found: dict[str, Any] = json.loads(text)
        return found

    def resize(self, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=self.width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RunFailed(f"the page's script failed: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, script: str, what: str) -> Any:
        """Wait until an expression is something, and give it."""
        deadline = time.monotonic() + PATIENCE
        while not (found := self.evaluate(script)):
            if time.monotonic() > deadline:
                raise RunFailed(f"the page never showed {what}")
            time.sleep(0.1)
        return found

    def click(self, element: str, what: str) -> None:
        """Click, as a mouse does, on the element that a JavaScript expression gives."""
        middle = f"""(() => {{
            const element = {element};
            if (!element) return null;
            const box = element.getBoundingClientRect();
            return box.width ? [box.x + box.width / 2, box.y + box.height / 2] : null;
        }})()"""
        place = None
        while place != (place := self.wait_for(middle, what)):
            time.sleep(0.2)  # it is still moving, or has just come
        x, y = place
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))
