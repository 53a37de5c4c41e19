"""The server of docs/cluster.md is called by its names, by programs and from its own pages."""

import http.client
import json
import shlex
from collections.abc import Iterator

import pytest

from tests.cli._documented import of
from tests.services._mlflow_server import MlflowServer, mlflow_server
from tests.tracking._stores import new_store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SEARCH = "/ajax-api/2.0/mlflow/experiments/search"


def documented(option: str) -> str:
    """What the page gives for an option, with the port that the server here has."""
    (line,) = [line for line in of("mlflow server") if option in line]
    words = shlex.split(line)
    return words[words.index(option) + 1].replace("5000", "PORT")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    folder = tmp_path_factory.mktemp("server")
    names = ("--allowed-hosts", "--cors-allowed-origins")
    options = [word for name in names for word in (name, documented(name))]
    with mlflow_server(new_store(folder), folder, *options) as running:
        yield running


def asked(server: MlflowServer, host: str, origin: str | None = None) -> tuple[int, str]:
    """The answer to what MLflow's page asks first, of a server that is called ``host``."""
    headers = {"Host": f"{host}:{server.port}", "Content-Type": "application/json"}
    if origin is not None:
        headers["Origin"] = f"{origin}:{server.port}"
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("POST", SEARCH, json.dumps({"max_results": 1}), headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.parametrize("host", ["store", "10.0.0.1", "localhost"])
def test_names_that_the_page_gives(server: MlflowServer, host: str) -> None:
    """By a program, by a browser on its page, and at this end of a tunnel."""
    for origin in (None, f"http://{host}"):
        status, text = asked(server, host, origin)
        assert (status, "experiments" in text) == (200, True), text


def test_other_names_are_refused(server: MlflowServer) -> None:
    assert asked(server, "elsewhere")[0] == 403
    assert asked(server, "store", "http://elsewhere")[0] == 403
