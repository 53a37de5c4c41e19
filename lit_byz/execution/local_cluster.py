"""A whole cluster on one machine, to try things out: PostgreSQL, MLflow's server, a few Ray nodes.

All of it listens on the loopback device only. What was started stands in one file of its folder,
with the passwords, and from that file it is found and ended again. Runs and artifacts stay in the
folder: a cluster that is started there anew has them all.
"""

import contextlib
import json
import os
import secrets as random_secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from lit_byz.errors import BadRequest, RunFailed
from lit_byz.execution import cluster_parts as parts
from lit_byz.execution.cluster_parts import HEAD, POSTGRESQL, SERVER, Part, Secrets
from lit_byz.execution.started import Started, boot, start
from lit_byz.execution.surroundings import HOST, free_ports

STATE = "cluster.json"
PATIENCE = 240.0  # seconds for a part to answer, on a busy machine
PAUSE = 0.2
FIXED_PORTS = 2  # that Ray would take for itself, for each node

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Running:
    """A part that was started."""

    name: str
    port: int
    process: Started


@dataclass
class State:
    """What the file says."""

    mark: str
    secrets: Secrets
    scratch: str = ""
    """Ray's folder: its sockets need a short path."""
    data: str = ""
    """The database's folder."""
    parts: list[Running] = field(default_factory=list)

    @classmethod
    def new(cls, folder: Path) -> "State":
        token_file = str(folder / "ray_token")
        word = random_secrets.token_urlsafe
        return cls(word(12), Secrets(word(24), random_secrets.token_hex(32), token_file))

    @classmethod
    def read(cls, path: Path) -> "State":
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            found["secrets"] = Secrets(**found["secrets"])
            found["parts"] = [
                Running(part["name"], part["port"], Started(**part["process"]))
                for part in found["parts"]
            ]
            return cls(**found)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise BadRequest(f"{path}: cannot be read as the state of a cluster: {error}") from None


