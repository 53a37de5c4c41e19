"""What processes that are started find around them: variables, and ports that are free."""

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping

HOST = "127.0.0.1"


@contextlib.contextmanager
def environment(changes: Mapping[str, str], *others: str) -> Iterator[None]:
    """Other variables for a while; ``others`` may be changed meanwhile, and are put back too."""
    before = {name: os.environ.get(name) for name in (*changes, *others)}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on, all different."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((HOST, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
