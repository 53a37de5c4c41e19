"""A run's progress on a terminal."""

import math
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lit_byz.training import AccuracyTracker, AfterRound

# Without a terminal, one line for each of so many parts of the run.
PARTS = 10


class RunProgress(AfterRound):
    """A bar with accuracy, C_t and time left; plain lines where there is no terminal.

    What is shown of a step is that of its parameters, where they are evaluated.
    """

    def __init__(self, accuracy: AccuracyTracker, title: str, eval_every: int) -> None:
        super().__init__(eval_every)
        self.accuracy = accuracy
        self.title = title
        self.console = Console(stderr=True)
        self.bar: Progress | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.console.print(self.title, highlight=False)
        if not self.console.is_terminal:
            return
        self.bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=self.console,
        )
        self.bar.start()
        total = pl_module.settings.steps
        self.task = self.bar.add_task("", total=total, completed=pl_module.global_step)

    def after_round(self, trainer: Any, module: Any) -> None:
        done, total = module.global_step, module.settings.steps
        if self.bar is not None:
            self.bar.update(self.task, completed=done, description=self._state(module))
        elif done * PARTS // total > (done - 1) * PARTS // total:
            line = f"step {done}/{total}  {self._state(module)}".rstrip()
            self.console.print(line, highlight=False)

    def _state(self, module: Any) -> str:
        seen, accuracy = module.observed, self.accuracy
        parts = []
        if accuracy.seconds > 0:  # there has been an evaluation
            parts.append(f"accuracy {accuracy.accuracy:.3f} (max {accuracy.max_accuracy:.3f})")
        if seen is not None and math.isfinite(seen.threshold):
            parts.append(f"C {seen.threshold:.3g}")
        return "  ".join(parts)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._stop()

    def _stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
