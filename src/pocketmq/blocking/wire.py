"""A connection that its user reads: one request at a time, answered on the caller's own thread.

No loop and no other thread takes part, which is what makes it quick. Whatever goes wrong ends the
connection: nothing that is late can be taken for the answer to something else. Belongs to one
thread at a time; knows no request's meaning.
"""

import logging
import math
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence

from pocketmq.client.calls import request_name
from pocketmq.errors import ConnectFailed, ConnectionLost, RequestTimedOut
from pocketmq.net import Limits
from pocketmq.net.reasons import reason_of
from pocketmq.protocol.command import RESPONSE_FLAG, Command, read_command
from pocketmq.protocol.frame import PREFIX_SIZE, FrameReader

logger = logging.getLogger("pocketmq.net")

_READ = 64 * 1024
_PRECISION = 0.01
"""Seconds by which the kernel's timer may be off before it is set anew; setting it costs a call."""
_TIMEVAL = struct.Struct("@ll")
_KERNEL_TIMERS = sys.platform != "win32"

MakeWire = Callable[[str, socket.socket, Limits], "Wire"]
"""Makes a wire of a connected socket; raises OSError."""


def connect(
    address: str,
    places: Sequence[tuple[str, int]],
    limits: Limits,
    deadline: float,
    make: "MakeWire | None" = None,
) -> "Wire":
    """Connect to the first of `places` that lets us, until `deadline` by the monotonic clock.

    `make` gives the wire for a socket, whose timeout is what is left. Raises `ConnectFailed`.
    """
    failure = ConnectFailed(address, "the host name does not resolve to any address")
    for place in places:
        left = min(limits.connect, deadline - time.monotonic())
        if left <= 0:
            raise ConnectFailed(address, "no connection in the time allowed")
        try:
            return (make or Wire)(address, socket.create_connection(place, left), limits)
        except TimeoutError as error:
            failure = ConnectFailed(address, f"no connection within {left:g} s")
            failure.__cause__ = error
        except (OSError, UnicodeError) as error:
            failure = ConnectFailed(address, reason_of(error))
            failure.__cause__ = error
    raise failure


class Wire:
    """A socket and what has been read from it."""

    __slots__ = ("_large", "_opaque", "_patience", "_reader", "_socket", "address", "used")

    def __init__(self, address: str, sock: socket.socket, limits: Limits) -> None:
        self.address = address
        self.used = time.monotonic()
        """When it last gave an answer."""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(None)
        self._socket = sock
        self._reader = FrameReader(limits.frame)
        self._patience = math.inf  # what the kernel does unless it is told
        self._opaque = 0
        self._large = False  # the last answer

    def take_number(self) -> int:
        """Give a number for the next request."""
        self._opaque = number = self._opaque + 1 & 0x7FFFFFFF
        return number

    def ask(self, frame: bytes, opaque: int, code: int, timeout: float) -> Command:
        """Send a request (`code` is for messages) and wait for its answer.

        After anything but an answer the connection is closed. Raises `RequestTimedOut`,
        `ConnectionLost`, `ProtocolError`.
        """
        try:
            self._allow(timeout)
            deadline = time.monotonic() + timeout
            self._socket.sendall(frame)
            return self._answer(opaque, deadline)
        except BaseException as error:
            self.close()
            if isinstance(error, BlockingIOError | TimeoutError):
                raise RequestTimedOut(self.address, request_name(code), timeout) from None
            if isinstance(error, OSError):
                raise ConnectionLost(self.address, reason_of(error)) from error
            raise

    def _answer(self, opaque: int, deadline: float) -> Command:
        while True:
            data = self._receive()
            if not data:
                raise ConnectionLost(self.address, "closed by the peer")
            now = time.monotonic()
            for frame in self._reader.feed(data):
                answer = read_command(frame)
                if answer.opaque == opaque and answer.flag & RESPONSE_FLAG:
                    self.used = now
                    return answer
                logger.debug("%s: nobody waits for %r", self.address, answer)
            if now >= deadline:
                raise TimeoutError
            self._allow(deadline - now)

    def _receive(self) -> bytes:
        """Wait for bytes; for those of a large answer, until it is whole.

        After a large one another is likely: its head is read first, so that its body comes in one
        call and is copied by the kernel alone.
        """
        reader = self._reader
        missing = reader.missing
        if missing > _READ and _KERNEL_TIMERS:
            self._large = True
            return self._socket.recv(reader.missing_head or missing, socket.MSG_WAITALL)
        if self._large and not reader.buffered:
            return self._socket.recv(PREFIX_SIZE)
        self._large = False
        return self._socket.recv(_READ)

    def tell(self, frame: bytes, timeout: float) -> None:
        """Send what is not answered; closes the connection and raises `ConnectionLost` if lost."""
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
        """Whether the peer has neither closed it nor said anything since."""
        try:
            readable, _, _ = select.select([self._socket], [], [], 0)
        except (OSError, ValueError):
            return False
        return not readable

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()

    def _allow(self, seconds: float) -> None:
        """Have the kernel end each wait after so long; it does so without a call for each."""
        if abs(seconds - self._patience) < _PRECISION:
            return
        self._patience = seconds
        if not _KERNEL_TIMERS:
            self._socket.settimeout(max(seconds, 0.001))
            return
        whole = int(seconds)
        limit = _TIMEVAL.pack(whole, max(1000, int((seconds - whole) * 1e6)))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
