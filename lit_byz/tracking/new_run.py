"""A new run in the store: what it is to be, and what is known of it before it starts."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from omegaconf import DictConfig

from lit_byz._machine import machine
from lit_byz._versions import VERSIONS, version
from lit_byz.config.compose import to_plain
from lit_byz.config.identity import Identity, environment
from lit_byz.tracking.names import run_name
from lit_byz.tracking.store import (
    CODE,
    ENVIRONMENT,
    IDENTITY,
    KIND,
    MACHINE,
    PARENT,
    SETTINGS,
    Store,
)

PACKAGES = ("lit_byz", "torch", "torchvision", "lightning", "mlflow", "numpy", "omegaconf")


@dataclass(frozen=True)
class Attempt:
    """What a run is to be: its config, identity, and the run that it shall lie below.

    ``name`` is what MLflow lists it as; a study knows what varies among its runs.
    """

    config: DictConfig
    code: Identity
    parent_run_id: str | None = None
    name: str | None = None

    @property
    def identity(self) -> str:
        return self.code.digest


def create(store: Store, experiment: str, attempt: Attempt) -> str:
    """Make the run; returns its id."""
    config = attempt.config
    tags = {
        IDENTITY: attempt.identity,
        SETTINGS: attempt.code.settings,
        CODE: attempt.code.code,
        ENVIRONMENT: environment(to_plain(config)),
        KIND: "run",
        "mlflow.source.name": Path(sys.argv[0]).name,
        "mlflow.source.type": "LOCAL",
        VERSIONS: json.dumps({name: version(name) for name in PACKAGES}),
        MACHINE: machine(),
    }
    commit = git_commit()
    if commit is not None:
        tags["mlflow.source.git.commit"] = commit
    if attempt.parent_run_id is not None:
        tags[PARENT] = attempt.parent_run_id
    now = int(time.time() * 1000)
    name = attempt.name or run_name(config)
    created = store.client.create_run(experiment, start_time=now, tags=tags, run_name=name)
    return str(created.info.run_id)


@cache
def git_commit() -> str | None:
    """The commit of the source that runs, if it is a checkout; a + marks uncommitted changes.

    Asked for once: what a process has imported stays as it was.
    """
    here = Path(__file__).parent

    def ask(*words: str) -> str | None:
        command = ["git", "-C", str(here), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = ask("rev-parse", "HEAD")
    return f"{commit}+" if commit and ask("status", "--porcelain", "-uno") else commit
