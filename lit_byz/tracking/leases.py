"""Leases: claims that a store keeps, for processes that share nothing but that store.

MLflow has one thing that only one of two processes can make: a registered model of a given name,
which goes for good when it is deleted. A lease is such a model, named after the claim and a number.
Its holder changes a tag of it now and then, its sign of life; where the tag stays as it is for long
enough, anybody may make the lease with the next number, and the highest number counts. Who has lost
a lease finds out before it writes again.

A sign in time is enough to know that a lease is still ours: nobody may have taken it. After one
that came late the holder looks whether there is a higher number, and who makes a number looks
afterwards whether the holder has given a sign: of the two at least one sees the other.

No clock is compared with another machine's, and time counts only while the store answers: a lease
outlives a store that goes away, for however long.
"""

import contextlib
import math
import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lit_byz.errors import BadRequest
from lit_byz.tracking.claims import Claim, ClaimLost
from lit_byz.tracking.patience import is_away
from lit_byz.tracking.process_name import died_here, this_process

if TYPE_CHECKING:
    from mlflow.entities.model_registry import RegisteredModel
    from mlflow.tracking import MlflowClient

PREFIX = "lit_byz.claim"
OWNER, BEAT, PROCESS = "lit_byz.owner", "lit_byz.beat", "lit_byz.process"
LASTS = "lit_byz.lasts"
# Seconds without a sign of life after which a lease may be taken over, unless this variable has
# another number. The sign is given four times as often: a request, for every run that is on.
SECONDS, VARIABLE = 120.0, "LIT_BYZ_LEASE"
LEAST = 0.1
# Of so many signs in time, after one the holder looks all the same.
LOOK_EVERY = 4
# Seconds between two attempts of somebody who waits, at most: each is a request.
LONGEST = 5.0


def lease_seconds() -> float:
    """How long a lease lasts without a sign of life."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return SECONDS
    found = _seconds(given)
    if found is None:
        raise BadRequest(f"{VARIABLE} = {given}: must be a number of seconds, at least {LEAST:g}")
    return found


def _seconds(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) and found >= LEAST else None


def now() -> float:
    """Seconds that pass while a process is stopped, and while its machine sleeps where known."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


State = tuple[int, str, str]


@dataclass
class _Seen:
    """A lease of somebody else's as it was last seen, and how long it has not changed."""

    state: State
    at: float
    unchanged: float = 0.0


@dataclass
class LeaseClaims:
    """Claims that the store itself keeps. ``client`` is asked once, without patience."""

    client: "MlflowClient"
    patiently: Callable[..., Any]
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _begun: dict[str, "Lease"] = field(default_factory=dict)

    @property
    def longest(self) -> float:
        return min(LONGEST, lease_seconds() / 8)

    def take(self, name: str) -> Claim | None:
        found: Claim | None = self.patiently(self._take, name)
        return found

    def _take(self, name: str) -> "Lease | None":
        standing = leases_of(self.client, name)
        begun = self._begun.get(name)
        if begun is not None and begun.number in standing and begun.start():
            del self._begun[name]
            return begun  # made by an attempt that the store did not answer
        self._begun.pop(name, None)
        newest = max(standing, default=0)
        over: State | None = None
        if standing and not died_here(standing[newest].tags.get(PROCESS, "")):
            over = _state(newest, standing[newest])
            if not self._expired(name, over, _lasts(standing[newest])):
                return None
        self._seen.pop(name, None)
        lease = self._begun[name] = Lease(self.client, name, newest + 1, over)
        made = lease.make() and lease.start()
        del self._begun[name]
        if not made:
            return None
        with contextlib.suppress(Exception):  # the next one tries again; the newest stays for all
            for number in sorted(standing)[:-1]:
                _delete(self.client, standing[number].name)
        return lease

    def _expired(self, name: str, state: State, most: float) -> bool:
        """Whether a lease has shown no sign of life for long enough, as far as we have looked."""
        before, at = self._seen.get(name), now()
        if before is None or before.state != state:
            self._seen[name] = _Seen(state, at)
            return False
        # A gap means that we, or the store, were not there; the holder may not have been heard.
        before.unchanged += min(at - before.at, most / 8)
        before.at = at
        return before.unchanged >= most


def _state(number: int, model: "RegisteredModel") -> State:
    return number, model.tags.get(OWNER, ""), model.tags.get(BEAT, "")


def _lasts(model: "RegisteredModel") -> float:
    """How long a lease lasts: by its holder's number, which gives signs of life to match."""
    return _seconds(model.tags.get(LASTS, "")) or lease_seconds()


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
    """A claim with a number, kept alive in the background until it is given back.

    ``over`` is the lease that it takes over, as it was when it was given up.
    """

    client: "MlflowClient"
    name: str
    number: int
    over: State | None = None
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)
    seconds: float = field(default_factory=lease_seconds)
    # When the last sign of life was begun that has been written.
    _confirmed: float = 0.0
    _signs: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _lost: bool = False

    @property
    def model(self) -> str:
        return f"{PREFIX}.{self.name}.{self.number}"

    def make(self) -> bool:
        """Whether it could be made: somebody else may have been faster."""
        from mlflow.exceptions import MlflowException

        tags = {OWNER: self.owner, BEAT: "0", PROCESS: this_process(), LASTS: f"{self.seconds:g}"}
        self._confirmed = now()
        try:
            self.client.create_registered_model(self.model, tags=tags)
        except MlflowException as error:
            # The one of somebody who was faster may be gone again.
            if error.error_code not in ("RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST"):
                raise
            return False
        return True

    def start(self) -> bool:
        """Keep it alive from now on, if it is ours."""
        standing = leases_of(self.client, self.name)
        if not self._is_ours(standing):
            return False
        if self.over is not None and _changed(standing, self.over):
            _delete(self.client, self.model)  # its holder lives after all
            return False
        threading.Thread(target=self._keep_alive, name=self.model, daemon=True).start()
        return True

    def check(self) -> None:
        """Raise :class:`ClaimLost` unless it is ours: by a sign of life in time, or by a look."""
        if not self._lost and now() - self._confirmed > self.seconds / 2:
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

    def _is_ours(self, standing: "dict[int, RegisteredModel] | None" = None) -> bool:
        if standing is None:
            standing = leases_of(self.client, self.name)
        ours = standing.get(self.number)
        known = ours is not None and ours.tags.get(OWNER) == self.owner
        return known and max(standing) == self.number

    def _keep_alive(self) -> None:
        pause = self.seconds / 4
        while not self._lost and not self._ended.wait(pause):
            try:
                self._give_sign()
                pause = self.seconds / 4
            except Exception:  # the store is away, or has too much to do: soon again
                pause = self.seconds / 16

    def _give_sign(self) -> None:
        begin, written = now(), True
        try:
            self._signs += 1
            self.client.set_registered_model_tag(self.model, BEAT, str(self._signs))
        except Exception as error:
            if is_away(error):
                raise
            written = False  # perhaps it was deleted
        late = not written or now() - self._confirmed > self.seconds / 2
        if (late or self._signs % LOOK_EVERY == 0) and not self._is_ours():
            self._lost = True
        elif written:
            self._confirmed = begin


def _changed(standing: "dict[int, RegisteredModel]", state: State) -> bool:
    """Whether a lease that was given up has shown a sign of life since."""
    found = standing.get(state[0])
    return found is not None and _state(state[0], found) != state


def _delete(client: "MlflowClient", model: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.delete_registered_model(model)
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
