"""A peer on a real socket, in a thread of its own, that does what a test wants with each caller."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader

Behaviour = Callable[[socket.socket], None]


@contextmanager
def peer(behaviour: Behaviour) -> Iterator[str]:
    """Listen; give the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    callers: list[socket.socket] = []

    def serve(caller: socket.socket) -> None:
        with suppress(OSError), caller:
            behaviour(caller)

    def accept() -> None:
        with suppress(OSError):
            while True:
                caller, _ = listener.accept()
                callers.append(caller)
                threading.Thread(target=serve, args=(caller,), daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        host, port = listener.getsockname()
        yield f"{host}:{port}"
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for caller in callers:
            with suppress(OSError):
                caller.shutdown(socket.SHUT_RDWR)
        accepting.join(10)


def requests(caller: socket.socket) -> Iterator[Command]:
    """Read what comes until the end."""
    reader = FrameReader()
    while data := caller.recv(65536):
        for frame in reader.feed(data):
            yield read_command(frame)
