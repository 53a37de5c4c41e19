"""The parts of a cluster on one machine: how each is started, and how to see that it answers."""

import contextlib
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lit_byz.errors import BadRequest, RunFailed
from lit_byz.execution.surroundings import HOST
from lit_byz.execution.ui_server import answers

DEBIAN = Path("/usr/lib/postgresql")
USER = DATABASE = "lit_byz"
POSTGRESQL, SERVER, HEAD, WORKER = "PostgreSQL", "MLflow server", "Ray head", "Ray worker"
# Tasks and outcomes are small: Ray's store of objects may be about as small as it can.
OBJECT_STORE = 100_000_000
# Seconds for one question to a cluster of Ray, which is another process.
ASKING = 60
# Ray takes 127.0.0.1 for the machine's outer address, and then listens to everybody; not so under
# this variable, meant for other systems. But then it refuses a second node, unless told otherwise.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
_NODE = """
import ray._private.ray_constants as constants, ray._private.services as services
constants.ENABLE_RAY_CLUSTER = True
services.get_node_ip_address = lambda address=None: "127.0.0.1"
from ray.scripts.scripts import main
main()
"""
_NODES = """
import json, logging, sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.ERROR)
print(json.dumps({n["NodeManagerPort"]: n["Alive"] for n in ray.nodes()}))
"""


@dataclass(frozen=True)
class Part:
    """One program: what to type, where it listens, and what it needs to know."""

    name: str
    port: int
    command: Sequence[str | Path]
    environment: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    """For ``subprocess.Popen``."""


@dataclass(frozen=True)
class Secrets:
    """What lets somebody in. Kept in the state file, never printed."""

    password: str
    token: str
    token_file: str

    def uri(self, port: int) -> str:
        """The database's address. The password needs no escapes."""
        return f"postgresql+psycopg2://{USER}:{self.password}@{HOST}:{port}/{DATABASE}"

    @property
    def for_ray(self) -> dict[str, str]:
        """Variables for all who talk to Ray: only those are let in who have the token (2.52)."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": self.token_file, **LOOPBACK}


def check_programs() -> None:
    """Refuse at once where something is not installed."""
    programs()
    if importlib.util.find_spec("psycopg2") is None:
        raise BadRequest("PostgreSQL's driver is missing: pip install psycopg2-binary")
    if importlib.util.find_spec("ray") is None:
        raise BadRequest("Ray is missing: pip install 'lit_byz[ray]'")


def programs() -> Path:
    """Where PostgreSQL's programs are; Debian keeps those of the server off the PATH."""
    found = [p for p in DEBIAN.glob("*/bin") if (p / "initdb").exists()]
    if found:
        return max(found, key=lambda path: [int(n) for n in path.parent.name.split(".")])
    named = shutil.which("initdb")
    if named is None:
        raise BadRequest(
            "PostgreSQL is missing (no initdb on the PATH or in /usr/lib/postgresql/*/bin): "
            "apt-get install postgresql, or conda install postgresql"
        )
    return Path(named).resolve().parent


def make_database(folder: Path, secrets: Secrets) -> Path:
    """The folder of a new database, closed to all who do not have the password.

    Below ``folder``; but PostgreSQL does not run as root, and the user it then runs as may not get
    there: in that case below /var/tmp.
    """
    somebody = _somebody()
    reachable = all(above.stat().st_mode & 0o001 for above in (folder, *folder.parents))
    place = Path("/var/tmp") if somebody and not reachable else folder
    home = Path(tempfile.mkdtemp(prefix="lit_byz-postgresql-", dir=place))
    key = home / "password"
    try:
        key.touch(mode=0o600)
        key.write_text(secrets.password)
        if somebody:
            for path in (home, key):
                os.chown(path, somebody["user"], somebody["group"])
        words = ["-U", USER, "--auth=scram-sha-256", f"--pwfile={key}", "--no-locale"]
        made = subprocess.run(
            [programs() / "initdb", "-D", home / "data", *words, "--encoding=UTF8"],
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
            **somebody,
        )
        if made.returncode != 0:
            last = (made.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise RunFailed(f"{POSTGRESQL}: initdb failed: {last}")
        key.unlink()
    except BaseException:  # Ctrl-C as well: the password lies there
        shutil.rmtree(home, ignore_errors=True)
        raise
    return home / "data"


def postgresql(data: Path, port: int) -> Part:
    """The database's server: this machine only, no socket in the file system."""
    command: list[str | Path] = [programs() / "postgres", "-D", data, "-p", str(port)]
    command += ["-c", f"listen_addresses={HOST}", "-c", "unix_socket_directories="]
    return Part(POSTGRESQL, port, command, more={"cwd": data, **_somebody()})


def server(folder: Path, port: int, uri: str) -> Part:
    """MLflow's server, through which artifacts go too."""
    command = [sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port)]
    command += ["--workers", str(min(4, len(os.sched_getaffinity(0))))]  # each imports for seconds
    command += ["--serve-artifacts", "--artifacts-destination", str(folder / "artifacts")]
    # Not on the command line, which every user of the machine can read.
    environment = {"MLFLOW_BACKEND_STORE_URI": uri, "MLFLOW_DISABLE_TELEMETRY": "true"}
    environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # more processes, for other work
    return Part(SERVER, port, command, environment, {"cwd": folder})


