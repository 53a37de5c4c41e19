"""Another process of a run on several devices; its settings come by standard input."""

import json
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory


def main() -> None:
    """Train alongside the first process until it ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the first process speaks for all
    job = json.load(sys.stdin)

    import torch

    from lit_byz.config.compose import as_config
    from lit_byz.execution.assemble import (
        make_module,
        make_trainer,
        quiet_lightning,
        users_callbacks,
    )
    from lit_byz.execution.checkpoints import OwnEvaluations
    from lit_byz.execution.interrupt import StopAbove, StopOnSignal, StopWithoutStore
    from lit_byz.tracking.logger import Tracker
    from lit_byz.training import AccuracyTracker, RoundCheckpoint, ShardedWorkers, StrongestDamage

    torch.set_num_threads(job["threads"])
    config = as_config(job["config"])
    bound, judged_on = job["stop_at"]
    with TemporaryDirectory() as folder, quiet_lightning():
        # The same callbacks as the first process has, as far as they ask the others something.
        accuracy = AccuracyTracker()
        checkpoint = RoundCheckpoint(
            Path(folder) / "none.ckpt", config.train.checkpoint_every, config.train.eval_every
        )
        callbacks = [accuracy, *users_callbacks(config), checkpoint]
        if config.tracking.strongest_every:
            callbacks.insert(1, StrongestDamage(config.tracking.strongest_every))
        if config.resume_as == "new":
            callbacks.insert(0, OwnEvaluations())
        callbacks += [StopAbove(bound, accuracy, checkpoint, judged_on), StopOnSignal(checkpoint)]
        callbacks.append(StopWithoutStore(Tracker(), checkpoint))
        trainer = make_trainer(config, callbacks, None, ShardedWorkers())
        module = make_module(config)
        trainer.fit(module, ckpt_path=job["resumed"], weights_only=True)


if __name__ == "__main__":
    main()
