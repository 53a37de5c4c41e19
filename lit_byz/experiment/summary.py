"""What a command says when a run is over."""

from omegaconf import DictConfig

from lit_byz.experiment.record import label
from lit_byz.experiment.run import TrainResult
from lit_byz.tracking import open_store


def summary(config: DictConfig, result: TrainResult) -> str:
    """A few lines: how it went, how long it took, and where to look."""
    lines = [label(config)]
    if result.reused:
        lines.append("this run had been finished before; nothing was computed")
    best = f"maximal accuracy {result.max_accuracy:.4f} after step {result.step_of_max + 1}"
    lines.append(f"{best}, last {result.accuracy:.4f}")
    if result.status == "diverged":
        lines.append(f"diverged: every honest vector was non-finite at step {result.steps_done}")
    if result.status == "interrupted":
        lines.append(
            f"interrupted after step {result.steps_done} of {config.train.steps}: "
            "the same command with resume=auto goes on from there"
        )
    if result.seconds:
        done = result.steps_done - (result.resumed_at or 0)
        speed = f"{1000 * result.seconds / max(done, 1):.0f} ms a step with everything"
        lines.append(f"{done} steps in {result.seconds:.1f} s, {speed}; gradients: {result.way}")
    if result.run_id is not None:
        lines.append(f"run {result.run_id}")
        lines.append(f"see it: {open_store(config.tracking.uri).ui_command}")
    return "\n".join(lines)
