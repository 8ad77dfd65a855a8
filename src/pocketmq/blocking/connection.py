"""A connection that its caller reads: one request at a time, answered on the caller's own thread.

No event loop and no other thread takes part, which is what makes it fast. Any failure closes the
connection, so that a late response can never be taken for the answer to a later request.
Independent of what a request means.
"""

import logging
import math
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

from pocketmq.client.calls import request_name
from pocketmq.client.producer.plain_batches import SEND_BATCH, StoredBatch, stored_batch
from pocketmq.client.producer.plain_frames import Stored, stored_answer
from pocketmq.errors import ConnectionLost, MQError, RequestTimedOut
from pocketmq.net import Limits
from pocketmq.net.reasons import reason_of
from pocketmq.net.spinning import Spin, spin_on
from pocketmq.protocol import Command
from pocketmq.protocol.command import RESPONSE_FLAG, read_command
from pocketmq.protocol.frame import PREFIX_SIZE, FrameReader

logger = logging.getLogger("pocketmq.net")

T = TypeVar("T")

READ = 64 * 1024
"""Bytes that are read at a time."""
_ID = 33  # bytes of a message's id in a response, with a comma
_SMALL = 4096  # bytes for a response without a body: taking more would cost more
_ONE_READ, _ONE_PREFIX = (READ,), (PREFIX_SIZE,)
_PRECISION = 0.01
"""Seconds the kernel's timer may be off before it is set again; setting it costs a call."""
_OFTEN = 1.0
"""Seconds of a kernel's timer that a longer wait may leave as it is: it ends once and is resumed.
So requests of two kinds, of which one waits longer, can take turns without setting timers."""
_TIMEVAL = struct.Struct("@ll")
_KERNEL_TIMERS = sys.platform != "win32"

ReadUsual: TypeAlias = Callable[[bytes, int], T | None]
"""Reads a response to the request of a number; None unless the bytes are just that, and usual."""


