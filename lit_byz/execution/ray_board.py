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
        self._notes: list[tuple[str, State, str]] = []

    def stop(self) -> None:
        """Ask all tasks to save their runs and end."""
        self._stopping = True

    def stopping(self) -> bool:
        return self._stopping

    def note(self, identity: str, state: State, text: str = "") -> bool:
        """How far a task is, and what it has to tell; whether it shall end."""
        self._states[identity] = state
        if text:
            self._notes.append((identity, state, text))
        return self._stopping

    def take(self) -> list[tuple[str, State, str]]:
        """What has been noted since the last time."""
        taken = [*self._notes, *((identity, s, "") for identity, s in self._states.items())]
        self._states, self._notes = {}, []
        return taken
