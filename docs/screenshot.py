"""Take docs/compare.png: MLflow's compare page of the newest sweep's cells, in headless Chromium.

python pipelines/sweep.py
python docs/screenshot.py [--uri sqlite:///mlruns/mlflow.db] [--out docs/compare.png]

Starts `mlflow ui` on a free port and Chromium on a pipe, waits until the page shows the name and
the worst-case accuracy of every cell, and prints what it found there as one line of JSON.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from lit_byz.cli.command import Parser, guarded
from lit_byz.errors import RunFailed
from lit_byz.tracking import Store, default_uri, open_store
from lit_byz.tracking.store import KIND

METRIC = "worst_case/max_accuracy"
# The page's own sizes, in pixels: what is beside the cells' columns, and each of these.
BESIDE, COLUMN = 480, 200
TALL = 4000  # at first, so that nothing is left out for want of room
PATIENCE = 90.0  # seconds for a server, or a page, on a busy machine
# Chromium's names on various systems.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Cells:
    """The cells of a sweep: run ids, names and worst-case accuracies, in one order."""

    experiment_id: str
    ids: list[str]
    names: list[str]
    accuracies: list[float]

    @property
    def path(self) -> str:
        """Where MLflow's UI compares them."""
        runs = urllib.parse.quote(json.dumps(self.ids, separators=(",", ":")))
        experiments = urllib.parse.quote(json.dumps([self.experiment_id]))
        return f"/#/compare-runs?runs={runs}&experiments={experiments}"


def newest_cells(store: Store, experiment: str) -> Cells:
    """The cells of the newest sweep that have a worst case, in the order of their making."""
    found = store.client.get_experiment_by_name(experiment)
    if found is None:
        raise RunFailed(f"{store.uri}: there is no experiment {experiment}")
    sweeps = store.client.search_runs(
        [found.experiment_id], f"tags.`{KIND}` = 'sweep'", order_by=["start_time DESC"]
    )
    if not sweeps:
        raise RunFailed(f"{store.uri}: there is no sweep; python pipelines/sweep.py makes one")
    below = store.children(found.experiment_id, sweeps[0].info.run_id)
    cells = [run for run in reversed(below) if METRIC in run.data.metrics]
    if len(cells) < 2:
        raise RunFailed(f"{store.uri}: the newest sweep has fewer than two cells with results")
    return Cells(
        str(found.experiment_id),
        [str(run.info.run_id) for run in cells],
        [str(run.info.run_name) for run in cells],
        [float(run.data.metrics[METRIC]) for run in cells],
    )