class BlockingConnection:
    """A socket and what has been read from it. Used by one thread at a time.

    The connection pool guarantees that: whoever took a connection is the only one to touch its
    socket until it is given back. An exception between request and response (KeyboardInterrupt
    among them) leaves the stream at an unknown place, so the socket is closed, never reused.
    """

    __slots__ = (
        "_came", "_large", "_opaque", "_patience", "_reader", "_socket", "_spin", "address", "slot",
        "used",
    )  # fmt: skip

    def __init__(self, address: str, sock: socket.socket, limits: Limits) -> None:
        self.address = address
        self.used = time.monotonic()
        """Time of the last response."""
        self.slot: object = None
        """Its slot in a pool, which is free again when the connection is closed or lost."""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(None)
        self._socket = sock
        self._spin = self._new_spin(sock)
        self._reader = FrameReader(limits.frame)
        self._patience = math.inf  # the kernel's default
        self._opaque = 0
        self._large = False  # the last response
        self._came: list[bytes] | None = []  # what `finish` has received; None once it is read on

    def _new_spin(self, sock: socket.socket) -> Spin | None:
        return spin_on(sock.fileno())

    def next_opaque(self) -> int:
        """Return the number of the next request."""
        self._opaque = number = self._opaque + 1 & 0x7FFFFFFF
        return number

    def ask(self, frame: bytes, opaque: int, code: int, timeout: float) -> Command:
        """Send a request and wait for its response; `code` is for error messages.

        After anything but a response the connection is closed. Raises `RequestTimedOut`,
        `ConnectionLost`, `ProtocolError`.
        """
        try:
            self._allow(timeout)
            deadline = time.monotonic() + timeout
            self._socket.sendall(frame)
            return self._answer(opaque, deadline)
        except BaseException as error:
            self._fail(error, code, timeout)
            raise

    def begin(self, frame: bytes, code: int, timeout: float) -> None:
        """Send a request whose response `finish` waits for; raises as `ask` does."""
        self._came = []
        try:
            deadline = time.monotonic() + timeout
            if not _OFTEN <= self._patience <= timeout:
                self._allow(timeout)
            try:
                sent = self._socket.send(frame)
            except (BlockingIOError, TimeoutError):
                sent = 0
            if sent != len(frame):
                self._allow(max(0.0, deadline - time.monotonic()))
                self._socket.sendall(memoryview(frame)[sent:])
        except BaseException as error:
            self._fail(error, code, timeout)
            raise

    def finish(
        self, opaque: int, code: int, timeout: float, read: ReadUsual[T] | None = None
    ) -> T | Command:
        """Wait for the response to a request; raises as `ask` does.

        An interrupt (KeyboardInterrupt) leaves the connection open: it can be waited for anew, if
        `is_resumable` says so. `read` is that of `ask_usual`.
        """
        try:
            deadline = time.monotonic() + timeout
            if read is None:
                self._allow(timeout)
                return self._answer(opaque, deadline)
            came, buffered, large = self._came, self._reader.buffered, self._large
            assert came is not None
            if not came:
                if not _OFTEN <= self._patience <= timeout:
                    self._allow(timeout)
                # Received and kept in one step: an interrupt between the two would lose it.
                receive = self._socket.recv
                size = _ONE_PREFIX if large and not buffered else _ONE_READ  # as in `_receive`
                try:
                    came.extend(map(receive, size))
                except (BlockingIOError, TimeoutError):
                    self._allow(max(0.0, deadline - time.monotonic()))
                    came.extend(map(receive, size))
            found = None if buffered or large else read(came[0], opaque)
            if found is None:
                self._came = None
                return self._answer(opaque, deadline, came[0])
        except Exception as error:
            self._fail(error, code, timeout)
            raise
        self.used = time.monotonic()
        return found

    @property
    def is_resumable(self) -> bool:
        """Whether `finish` can be called again after an interrupt: nothing is read by half."""
        return self._came is not None

    def end(self, how: int = socket.SHUT_RDWR) -> None:
        """End what is read or written: a thread that waits for a response then has none.

        Any thread may call it. The one that uses the connection closes it.
        """
        with suppress(OSError):
            socket.socket.shutdown(self._socket, how)  # not TLS's own, which forgets its state

    def _fail(self, error: BaseException, code: int, timeout: float) -> None:
        """Close after an error, and raise what it means; return if it is one of ours already."""
        self.close()
        if isinstance(error, MQError):
            return
        if isinstance(error, BlockingIOError | TimeoutError):
            raise RequestTimedOut(self.address, request_name(code), timeout) from None
        if isinstance(error, OSError):
            raise ConnectionLost(self.address, reason_of(error)) from error

    def ask_all(self, frames: Sequence[bytes], code: int, timeout: float) -> dict[int, Command]:
        """Send requests together; return their responses by number. Raises as `ask` does.

        The last numbers that `next_opaque` returned are theirs. There must be few enough of them
        for the sockets' buffers: nothing is read before all are sent.
        """
        first = self._opaque - len(frames) + 1
        numbers = {(first + n) & 0x7FFFFFFF for n in range(len(frames))}
        try:
            self._allow(timeout)
            deadline = time.monotonic() + timeout
            self._socket.sendall(b"".join(frames))
            return self._answers(numbers, deadline)
        except BaseException as error:
            self._fail(error, code, timeout)
            raise

    def _answers(self, waiting: set[int], deadline: float) -> dict[int, Command]:
        answers: dict[int, Command] = {}
        while waiting:
            data = self._receive()
            if not data:
                raise ConnectionLost(self.address, "closed by the peer")
            for frame in self._reader.feed(data):
                answer = read_command(frame)
                if answer.opaque in waiting and answer.flag & RESPONSE_FLAG:
                    waiting.remove(answer.opaque)
                    answers[answer.opaque] = answer
            self.used = now = time.monotonic()
            if waiting:
                if now >= deadline:
                    raise TimeoutError
                self._allow(deadline - now)
        return answers

    def ask_stored(self, frame: bytes, opaque: int, code: int, timeout: float) -> Stored | Command:
        """Send a message as `ask` does; return what a receipt needs if it was stored.

        That is what comes back nearly always, whole and alone: it is read in one step. Any other
        response is returned as `ask` does.
        """
        return self.ask_usual(frame, opaque, code, timeout, stored_answer, _SMALL)

    def ask_batch(
        self, frame: bytes, opaque: int, count: int, timeout: float
    ) -> StoredBatch | Command:
        """Send a batch of `count` messages as `ask_stored` does a message."""
        size = min(_SMALL + _ID * count, READ)
        return self.ask_usual(frame, opaque, SEND_BATCH, timeout, stored_batch, size)

    def ask_usual(  # noqa: PLR0917 - for each message: keywords would cost
        self,
        frame: bytes,
        opaque: int,
        code: int,
        timeout: float,
        read: ReadUsual[T],
        size: int = READ,
    ) -> T | Command:
        """Ask, and return what `read` makes of the bytes that came; if None, as `ask` does.

        For responses that nearly always come whole and alone, with up to `size` bytes.
        """
        if self._reader.buffered or self._large:
            return self.ask(frame, opaque, code, timeout)
        try:
            if abs(timeout - self._patience) >= _PRECISION:
                self._allow(timeout)
            began = time.monotonic()
            sock = self._socket
            sent = sock.send(frame)
            if sent != len(frame):
                sock.sendall(memoryview(frame)[sent:])
            spin = self._spin
            data = None if spin is None else spin.receive(size)
            if data is None:
                data = sock.recv(size)
            stored = read(data, opaque)
            if stored is not None:
                self.used = time.monotonic()
                return stored
            return self._answer(opaque, began + timeout, data)
        except BaseException as error:
            self._fail(error, code, timeout)
            raise

    def _answer(self, opaque: int, deadline: float, data: bytes | None = None) -> Command:
        while True:
            if data is None:
                data = self._receive()
            if not data:
                raise ConnectionLost(self.address, "closed by the peer")
            now = time.monotonic()
            for frame in self._reader.feed(data):
                answer = read_command(frame)
                if answer.opaque == opaque and answer.flag & RESPONSE_FLAG:
                    self.used = now
                    return answer
                logger.debug("%s: ignoring unexpected frame %r", self.address, answer)
            if now >= deadline:
                raise TimeoutError
            self._allow(deadline - now)
            data = None

    def _receive(self) -> bytes:
        """Wait for bytes; for those of a large response, until it is complete.

        After a large response another one is likely: its head is read first, so that its body comes
        in one call and is copied by the kernel alone.
        """
        reader = self._reader
        missing = reader.missing
        if missing > READ and _KERNEL_TIMERS:
            self._large = True
            return self._socket.recv(reader.missing_head or missing, socket.MSG_WAITALL)
        if self._large and not reader.buffered:
            return self._socket.recv(PREFIX_SIZE)
        self._large = False
        return self._socket.recv(READ)

    def tell(self, frame: bytes, timeout: float) -> None:
        """Send a one-way request; on failure closes the connection and raises `ConnectionLost`."""
        try:
            self._allow(timeout)
            self._socket.sendall(frame)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise ConnectionLost(self.address, reason_of(error)) from error
            raise
        self.used = time.monotonic()

    def is_quiet(self) -> bool:
        """Whether the peer has neither closed the connection nor sent anything since."""
        try:
            readable, _, _ = select.select([self._socket], [], [], 0)
        except (OSError, ValueError):
            return False
        return not readable

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        self.slot = None

    def _allow(self, seconds: float) -> None:
        """Let the kernel end each wait after `seconds`; that takes no system call per wait."""
        if abs(seconds - self._patience) < _PRECISION:
            return
        self._patience = math.inf  # unknown, until both are set
        if not _KERNEL_TIMERS:
            self._socket.settimeout(max(seconds, 0.001))
            self._patience = seconds
            return
        whole = int(seconds)
        limit = _TIMEVAL.pack(whole, max(1000, int((seconds - whole) * 1e6)))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self._patience = seconds
