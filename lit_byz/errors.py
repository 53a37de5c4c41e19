"""The two ways in which a command ends badly, and the one that is nobody's fault."""

import errno

# How databases, servers and torch tell of a full disk, where the system's own error is lost.
FULL = (
    *("database or disk is full", "no space left on device", "disk quota exceeded"),
    *("pytorchstreamwriter failed writing", "inline_container.cc"),
)
# SQLite has no words of its own for no space in the file that its readers share.
SQLITE_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")

# A file system that has become read-only, a broken disk, a server of files that is gone.
FAILING = (errno.EROFS, errno.EIO, errno.ESTALE)


class BadRequest(ValueError):
    """What was asked for cannot be done: one line that names the culprit. Exit code 2."""


class RunFailed(RuntimeError):
    """What was asked for was started and did not succeed: one line that says why. Exit code 1."""


class StorageAway(RunFailed):
    """The checkpoint that a run would go on from cannot be fetched for now: not its failure."""


def disk_is_full(error: BaseException) -> bool:
    """Whether an error, or one that led to it, says that there is no space left for a file."""
    return any(
        (isinstance(each, OSError) and each.errno in (errno.ENOSPC, errno.EDQUOT))
        or getattr(each, "sqlite_errorname", None) in SQLITE_FULL
        or any(text in str(each).lower() for text in FULL)
        for each in _led_to(error)
    )


def disk_fails(error: BaseException) -> bool:
    """Whether an error, or one that led to it, says that a disk takes nothing, or is broken.

    Or that the storage of checkpoints cannot be reached, which is a disk elsewhere.
    """
    return any(
        isinstance(each, StorageAway) or (isinstance(each, OSError) and each.errno in FAILING)
        for each in _led_to(error)
    )


def _led_to(error: BaseException) -> list[BaseException]:
    """An error and those that led to it."""
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        seen.append(current)
        current = current.__cause__ or current.__context__
    return seen
