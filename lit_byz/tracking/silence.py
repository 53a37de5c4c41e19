"""How long a database may keep silent.

A server that hangs, or a network that drops everything, answers nothing and refuses nothing:
PostgreSQL's driver would wait for it until somebody kills the process. MLflow's requests to a
server have a limit of their own, see ``lit_byz/_quiet.py``.
"""

import select
from typing import Any

# Seconds without a byte, while a connection is made or a question is answered.
MOST = 60.0


def limit_silence() -> None:
    """Have psycopg2 give up a connection of which nothing has been heard for so long.

    The error is its own for a connection that broke, so that everybody knows what to do. Signals
    are heard meanwhile, which they are not within the driver.
    """
    try:
        from psycopg2 import extensions
    except ImportError:
        return  # another driver, or none
    if extensions.get_wait_callback() is None:  # else somebody has his own way of waiting
        extensions.set_wait_callback(_wait)


def _wait(connection: Any) -> None:
    from psycopg2 import OperationalError, extensions

    events = {extensions.POLL_READ: select.POLLIN, extensions.POLL_WRITE: select.POLLOUT}
    while (state := connection.poll()) != extensions.POLL_OK:
        waiting = select.poll()
        waiting.register(connection.fileno(), events[state])
        if not waiting.poll(1000 * MOST):
            raise OperationalError(f"no answer for {MOST:g} s")
