"""Requests are said again with ids of their own, in order, by several clients."""

import http.server
import itertools
import json
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from lit_byz.benchmark import _traffic
from lit_byz.benchmark._traffic import Request, beginning, beyond, recorded, replay

RUN = "0123456789abcdef0123456789abcdef"


class Server(http.server.ThreadingHTTPServer):
    said: list[tuple[str, str, dict[str, Any]]]


class Runs(http.server.BaseHTTPRequestHandler):
    """Makes runs, and notes what it is told."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = self.server.said
        said.append((self.path, self.headers["Content-Type"], body))
        answer = json.dumps({"run": {"info": {"run_id": f"{len(said):032x}"}}}).encode()
        self.send_response(404 if self.path == "/nothing" else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Runs) as running:
        running.said = []
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_recorded_and_said_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    import requests

    address = f"http://127.0.0.1:{server.server_port}"
    with recorded() as found:
        made = requests.post(f"{address}/api/runs/create", json={"tag": "f" * 64}, timeout=60)
        run_id = made.json()["run"]["info"]["run_id"]
        requests.post(f"{address}/api/runs/log-batch", json={"run_id": run_id}, timeout=60)
        requests.post(f"{address}/nothing", json={"run_id": run_id}, timeout=60)
    assert [request.name for request in found] == [
        "POST /api/runs/create",
        "POST /api/runs/log-batch",
        "POST /nothing",
    ]
    assert [request.status for request in found] == [200, 200, 404]
    assert found[0].made == run_id.encode()
    server.said.clear()
    # A clock that goes on by a second whenever somebody looks: two rounds begin in time.
    clock = itertools.count()
    monkeypatch.setattr(_traffic, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    again = replay(address, found, clients=1, seconds=2.5)
    assert again.rounds == 2
    assert again.requests == 3 * again.rounds == len(server.said)
    assert again.differently == 0
    (_, kind, created), (_, _, logged), _ = server.said[:3]
    assert kind == "application/json"
    assert created["tag"] != "f" * 64
    assert len(created["tag"]) == 64
    assert logged["run_id"] == f"{1:032x}"  # the one that was made for this round


def test_names_of_artifacts_have_no_paths() -> None:
    path = f"/api/2.0/mlflow-artifacts/artifacts/1/{RUN}/artifacts/config.yaml"
    assert Request("PUT", path, b"", None).name == "PUT /api/2.0/mlflow-artifacts"


def test_what_a_slower_run_asks_for_beyond() -> None:
    def post(name: str, size: int = 0, made: bytes | None = None) -> Request:
        return Request("POST", f"/api/{name}", b"x" * size, None, made=made)

    before = [post("claim"), post("runs/create", made=RUN.encode())]
    fewer = [*before, post("log", 9), post("log", 9), post("release")]
    short, shorter, sign = post("log", 2), post("log", 1), post("sign")
    more = [*before, post("log", 9), sign, short, shorter, post("log", 6), post("release")]
    assert [*beginning(more)] == before
    assert beyond(fewer, more) == [sign, short, shorter]
    # Of equally long ones the last.
    looks = [Request("GET", f"/api/look?{place}", b"", None) for place in range(3)]
    assert beyond([*before, looks[0]], [*before, *looks]) == looks[1:]
    assert beyond(more, fewer) == []
