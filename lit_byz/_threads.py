"""Torch with another number of threads for a while."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Use so many threads inside the block, and afterwards as many as before.

    One is right for little work, as several would wait for each other where other processes are
    busy, and for what a process of a sweep would do.

    >>> import torch
    >>> with threads(1):
    ...     torch.get_num_threads()
    1
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