def ray_node(
    name: str, port: int, cpus: int, secrets: Secrets, others: Sequence[int], words: Sequence[str]
) -> Part:
    """A node of Ray. ``port`` is the one it is known by, ``others`` stand for Ray's fixed ones."""
    command = [sys.executable, "-P", "-c", _NODE, "start", "--block", *words]
    command += ["--node-ip-address", HOST, "--num-cpus", str(cpus), "--num-gpus", "0"]
    command += ["--object-store-memory", str(OBJECT_STORE), "--disable-usage-stats"]
    command += ["--min-worker-port", "0", "--max-worker-port", "0"]
    command += ["--dashboard-agent-listen-port", str(others[0])]
    environment = {"RAY_USAGE_STATS_ENABLED": "0", **secrets.for_ray}
    return Part(name, port, command, environment)


def ray_head(port: int, scratch: Path, secrets: Secrets, others: Sequence[int]) -> Part:
    """The node that knows the others. It computes nothing itself."""
    words = ["--head", "--port", str(port), "--temp-dir", str(scratch)]
    words += ["--include-dashboard", "false"]
    if importlib.util.find_spec("grpc") is not None:  # else there is no such server
        words += ["--ray-client-server-port", str(others[1])]
    return ray_node(HEAD, port, 0, secrets, others, words)


def ray_worker(
    number: int, port: int, head: int, cpus: int, secrets: Secrets, others: Sequence[int]
) -> Part:
    """A node that computes."""
    words = ["--address", f"{HOST}:{head}", "--node-manager-port", str(port)]
    return ray_node(f"{WORKER} {number}", port, cpus, secrets, others, words)


def end_signal(name: str) -> signal.Signals:
    """How a part is asked to end: PostgreSQL would wait for its clients at a SIGTERM."""
    return signal.SIGINT if name == POSTGRESQL else signal.SIGTERM


def database_answers(secrets: Secrets, port: int) -> bool:
    """Whether the database lets us in; made if only that is missing."""
    import psycopg2
    from psycopg2 import errorcodes

    address: dict[str, Any] = {"host": HOST, "port": port, "user": USER, "connect_timeout": 5}
    address["password"] = secrets.password
    with contextlib.suppress(psycopg2.OperationalError):
        psycopg2.connect(dbname=DATABASE, **address).close()
        return True
    with contextlib.suppress(psycopg2.OperationalError):
        connection = psycopg2.connect(dbname="postgres", **address)
        with contextlib.closing(connection):
            connection.autocommit = True
            try:
                connection.cursor().execute(f"create database {DATABASE}")
            except psycopg2.Error as error:
                return bool(error.pgcode == errorcodes.DUPLICATE_DATABASE)
        return True
    return False


def server_answers(port: int) -> bool:
    """Whether MLflow's server says that it is well."""
    return answers(f"http://{HOST}:{port}")


def port_answers(port: int) -> bool:
    """Whether somebody listens."""
    try:
        socket.create_connection((HOST, port), timeout=5).close()
    except OSError:
        return False
    return True


def ray_nodes(head: int, secrets: Secrets) -> set[int]:
    """The ports of the nodes of Ray that are there, as its head says; none if it does not answer.

    Asked by another process: a head that hangs would hang us.
    """
    if not port_answers(head):
        return set()
    try:
        answer = subprocess.run(
            [sys.executable, "-P", "-c", _NODES, f"{HOST}:{head}"],
            env={**os.environ, **secrets.for_ray, "RAY_USAGE_STATS_ENABLED": "0"},
            capture_output=True,
            text=True,
            timeout=ASKING,
            check=True,
        )
        nodes: dict[str, bool] = json.loads(answer.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError):
        return set()
    return {int(port) for port, alive in nodes.items() if alive}


def _somebody() -> dict[str, Any]:
    """Who runs PostgreSQL where we are root, which it refuses to be; as ``Popen`` wants it."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam(name)
            return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise BadRequest("PostgreSQL does not run as root, and there is no user postgres or nobody")
