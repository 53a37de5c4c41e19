"""What a process does about a run before it opens it: it finds its store, and claims the run."""

import contextlib
import math
import os
from collections.abc import Iterator

from lit_byz.tracking.claims import Claim, held, short_claims
from lit_byz.tracking.new_run import Attempt
from lit_byz.tracking.store import CODE, FOLDER, SETTINGS, Store, claim_on, open_store


def store_of(attempt: Attempt) -> Store:
    """The store of a run; that of a study was there before, and is waited for."""
    tracking = attempt.config.tracking
    return open_store(tracking.uri, tracking.patience, wait=attempt.parent_run_id is not None)


@contextlib.contextmanager
def claimed(attempt: Attempt, most: float = math.inf) -> Iterator[Claim | None]:
    """Hold a run for this process alone, unless it is new whatever there is; see ``alone``.

    Without tracking no run is new: all that are alike save themselves in the same place.
    """
    config, name = attempt.config, claim_on(attempt.identity)
    if config.tracking.enabled:
        new = config.resume is None
        claims = contextlib.nullcontext() if new else store_of(attempt).alone(name, most)
    else:
        here = _can_write_here()
        claims = held(short_claims(None, FOLDER), name, most) if here else contextlib.nullcontext()
    with claims as claim:
        yield claim


def _can_write_here() -> bool:
    """Whether runs without tracking can save themselves; else nothing can be in their way."""
    return os.access(FOLDER if FOLDER.exists() else FOLDER.parent, os.W_OK)


def unhurried(attempt: Attempt) -> None:
    """Forget that somebody asked this process to end what it did before."""
    if attempt.config.tracking.enabled:
        store_of(attempt).patience.hurried = False


@contextlib.contextmanager
def hurried_alone(attempt: Attempt) -> Iterator[None]:
    """Let what asks one run to end, a signal or its own failure, hurry none of those after it."""
    if not attempt.config.tracking.enabled:
        yield
        return
    patience = store_of(attempt).patience
    before = patience.hurried
    try:
        yield
    finally:
        patience.hurried = before


def computed_otherwise(attempt: Attempt) -> list[str]:
    """The code of runs with the same settings that other code has computed."""
    config = attempt.config
    if not config.tracking.enabled:
        return []
    store = store_of(attempt)
    experiment = store.experiment(config.tracking.experiment)
    runs = store.search(experiment, f"tags.`{SETTINGS}` = '{attempt.code.settings}'")
    codes = [run.data.tags.get(CODE, "") for run in runs]
    return [code for code in dict.fromkeys(codes) if code != attempt.code.code]