@contextlib.contextmanager
def mlflow_ui(uri: str) -> Iterator[str]:
    """MLflow's UI on a store, on a free port of this machine; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", uri]
    command += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            server = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
                start_new_session=True,
            )
        address = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + PATIENCE
            while not _answers(f"{address}/health"):
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RunFailed(f"mlflow ui does not start: {log.read_text()[-500:]}")
                time.sleep(0.2)
            yield address
        finally:
            _end(server)


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=5).close()
    except (urllib.error.URLError, OSError):
        return False
    return True


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


# JavaScript: one section of the page, the row of a metric in its table, and the names of the runs.
SECTION = """[...document.querySelectorAll("[class*=collapse-item]")].find(
    item => item.querySelector("[aria-label='collapse NAME']"))"""
ROW = f"""(() => {{
    const section = {SECTION.replace("NAME", "Metrics")};
    const link = section && [...section.querySelectorAll("a")].find(
        a => a.textContent === "{METRIC}");
    if (!link) return null;
    const top = link.parentElement.style.top;
    const cells = [...section.querySelectorAll("[role=grid]")[1].querySelectorAll("div")];
    return cells.filter(cell => cell.style.top === top && cell.style.position === "absolute")
        .sort((a, b) => parseFloat(a.style.left) - parseFloat(b.style.left))
        .map(cell => cell.textContent);
}})()"""
NAMES = """[...document.querySelectorAll("th")].filter(
    head => head.textContent === "Run Name:").flatMap(
    head => [...head.parentElement.querySelectorAll("td")].map(cell => cell.innerText.trim()))"""
# The boxes that choose what the plot shows, and what is chosen: 0 for params, 1 for metrics.
CHOICE = "document.querySelectorAll('[class*=collapse-item] [class*=select-multiple]')[PLACE]"
CHOSEN = f"[...{CHOICE}.querySelectorAll('[class*=selection-item-content]')].map(i => i.innerText)"


def compare(page: Chromium, address: str, cells: Cells) -> dict[str, Any]:
    """Open the compare page, bring the worst case into the picture, and read what it shows."""
    page.call("Page.navigate", url=address + cells.path)
    shown = f"({NAMES}).length === {len(cells.names)} && ({ROW} || []).length"
    page.wait_for(shown, f"{len(cells.names)} runs and {METRIC}")
    assistant = """document.querySelector(
        "[data-component-id='mlflow.assistant.chat_panel.close']")"""
    if page.evaluate(f"Boolean({assistant})"):
        page.click(assistant, "the assistant's button")
        page.wait_for(f"!{assistant}", "itself without the assistant")
    switch = """document.querySelector("[aria-label='Parameters - Show diff only']")"""
    page.click(switch, "the switch of the parameters")
    page.wait_for(f"{switch}.ariaChecked === 'true'", "only the parameters that differ")
    _plot(page, cells)
    section = SECTION.replace("NAME", "Artifacts")
    page.resize(int(page.evaluate(f"({section}).getBoundingClientRect().top")))
    names, values = page.evaluate(NAMES), page.evaluate(ROW)
    return {"url": address + cells.path, "metric": METRIC, "names": names, "values": values}


def _plot(page: Chromium, cells: Cells) -> None:
    """Have the plot show the worst case over the settings that the cells are named after."""
    axes = {part.split("=")[0] for name in cells.names for part in name.split(", ")}
    params, metrics = (CHOSEN.replace("PLACE", place) for place in "01")
    for place, chosen in enumerate((params, metrics)):
        for name in page.evaluate(chosen):
            if place == 0 and name.removesuffix(".name") in axes:
                continue
            item = f"""[...{CHOICE.replace("PLACE", str(place))}.querySelectorAll(
                "[class*=selection-item-content]")].find(i => i.innerText === "{name}")
                .parentElement.querySelector("[class*=selection-item-remove]")"""
            page.click(item, f"a way to leave out {name}")
            page.wait_for(f"!{chosen}.includes({name!r})", f"the plot without {name}")
    page.click(
        f"{CHOICE.replace('PLACE', '1')}.querySelector('[class*=select-selector]')", "metrics"
    )
    option = f"""[...document.querySelectorAll("[class*=select-item-option]")].find(
        option => option.textContent === "{METRIC}" && option.getBoundingClientRect().width)"""
    page.click(option, f"{METRIC} among the metrics")
    drawn = f"""[...document.querySelectorAll(".axis-title")].some(
        title => title.textContent === "{METRIC}")"""
    page.wait_for(f"{metrics}.includes({METRIC!r})", f"{METRIC} chosen")
    page.wait_for(drawn, f"{METRIC} in its plot")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Escape", windowsVirtualKeyCode=27)
    page.wait_for(f"!({option})", "the plot without the list of metrics")


def main(arguments: Sequence[str]) -> int:
    parser = Parser(__doc__ or "")
    parser.add_argument("--uri", default=default_uri(), help="of the store; default: %(default)s")
    parser.add_argument("--experiment", default="lit_byz", help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("compare.png"))
    options = parser.parse_args(arguments)
    cells = newest_cells(open_store(options.uri), options.experiment)
    width = BESIDE + COLUMN * (len(cells.names) + 1)
    with mlflow_ui(options.uri) as address, Chromium(width) as page:
        found = compare(page, address, cells)
        page.picture(options.out)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main))
