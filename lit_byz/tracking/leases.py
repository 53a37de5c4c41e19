"""Leases: claims that a store keeps, for processes that share nothing but that store.

MLflow has one thing that only one of two processes can make: a registered model of a given name,
which goes for good when it is deleted. A lease is such a model, named after the claim and a number.
Its holder changes a tag of it every few seconds; where the tag stays as it is for long enough,
anybody may make the lease with the next number, and the highest number counts. Who has lost a lease
finds out before it writes again.

No clock is compared with another machine's, and time counts only while the store answers: a lease
outlives a store that goes away, for however long.
"""

import os
import platform
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lit_byz.tracking.claims import Claim, ClaimLost
from lit_byz.tracking.patience import is_away

if TYPE_CHECKING:
    from mlflow.entities.model_registry import RegisteredModel
    from mlflow.tracking import MlflowClient

PREFIX = "lit_byz.claim"
OWNER, BEAT, PROCESS = "lit_byz.owner", "lit_byz.beat", "lit_byz.process"
# Seconds without a sign of life after which a lease may be taken over, unless this variable has
# another number. The sign is given four times as often.
SECONDS, VARIABLE = 60.0, "LIT_BYZ_LEASE"


def lease_seconds() -> float:
    """How long a lease lasts without a sign of life."""
    return float(os.environ.get(VARIABLE, SECONDS))


def now() -> float:
    """Seconds that pass while a process is stopped, and while its machine sleeps where known."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@dataclass
class _Seen:
    """A lease of somebody else's as it was last seen, and how long it has not changed."""

    state: tuple[str, str, str]
    at: float
    unchanged: float = 0.0


@dataclass
class LeaseClaims:
    """Claims that the store itself keeps. ``client`` is asked once, without patience."""

    client: "MlflowClient"
    patiently: Callable[..., Any]
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _begun: dict[str, "Lease"] = field(default_factory=dict)

    def take(self, name: str) -> Claim | None:
        found: Claim | None = self.patiently(self._take, name)
        return found

    def _take(self, name: str) -> "Lease | None":
        standing = leases_of(self.client, name)
        begun = self._begun.pop(name, None)
        if begun is not None and begun.number in standing and begun.start():
            return begun  # made by an attempt that the store did not answer
        if standing:
            newest = max(standing)
            if not (_died_here(standing[newest]) or self._expired(name, newest, standing[newest])):
                return None
        self._seen.pop(name, None)
        lease = Lease(self.client, name, max(standing, default=0) + 1)
        self._begun[name] = lease
        made = lease.make() and lease.start()
        del self._begun[name]
        return lease if made else None

    def _expired(self, name: str, number: int, model: "RegisteredModel") -> bool:
        """Whether a lease has shown no sign of life for long enough, as far as we have looked."""
        tags = model.tags
        state = (str(number), tags.get(OWNER, ""), tags.get(BEAT, ""))
        before, at, most = self._seen.get(name), now(), lease_seconds()
        if before is None or before.state != state:
            self._seen[name] = _Seen(state, at)
            return False
        # A gap means that we, or the store, were not there; the holder may not have been heard.
        before.unchanged += min(at - before.at, most / 8)
        before.at = at
        return before.unchanged >= most


def leases_of(client: "MlflowClient", name: str) -> "dict[int, RegisteredModel]":
    """The leases on a claim, by number."""
    start = f"{PREFIX}.{name}."
    found: dict[int, RegisteredModel] = {}
    for model in client.search_registered_models(f"name LIKE '{start}%'", max_results=100):
        number = model.name[len(start) :]
        if model.name.startswith(start) and number.isdigit():
            found[int(number)] = model
    return found


@dataclass
class Lease:
    """A claim with a number, kept alive in the background until it is given back."""

    client: "MlflowClient"
    name: str
    number: int
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)
    _confirmed: float = 0.0
    _ended: threading.Event = field(default_factory=threading.Event)
    _lost: bool = False

    @property
    def model(self) -> str:
        return f"{PREFIX}.{self.name}.{self.number}"

    def make(self) -> bool:
        """Whether it could be made: somebody else may have been faster."""
        from mlflow.exceptions import MlflowException

        tags = {OWNER: self.owner, BEAT: "0", PROCESS: this_process()}
        try:
            self.client.create_registered_model(self.model, tags=tags)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            return False
        return True

    def start(self) -> bool:
        """Keep it alive from now on, if it is ours."""
        if not self._is_ours():
            return False
        threading.Thread(target=self._keep_alive, name=self.model, daemon=True).start()
        return True

    def check(self) -> None:
        """Raise :class:`ClaimLost` unless it is known, from a moment ago, to be ours."""
        if not self._lost and now() - self._confirmed > lease_seconds() / 4 + 1:
            self._lost = not self._is_ours()
        if self._lost:
            raise ClaimLost(f"another process has taken over {self.name}")

    def give_back(self) -> None:
        """Delete it, and those before it: the oldest first, so that none of them counts again."""
        self._ended.set()
        try:
            standing = leases_of(self.client, self.name)
            if not self._lost and standing and max(standing) <= self.number:
                for number in sorted(standing):
                    _delete(self.client, standing[number].name)
        except Exception as error:
            if not is_away(error):
                raise  # else it expires by itself

    def _is_ours(self) -> bool:
        begin = now()
        standing = leases_of(self.client, self.name)
        ours = standing.get(self.number)
        if ours is None or ours.tags.get(OWNER) != self.owner or max(standing) > self.number:
            return False
        self._confirmed = begin
        return True

    def _keep_alive(self) -> None:
        beat = 0
        while not self._ended.wait(lease_seconds() / 4):
            try:
                if not self._is_ours():
                    self._lost = True
                    return
                beat += 1
                self.client.set_registered_model_tag(self.model, BEAT, str(beat))
            except Exception as error:
                # Also one that was deleted in between: the next look finds out.
                if not is_away(error) and not self._ended.is_set():
                    continue


def _delete(client: "MlflowClient", model: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.delete_registered_model(model)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise


def this_process() -> str:
    """What tells this process from any other, now and later, on this machine and elsewhere."""
    return "|".join([*_machine(), str(os.getpid()), _started(os.getpid())])


def _machine() -> tuple[str, str, str]:
    """This machine since it was started, and who sees the same process numbers on it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot = space = ""
    return platform.node(), boot, space


def _started(number: int) -> str:
    """When a process was started, as the kernel counts; empty if there is no such process."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _died_here(model: "RegisteredModel") -> bool:
    """Whether the holder was a process of this machine that is known to be gone."""
    parts = model.tags.get(PROCESS, "").split("|")
    if len(parts) != 5 or not parts[1] or tuple(parts[:3]) != _machine():
        return False
    return _started(int(parts[3])) != parts[4]
