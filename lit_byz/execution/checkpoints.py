"""Whose checkpoint a file is."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch.callbacks import Callback

from lit_byz._versions import this_torch
from lit_byz.config.identity import Identity
from lit_byz.errors import BadRequest

if TYPE_CHECKING:
    from lit_byz.tracking.runs import TrackedRun

KEY = "lit_byz_identity"
TORCH = "lit_byz_torch"
# What is measured at every evaluation.
EVALUATIONS = ("test/accuracy", "test/loss", "val/accuracy", "val/loss")


class KeepIdentity(Callback):
    """Puts the run's identity, and the torch that computes it, into its checkpoints."""

    def __init__(self, code: Identity) -> None:
        self.code = code

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        checkpoint[KEY] = {"settings": self.code.settings, "code": self.code.code}
        checkpoint[TORCH] = this_torch()


class OwnEvaluations(Callback):
    """Lets a new experiment that goes on from another run's checkpoint count its own evaluations.

    What the other run had reached is no result of this one. It comes before the callbacks whose
    state it takes out of the checkpoint.
    """

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        from lit_byz.training import AccuracyTracker, BestParameters

        if checkpoint["global_step"] >= trainer.max_steps:
            return  # nothing will be evaluated any more
        for kept in (AccuracyTracker(), BestParameters()):
            checkpoint["callbacks"].pop(kept.state_key, None)
        for name in EVALUATIONS:
            checkpoint["history"].pop(name, None)


def identity_in(path: Path) -> Identity:
    """The identity of the run that a checkpoint is of; a file that is none is a ``BadRequest``."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        return Identity(**content[KEY])
    except Exception as error:  # whatever a file that is no checkpoint makes torch raise
        reason = " ".join(str(error).split())[:200]
        raise BadRequest(f"resume = {path}: is no checkpoint of a run ({reason})") from error


def tell_other_torch(run: "TrackedRun") -> Path:
    """Say if a run goes on with another torch than it began with; returns its checkpoint."""
    content = torch.load(run.checkpoint, map_location="cpu", weights_only=True, mmap=True)
    before, now = content.get(TORCH, this_torch()), this_torch()
    if before != now:
        line = f"this run began with torch {before} and goes on with {now}"
        run.tell(f"{line}: its last bits may differ from those of a run with one of them alone")
        run.tag("lit_byz.resumed_with", f"torch {now} after {before}")
    return run.checkpoint


def refuse_other_run(path: Path, wanted: Identity) -> None:
    """Raise ``BadRequest`` unless the checkpoint is one of the run that is asked for."""
    found = identity_in(path)
    what = "settings" if found.settings != wanted.settings else "code"
    if getattr(found, what) != getattr(wanted, what):
        detail = f" ({found.code}, now {wanted.code})" if what == "code" else ""
        raise BadRequest(
            f"resume = {path}: is a checkpoint of a run with other {what}{detail}; "
            "resume_as=new goes on from it as a new experiment"
        )


def digest_of(path: Path) -> str:
    """A hash of the file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
