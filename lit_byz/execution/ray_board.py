"""What a sweep's main process and its tasks on a Ray cluster tell each other.

Plain numbers, and no import: the board's process is there at once, and small.
"""

# Step, steps, maximal accuracy so far.
State = tuple[int, int, float]


class Board:
    """An actor of the cluster."""

    def __init__(self) -> None:
        self._stopping = False
        self._states: dict[str, State] = {}

    def stop(self) -> None:
        """Ask all tasks to save their runs and end."""
        self._stopping = True

    def stopping(self) -> bool:
        return self._stopping

    def note(self, identity: str, state: State) -> bool:
        """How far a task is; whether it shall end."""
        self._states[identity] = state
        return self._stopping

    def take(self) -> dict[str, State]:
        """What has been noted since the last time."""
        taken, self._states = self._states, {}
        return taken
