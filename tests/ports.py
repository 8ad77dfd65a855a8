"""Ports for servers that are told one, or have to find it free again."""

import socket
from contextlib import ExitStack
from random import SystemRandom


def free_port() -> int:
    """Give a free port for a broker, with those it also takes: two below and one above.

    Not one of those that systems give to clients and to servers that take any: in a parallel run
    such a port is taken again in a moment.
    """
    while True:
        port = SystemRandom().randrange(10_000, 32_000)
        with ExitStack() as probes:
            try:
                for each in (port - 2, port, port + 1):
                    probes.enter_context(socket.socket()).bind(("127.0.0.1", each))
            except OSError:
                continue
            return port
