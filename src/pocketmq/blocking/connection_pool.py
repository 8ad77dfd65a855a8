"""The connections of one blocking client: a few for each address, taken, used and returned.

Any thread may take and give. If all connections to an address are in use, `take` returns None and
the caller goes another way: nobody waits here.
"""

import threading
import time
from collections.abc import Callable, Sequence

from pocketmq.blocking.connecting import MakeConnection, connect
from pocketmq.blocking.connection import BlockingConnection
from pocketmq.net import Limits

MOST = 16
"""Connections to one address."""
TRUSTED = 0.5
"""Seconds after its last response in which a connection is taken to be alive without a check."""
IDLE = 60.0
"""Seconds after which an unused connection is closed; brokers close theirs after 120."""

Resolve = Callable[[str, float], Sequence[tuple[str, int]]]
"""Resolves an address to socket addresses, until a deadline; raises `ConnectFailed`."""


class ConnectionPool:
    """Keeps connections that are not in use."""

    def __init__(
        self, resolve: Resolve, limits: Limits | None = None, make: MakeConnection | None = None
    ) -> None:
        self._resolve = resolve
        self._limits = limits or Limits()
        self._make = make
        # Appending to and popping from a list is one step for all threads, so the hot path takes no
        # lock; a pop may find the list empty although it was not a moment before.
        self._idle: dict[str, list[BlockingConnection]] = {}  # the last used is the last
        self._count: dict[str, int] = {}  # all there are, idle or not
        self._lock = threading.Lock()  # guards the counts alone
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
        with self._lock:
            self._count[connection.address] -= 1

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
        return sum(self._count.values())

    def _connect(self, address: str, deadline: float) -> BlockingConnection | None:
        self._drop_unused_since(time.monotonic() - IDLE)
        with self._lock:
            count = self._count.get(address, 0)
            if self._closed or count >= MOST:
                return None
            self._count[address] = count + 1
        try:
            places = self._resolve(address, deadline)
            return connect(address, places, self._limits, deadline, self._make)
        except BaseException:
            with self._lock:
                self._count[address] -= 1
            raise

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
