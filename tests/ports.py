"""Ports for servers that are told one, or have to find it free again."""

import fcntl
import os
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import SystemRandom

FIRST, LAST = 10_000, 32_000
STEP = 4
"""A broker takes its port, two below and one above."""


def free_port(taken: Path | None = None) -> int:
    """Return a free port for a broker, with those it also takes: two below and one above.

    Not one of those that systems give to clients and to servers that take any: in a parallel run
    such a port is taken again in a moment. Nor one that another process was given lately: a server
    that starts has not yet bound it. All processes of a user count on in one file, `taken`.
    """
    taken = taken or Path(tempfile.gettempdir()) / f"pocketmq-test-ports-{os.getuid()}"
    with os.fdopen(os.open(taken, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        text = file.read().strip()
        port = int(text) if text.isdecimal() else SystemRandom().randrange(FIRST, LAST, STEP)
        while True:
            port = port + STEP if FIRST <= port < LAST - STEP else FIRST
            if _is_free(port):
                break
        file.seek(0)
        file.write(f"{port:<10}")
    return port


def _is_free(port: int) -> bool:
    with ExitStack() as probes:
        try:
            for each in (port - 2, port, port + 1):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", each))
        except OSError:
            return False
    return True
