"""Train once: n workers, f of them Byzantine, and a robust server.

python pipelines/train.py dataset=mnist partition=extreme workers.f=1 clip=arc rule=cwtm attack=foe
python pipelines/train.py … resume=auto        goes on from the last checkpoint of the same run
"""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lit_byz._versions import this_torch
from lit_byz.cli.command import command

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from lit_byz.execution.result import TrainResult


def run(config: "DictConfig", options: argparse.Namespace) -> int:
    """Train once and print a summary."""
    from lit_byz._cache import tell_without_cache
    from lit_byz.cli import saying

    saying.now("making data, model and run ready")
    from lit_byz.config.advice import slow_rules
    from lit_byz.config.compose import to_plain
    from lit_byz.execution.run import train

    tell_without_cache()
    if not options.quiet:
        sys.stderr.writelines(f"{line}\n" for line in slow_rules([to_plain(config)]))
    result = train(config, progress=not options.quiet)
    print(summary(config, result))
    return 130 if result.status == "interrupted" else 0


def options(parser: argparse.ArgumentParser) -> None:
    """Add the command's own options."""
    parser.add_argument("--quiet", action="store_true", help="no progress, only the summary")


def summary(config: "DictConfig", result: "TrainResult") -> str:
    """A few lines: how it went, how long it took, and where to look."""
    from lit_byz.tracking.evaluations import ACCURACY, DIVERGED, LAST_FEW
    from lit_byz.tracking.names import label
    from lit_byz.tracking.page import page_of_run
    from lit_byz.tracking.store import open_store

    lines = [label(config), _model(config)]
    if result.reused:
        lines.append("this run had been finished before; nothing was computed")
    if result.other_torch is not None:
        line = f"it was computed with torch {result.other_torch}"
        lines.append(f"{line}; torch {this_torch()} may differ in its last bits")
    for code in result.other_code:
        lines.append(f"a run with these settings was begun before by other code ({code})")
    if math.isnan(result.max_accuracy):
        lines.append(f"not evaluated yet: that is done every {config.train.eval_every} steps")
    else:
        best = f"maximal accuracy {result.max_accuracy:.4f} after step {result.step_of_max + 1}"
        best += f", last {result.accuracy:.4f}"
        count = min(LAST_FEW, len(result.history.get(ACCURACY, ())))
        if result.status != DIVERGED and count > 1:
            best += f", mean of the last {count} evaluations {result.mean_last:.4f}"
        lines.append(best)
    lines += _random_iterate(config, result)
    if result.max_val_accuracy is not None and not math.isnan(result.max_val_accuracy):
        lines.append(
            f"maximal accuracy on the images held out {result.max_val_accuracy:.4f}; "
            f"on the test images then {result.test_at_val_max:.4f}"
        )
    if result.status == DIVERGED:
        lines.append(
            f"diverged: every honest vector was non-finite after step {result.steps_done}; "
            "the last accuracy counts as the mean of the last evaluations, too"
        )
    if result.status == "interrupted":
        lines.append(
            f"interrupted after step {result.steps_done} of {config.train.steps}: "
            "the same command with resume=auto goes on from there"
        )
    if result.seconds:
        done = result.steps_done - (result.resumed_at or 0)
        speed = f"{1000 * result.seconds / max(done, 1):.0f} ms a step with everything"
        lines.append(
            f"{done} steps in {result.seconds:.1f} s, {speed}; gradients: {result.gradients}"
        )
    if result.run_id is not None:
        lines.append(f"run {result.run_id}")
        store = open_store(config.tracking.uri)
        experiment = store.experiment(config.tracking.experiment)
        lines += page_of_run(store, experiment, result.run_id).lines("see it: ")
    return "\n".join(lines)


def _model(config: "DictConfig") -> str:
    """The model, and what is set otherwise than the data set and the options have it."""
    from lit_byz.config.apart import NAMED, apart
    from lit_byz.config.compose import to_plain
    from lit_byz.config.labels import shown

    found = [f"{k} = {shown(v)}" for k, v in apart(to_plain(config)).items() if k not in NAMED]
    more = f"; not the default: {', '.join(found)}" if found else ""
    return f"model {config.model.name}{more}"


def _random_iterate(config: "DictConfig", result: "TrainResult") -> list[str]:
    """A line about θ̂, where the run was to return it and has come to its end."""
    from lit_byz.tracking.evaluations import RANDOM_ITERATE
    from lit_byz.training.settings import iterate_step

    done = iterate_step(config.seed, config.train.steps)
    when = f"after step {done}" if done else "before the first step"
    if reached := result.history.get(RANDOM_ITERATE):
        return [f"random iterate θ̂, the parameters {when}: accuracy {reached[-1][1]:.4f}"]
    if config.train.output == "last" or result.status == "interrupted":
        return []
    why = "the run diverged earlier, or began later; its model has the last parameters"
    return [f"no random iterate θ̂ ({when}): {why}"]


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    return command(__doc__ or "", run, options, argv)
