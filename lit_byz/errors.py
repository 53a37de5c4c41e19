"""The two ways in which a command ends badly."""


class BadRequest(ValueError):
    """What was asked for cannot be done: one line that names the culprit. Exit code 2."""


class RunFailed(RuntimeError):
    """What was asked for was started and did not succeed: one line that says why. Exit code 1."""
