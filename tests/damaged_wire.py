"""A cluster whose broker serves damaged records: what lies in its log is sound, the answers are not.

Frames on their way to clients pass a proxy that changes some of them, the same way each time, as a
broker does whose disk has lost bits. A second one stands before the name server and leads clients
over the first.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pocketmq import Cluster

BODY = b"damage the body of this one"
SIZE = b"damage the size of this one"
"""Beginnings of bodies; messages that have them arrive damaged."""

Change = Callable[[bytes], bytes]


@contextmanager
def damaging(cluster: Cluster, *, whole: threading.Event | None = None) -> Iterator[str]:
    """Yield the address of a name server that leads to a broker whose answers are damaged.

    While `whole` is set, they are sound.
    """
    (broker,) = cluster.brokers.values()

    def damage(frame: bytes) -> bytes:
        return frame if whole is not None and whole.is_set() else _damaged(frame)

    with _proxy(broker.address, damage) as front:
        ours, theirs = front.encode(), broker.address.encode()
        with _proxy(cluster.address, lambda frame: frame.replace(theirs, ours)) as names:
            yield names


def _damaged(frame: bytes) -> bytes:
    changed = bytearray(frame)
    at = -1
    while (at := frame.find(BODY, at + 1)) >= 0:
        changed[at + len(BODY) - 1] ^= 0x04
    while (at := frame.find(SIZE, at + 1)) >= 0:
        changed[at - 4] ^= 0x40  # the highest byte of the body's length
    return bytes(changed)


@contextmanager
def _proxy(target: str, change: Change) -> Iterator[str]:
    host, _, port = target.rpartition(":")
    ends: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    near, _ = listener.accept()
                except OSError:
                    return
                far = socket.create_connection((host, int(port)))
                ends.extend((near, far))
                for source, sink, how in ((near, far, None), (far, near, change)):
                    threading.Thread(target=_pump, args=(source, sink, how), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for end in ends:
                end.close()


def _pump(source: socket.socket, sink: socket.socket, change: Change | None) -> None:
    with suppress(OSError):
        held = b""
        while data := source.recv(1 << 16):
            if change is None:
                sink.sendall(data)
                continue
            held += data
            while len(held) >= 4 and len(held) >= (end := 4 + int.from_bytes(held[:4], "big")):
                frame = change(held[4:end])
                sink.sendall(len(frame).to_bytes(4, "big") + frame)
                held = held[end:]
        sink.shutdown(socket.SHUT_WR)
