"""MLflow's UI on the tracked runs, opened on the cells of a sweep, ranked by worst case.

python pipelines/ui.py                     the sweep or study that was worked on last
python pipelines/ui.py RUN_ID              another one, or a single run
python pipelines/ui.py tracking.uri=sqlite:///elsewhere/mlflow.db

Serves this machine alone, until Ctrl-C. Where the store is an MLflow server, nothing is started:
its page is opened. Runs may go on meanwhile, and are seen as they do.
"""

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING

from lit_byz._door import here
from lit_byz._passwords import without_passwords
from lit_byz.cli.command import Parser, guarded
from lit_byz.errors import BadRequest

if TYPE_CHECKING:
    from lit_byz.tracking.page import Page

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for; returns the exit code."""
    parser = Parser(__doc__ or "")
    parser.add_argument("what", nargs="*", help="id of a run, tracking.key=value")
    parser.add_argument("--port", type=int, help="default: 5000, or a free one if that is taken")
    parser.add_argument("--no-browser", action="store_true", help="say the link, do not open it")
    options = parser.parse_intermixed_args(arguments)
    settings = [word for word in options.what if "=" in word]
    words = [word for word in options.what if "=" not in word]
    for word in settings:
        if not word.startswith("tracking."):
            raise BadRequest(f"{word}: ui takes the id of a run and tracking.key=value only")
    if len(words) > 1:
        raise BadRequest(f"{words[1]}: ui opens one run at a time")

    from lit_byz.execution.ui_server import choose_port, serving

    if options.port is not None:
        choose_port(options.port)
    page = _page(settings, words[0] if words else None)
    if page.store.is_server:
        _tell(page.link)
        _open(page.link, options.no_browser)
        return 0
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    before = {number: signal.signal(number, end) for number in SIGNALS}
    try:
        _tell(f"starting MLflow's UI on {without_passwords(page.store.uri)}")
        with serving(page.store.uri, choose_port(options.port), ended.is_set) as server:
            if not ended.is_set():
                _tell(f"{server.address}{page.path}", "Ctrl-C ends it")
                _open(f"{server.address}{page.path}", options.no_browser)
            while not ended.wait(0.5):
                server.check()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _page(settings: Sequence[str], run_id: str | None) -> "Page":
    """The page that is asked for, of a store that is there."""
    from lit_byz.config.compose import tracking_section
    from lit_byz.tracking.glances import glance_at, glances
    from lit_byz.tracking.ledger import KINDS, Ledger
    from lit_byz.tracking.page import page_of, page_of_run, page_of_runs
    from lit_byz.tracking.store import KIND, default_uri, sqlite_file

    tracking = tracking_section(settings)
    path = sqlite_file(tracking["uri"] or default_uri())
    if path is not None and not path.exists():
        raise BadRequest(
            here(f"{path}: there is no store yet; python pipelines/sweep.py makes one")
        )
    ledger = Ledger.of({**tracking, "enabled": True})
    store = ledger.store
    if run_id is None:
        if glances(store, ledger.experiment_id, KIND, KINDS):
            return page_of(store, ledger.result(ledger.newest()))
        if not glances(store, ledger.experiment_id, KIND, ["run"]):
            raise BadRequest(here("there is no run yet; python pipelines/sweep.py makes some"))
        return page_of_runs(store, ledger.experiment_id)
    seen = glance_at(store, run_id, tags=[KIND])
    if seen is None:
        raise BadRequest(f"run {run_id}: there is none in this store")
    if seen.tags.get(KIND) in KINDS:
        return page_of(store, ledger.result(run_id))
    return page_of_run(store, seen.experiment_id, run_id)


def _tell(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


def _open(link: str, no_browser: bool) -> None:
    """Open a link where there is a screen: a browser in the terminal would take it over."""
    screen = not sys.platform.startswith("linux") or {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}
    if screen and not no_browser:
        webbrowser.open(link)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return guarded(run, argv)
