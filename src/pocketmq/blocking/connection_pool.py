"""The connections of one blocking client: a few for each address, made, used and returned.

Plain ones, and those over TLS, by the rules for certificates of `net.tls`, as on the loop. Any
thread may take and give. If all connections to an address are in use, `take` returns None and
the caller goes another way: nobody waits here.
"""

import socket
import threading
import time
from collections.abc import Callable, Sequence
from weakref import ref

from pocketmq.blocking.connection import READ, BlockingConnection
from pocketmq.errors import ConnectFailed
from pocketmq.net import Limits, Tls, parse_address
from pocketmq.net.reasons import reason_of
from pocketmq.net.tls import Contexts

MOST = 16
"""Connections to one address."""
TRUSTED = 0.5
"""Seconds after its last response in which a connection is taken to be alive without a check."""
IDLE = 60.0
"""Seconds after which an unused connection is closed; brokers close theirs after 120."""

MakeConnection = Callable[[str, socket.socket, Limits], BlockingConnection]
"""Makes a connection of a connected socket; raises OSError."""
Resolve = Callable[[str, float], Sequence[tuple[str, int]]]
"""Resolves an address to socket addresses, until a deadline; raises `ConnectFailed`."""


class TlsBlockingConnection(BlockingConnection):
    """A connection over TLS.

    It keeps its own time: the kernel's timers would only end reads of the bytes underneath, and
    TLS would go on reading.
    """

    __slots__ = ()

    def _allow(self, seconds: float) -> None:
        self._socket.settimeout(max(seconds, 0.001))

    def _new_spin(self, sock: socket.socket) -> None:
        """Return None: what the socket brings is encrypted."""

    def _receive(self) -> bytes:
        return self._socket.recv(READ)  # TLS returns one record at a time at most


def tls_connections(tls: Tls) -> MakeConnection:
    """Return a function that makes TLS connections; changed files count from the next one on.

    Raises `InvalidInput` if its files cannot be used.
    """
    contexts = Contexts(tls, time.monotonic)

    def make(address: str, sock: socket.socket, limits: Limits) -> BlockingConnection:
        host, _ = parse_address(address)
        try:
            spoken = contexts.current().wrap_socket(sock, server_hostname=tls.server_name or host)
        except BaseException:
            sock.close()
            raise
        return TlsBlockingConnection(address, spoken, limits)

    return make


def connect(
    address: str,
    places: Sequence[tuple[str, int]],
    limits: Limits,
    deadline: float,
    make: MakeConnection | None = None,
) -> BlockingConnection:
    """Connect to the first of `places` that accepts, until `deadline` by the monotonic clock.

    `make` makes the connection of a socket, whose timeout is what is left. Raises `ConnectFailed`.
    """
    failure = ConnectFailed(address, "the host name does not resolve to any address")
    for place in places:
        left = min(limits.connect, deadline - time.monotonic())
        if left <= 0:
            raise ConnectFailed(address, "no connection in the time allowed")
        try:
            sock = socket.create_connection(place, left)
            return (make or BlockingConnection)(address, sock, limits)
        except TimeoutError as error:
            failure = ConnectFailed(address, f"no connection within {left:g} s")
            failure.__cause__ = error
        except (OSError, UnicodeError) as error:
            failure = ConnectFailed(address, reason_of(error))
            failure.__cause__ = error
    raise failure


class _Slot:
    """One of the connections that there may be to an address; the connection holds it."""

    __slots__ = ("__weakref__",)


class ConnectionPool:
    """Keeps connections that are not in use.

    A thread may be interrupted (KeyboardInterrupt) between any two steps, also when it has just
    popped a connection that no variable holds yet. So nothing counts connections up and down: there
    are as many as slots, and the slot of a connection goes with it, however it is lost.
    """

    def __init__(
        self, resolve: Resolve, limits: Limits | None = None, make: MakeConnection | None = None
    ) -> None:
        self._resolve = resolve
        self._limits = limits or Limits()
        self._make = make
        # Appending to and popping from a list is one step for all threads, so the hot path takes no
        # lock; a pop may find the list empty although it was not a moment before.
        self._idle: dict[str, list[BlockingConnection]] = {}  # the last used is the last
        self._slots: dict[str, list[ref[_Slot]]] = {}  # of all there are, idle or not
        self._lock = threading.Lock()  # guards the slots alone
        self._closed = False

    def take(self, address: str, deadline: float) -> BlockingConnection | None:
        """Return a connection for the caller alone, to be returned or dropped.

        None if all are in use. Raises `ConnectFailed`. `deadline` is by the monotonic clock.
        """
        idle = self._idle.get(address)
        now = time.monotonic()
        while idle:
            try:
                connection = idle.pop()
            except IndexError:  # another thread was quicker
                break
            if now - connection.used < TRUSTED or connection.is_quiet():
                return connection
            self.drop(connection)
        return self._connect(address, deadline)

    def take_idle(self, address: str, now: float) -> BlockingConnection | None:
        """Return a connection that was used just now; None if there is none, or none idle."""
        idle = self._idle.get(address)
        if not idle:
            return None
        try:
            connection = idle.pop()
        except IndexError:  # another thread was quicker
            return None
        if now - connection.used < TRUSTED:
            return connection
        self.give(connection)  # `take` checks it
        return None

    def give(self, connection: BlockingConnection) -> None:
        """Put a working connection back into the pool."""
        idle = self._idle.get(connection.address)
        if idle is None:
            idle = self._idle.setdefault(connection.address, [])
        idle.append(connection)
        if self._closed:  # checked after the append, so that `close` cannot miss this one
            self.close()

    def drop(self, connection: BlockingConnection) -> None:
        """Close a connection that failed."""
        connection.close()

    def forget(self, address: str) -> None:
        """Close the idle connections to an address: another one showed that its server is gone."""
        idle = self._idle.get(address)
        while idle:
            try:
                connection = idle.pop()
            except IndexError:  # another thread was quicker
                return
            self.drop(connection)

    def close(self) -> None:
        """Close all idle connections, and those in use when they are returned."""
        self._closed = True
        self._drop_unused_since(float("inf"))

    def __len__(self) -> int:
        return sum(slot() is not None for slots in list(self._slots.values()) for slot in slots)

    def _connect(self, address: str, deadline: float) -> BlockingConnection | None:
        self._drop_unused_since(time.monotonic() - IDLE)
        slot = _Slot()
        with self._lock:
            slots = [each for each in self._slots.get(address, ()) if each() is not None]
            if self._closed or len(slots) >= MOST:
                return None
            self._slots[address] = [*slots, ref(slot)]
        try:
            places = self._resolve(address, deadline)
            connection = connect(address, places, self._limits, deadline, self._make)
            connection.slot = slot
        finally:
            del slot  # an error has a traceback, whose frames would have it
        return connection

    def _drop_unused_since(self, limit: float) -> None:
        for idle in list(self._idle.values()):
            while idle and idle[0].used <= limit:
                try:
                    connection = idle.pop(0)
                except IndexError:
                    break
                if connection.used > limit:  # another thread took the one that was meant
                    idle.append(connection)
                    break
                self.drop(connection)