@dataclass
class LocalCluster:
    """The cluster of a folder."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / STATE

    @cached_property
    def state(self) -> State:
        """As the file says, or a new one."""
        return State.read(self.path) if self.path.exists() else State.new(self.folder)

    @property
    def tracking_uri(self) -> str:
        """The address of MLflow's server."""
        return f"http://{HOST}:{self.part(SERVER).port}"

    @property
    def ray_address(self) -> str:
        return f"{HOST}:{self.part(HEAD).port}"

    @property
    def database_uri(self) -> str:
        """With the password: not to be printed."""
        return self.state.secrets.uri(self.part(POSTGRESQL).port)

    def part(self, name: str) -> Running:
        """The part of this name, which has to be there."""
        return next(part for part in self.state.parts if part.name == name)

    def up(self, workers: int, cpus: int, tell: Tell) -> None:
        """Start everything, or nothing: what was started is ended again if a part fails."""
        boot()  # before anything is made
        parts.check_programs()
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._alone():
            if any(part.process.members() for part in self.state.parts):
                raise BadRequest(f"a cluster is up in {self.folder}, or a part of one: down first")
            self.state.parts.clear()
            self._delete_scratch()
            try:
                self._start(workers, cpus, tell)
            except BaseException:
                self._end(tell)
                raise

    def down(self, tell: Tell) -> None:
        """End what was started and is still there, in the opposite order."""
        if not self.path.exists():
            return
        with self._alone():
            self._end(tell)

    def delete_database(self) -> None:
        """Forget the runs of a cluster that is down; its data may lie outside its folder."""
        if self.state.data and not self.state.parts:
            shutil.rmtree(Path(self.state.data).parent)
            self.state.data = ""
            self._write()

    def status(self) -> dict[Running, bool]:
        """Whether each part is the process that was started, and answers."""
        known = self.state.parts
        alive = {part.name: part.process.alive for part in known}
        nodes: set[int] = set()
        if alive.get(HEAD):
            nodes = parts.ray_nodes(self.part(HEAD).port, self.state.secrets)
        return {part: alive[part.name] and self._answers(part, nodes) for part in known}

    def _answers(self, part: Running, nodes: set[int]) -> bool:
        if part.name == POSTGRESQL:
            return parts.database_answers(self.state.secrets, part.port)
        if part.name == SERVER:
            return parts.server_answers(part.port)
        return bool(nodes) if part.name == HEAD else part.port in nodes

    def _start(self, workers: int, cpus: int, tell: Tell) -> None:
        state = self.state
        self._write()
        ports = iter(free_ports(3 + workers + FIXED_PORTS * (1 + workers)))
        if not (state.data and Path(state.data).exists()):
            begin = time.monotonic()
            state.data = str(parts.make_database(self.folder, state.secrets))
            self._write()
            tell(f"new database in {state.data}: {time.monotonic() - begin:.1f} s")
        database = parts.postgresql(Path(state.data), next(ports))
        self._launch(database, tell, lambda: parts.database_answers(state.secrets, database.port))
        server = parts.server(self.folder, next(ports), self.database_uri)
        self._launch(server, tell, lambda: parts.server_answers(server.port))
        _write_closed(Path(state.secrets.token_file), state.secrets.token)
        state.scratch = tempfile.mkdtemp(prefix="lit_byz-")

        def others() -> list[int]:
            return [next(ports) for _ in range(FIXED_PORTS)]

        def there(port: int) -> bool:
            return port in parts.ray_nodes(head.port, state.secrets)

        head = parts.ray_head(next(ports), Path(state.scratch), state.secrets, others())
        self._launch(head, tell, lambda: bool(parts.ray_nodes(head.port, state.secrets)))
        for number in range(1, workers + 1):
            port = next(ports)
            node = parts.ray_worker(number, port, head.port, cpus, state.secrets, others())
            self._launch(node, tell, partial(there, port))

    def _launch(self, part: Part, tell: Tell, answers: Callable[[], bool]) -> None:
        """Start a part and wait until it answers."""
        begin = time.monotonic()
        log = self.folder / f"{part.name.lower().replace(' ', '_')}.log"
        # Addresses of other servers and clusters would lead the parts astray.
        mine = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "RAY_", "PG"))}
        started, process = start(
            part.command, self.state.mark, log, {**mine, **part.environment}, **part.more
        )
        self.state.parts.append(Running(part.name, part.port, started))
        self._write()
        while not answers():
            if process.poll() is not None:
                raise RunFailed(f"{part.name} has ended: {_last_line(log)}")
            if time.monotonic() - begin > PATIENCE:
                raise RunFailed(f"{part.name} does not answer: {_last_line(log)}")
            time.sleep(PAUSE)
        tell(f"{part.name} on {HOST}:{part.port}: {time.monotonic() - begin:.1f} s")

    def _end(self, tell: Tell) -> None:
        state = self.state
        while state.parts:
            part = state.parts[-1]
            begin = time.monotonic()
            try:
                there = part.process.end(parts.end_signal(part.name))
            except PermissionError:
                raise RunFailed(f"{part.name} (process {part.process.pid}) is not ours") from None
            took = f"ended: {time.monotonic() - begin:.1f} s" if there else "was gone already"
            tell(f"{part.name} {took}")
            state.parts.pop()
            self._write()
        self._delete_scratch()

    def _delete_scratch(self) -> None:
        """Delete Ray's folder, which a crash of the machine may have left."""
        if self.state.scratch:
            shutil.rmtree(self.state.scratch, ignore_errors=True)
            self.state.scratch = ""
            self._write()

    def _write(self) -> None:
        _write_closed(self.path, json.dumps(asdict(self.state), indent=1) + "\n")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        lock = FileLock(self.folder / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise BadRequest(f"another command is at work in {self.folder}") from None
        self.__dict__.pop("state", None)  # as it is now
        try:
            yield
        finally:
            lock.release()


def _write_closed(path: Path, text: str) -> None:
    """Write a file that nobody else can read, whole or not at all."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    said = [line for line in lines if line]
    return f"{said[-1] if said else 'it said nothing'} ({log})"
