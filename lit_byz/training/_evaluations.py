"""Evaluations of a run, each looked at once."""

from typing import Any

from lightning.pytorch.callbacks import Callback


class OnEvaluation(Callback):
    """Looks at what validation finds while a run goes on.

    A step that diverges makes no new parameters. Where the last ones had been evaluated, what is
    found now is no other evaluation, though batch norm's statistics have moved.
    """

    evaluated = -1  # after how many steps, the last time

    def look(self, trainer: Any, module: Any) -> None:
        raise TypeError(f"{type(self).__name__} does not say what it looks at")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        known, self.evaluated = self.evaluated, pl_module.global_step
        if pl_module.diverged_at is None or known != self.evaluated:
            self.look(trainer, pl_module)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update(state_dict)
