"""What a run says to MLflow's server: recorded once, said again as often as one likes."""

import contextlib
import http.client
import json
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

# Ids of runs, identities, owners of claims, ends of their names: each replay has its own.
_ID = re.compile(rb"\b(?:[0-9a-f]{64}|[0-9a-f]{32}|(?<=-)[0-9a-f]{10})\b")
CREATE = "/runs/create"


@dataclass(frozen=True)
class Request:
    """One request, how it was answered, and the id of the run that it made."""

    method: str
    path: str
    body: bytes
    kind: str | None
    status: int = 200
    made: bytes | None = None

    @property
    def name(self) -> str:
        """What it asks for, without ids: artifacts have a path each."""
        path = urlsplit(self.path).path
        return f"{self.method} {path.partition('/mlflow-artifacts/')[0]}" + (
            "/mlflow-artifacts" if "/mlflow-artifacts/" in path else ""
        )


def beginning(requests: Sequence[Request]) -> Sequence[Request]:
    """The requests until the run is there that the others are about."""
    made = next(place for place, request in enumerate(requests) if request.made is not None)
    return requests[: made + 1]


def beyond(fewer: Sequence[Request], more: Sequence[Request]) -> list[Request]:
    """What ``more`` asks for oftener than ``fewer`` once its run is there, in order.

    Of requests of one kind the shortest: metrics that come in more parts are as many as before, so
    that what a part costs without them is what more parts cost. Among these the last, which are
    about the run and not about its data.
    """
    later = more[len(beginning(more)) :]
    extra = Counter(request.name for request in later)
    extra -= Counter(request.name for request in fewer[len(beginning(fewer)) :])
    chosen: set[int] = set()
    for name, count in extra.items():
        places = [place for place, request in enumerate(later) if request.name == name]
        places.sort(key=lambda place: (len(later[place].body), -place))
        chosen.update(places[:count])
    return [later[place] for place in sorted(chosen)]


@contextlib.contextmanager
def recorded() -> Iterator[list[Request]]:
    """All requests that this process makes meanwhile, in order."""
    from requests.adapters import HTTPAdapter

    found: list[Request] = []
    send = HTTPAdapter.send

    def sending(self: Any, request: Any, **more: Any) -> Any:
        body = request.body or b""
        if hasattr(body, "read"):
            body = body.read()
            request.body.seek(0)
        answer = send(self, request, **more)
        made = None
        if request.path_url.endswith(CREATE):
            made = json.loads(answer.content)["run"]["info"]["run_id"].encode()
        raw = body.encode() if isinstance(body, str) else bytes(body)
        kind = request.headers.get("Content-Type")
        found.append(Request(request.method, request.path_url, raw, kind, answer.status_code, made))
        return answer

    HTTPAdapter.send = sending  # type: ignore[assignment, method-assign]
    try:
        yield found
    finally:
        HTTPAdapter.send = send  # type: ignore[method-assign]


@dataclass
class Replay:
    """How often a recording was said again, by several clients at once, and what came of it."""

    seconds: float = 0.0
    rounds: int = 0
    requests: int = 0
    differently: int = 0
    """Answered with another status than when they were recorded."""
    lock: threading.Lock = field(default_factory=threading.Lock)


def replay(address: str, requests: Sequence[Request], clients: int, seconds: float) -> Replay:
    """Say a recording again and again; nothing is begun after ``seconds``, everything is ended."""
    total = Replay()
    begin = time.perf_counter()
    threads = [
        threading.Thread(target=_client, args=(address, requests, begin + seconds, total))
        for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total.seconds = time.perf_counter() - begin
    return total


def _client(address: str, requests: Sequence[Request], until: float, total: Replay) -> None:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
    with contextlib.closing(connection):
        while time.perf_counter() < until:
            differently = _say(connection, requests)
            with total.lock:
                total.rounds += 1
                total.requests += len(requests)
                total.differently += differently


def _say(connection: http.client.HTTPConnection, requests: Sequence[Request]) -> int:
    """One round with ids of its own; how many answers were unlike the recorded ones."""
    ids: dict[bytes, bytes] = {}

    def own(match: re.Match[bytes]) -> bytes:
        old = match[0]
        return ids.setdefault(old, (uuid.uuid4().hex * 2)[: len(old)].encode())

    differently = 0
    for request in requests:
        path = _ID.sub(own, request.path.encode()).decode()
        headers = {"Content-Type": request.kind} if request.kind else {}
        text = (request.kind or "").startswith("application/json")
        body = _ID.sub(own, request.body) if text else request.body  # files are as they are
        connection.request(request.method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        differently += (answer.status < 400) != (request.status < 400)
        if request.made is not None and answer.status < 400:
            ids[request.made] = json.loads(content)["run"]["info"]["run_id"].encode()
    return differently
