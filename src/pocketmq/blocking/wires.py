"""The wires of one client: a few for each address, taken by whoever asks and given back after.

Any thread may take and give. More callers at once than wires allowed go another way; nobody waits
here.
"""

import threading
import time
from collections.abc import Callable, Sequence

from pocketmq.blocking.connection import BlockingConnection, MakeConnection, connect
from pocketmq.net import Limits

MOST = 16
"""Wires to one address."""
TRUSTED = 0.5
"""Seconds after its last answer in which a wire is taken to be alive without looking."""
IDLE = 60.0
"""Seconds after which a wire that nobody took is closed; brokers close theirs after 120."""

Resolve = Callable[[str, float], Sequence[tuple[str, int]]]
"""Gives the places an address stands for, until a deadline; raises `ConnectFailed`."""


class Wires:
    """Keeps wires that are not in use."""

    def __init__(
        self, resolve: Resolve, limits: Limits | None = None, make: MakeConnection | None = None
    ) -> None:
        self._resolve = resolve
        self._limits = limits or Limits()
        self._make = make
        self._idle: dict[str, list[BlockingConnection]] = {}  # the last used is the last
        self._count: dict[str, int] = {}  # all there are, idle or not
        self._lock = threading.Lock()  # of the counts; lists do without
        self._closed = False

    def take(self, address: str, deadline: float) -> BlockingConnection | None:
        """Give a wire of one's own, to be given back or dropped; None if all are in use.

        Raises `ConnectFailed`. `deadline` is by the monotonic clock.
        """
        idle = self._idle.get(address)
        now = time.monotonic()
        while idle:
            try:
                wire = idle.pop()
            except IndexError:  # another thread was quicker
                break
            if now - wire.used < TRUSTED or wire.is_quiet():
                return wire
            self.drop(wire)
        return self._connect(address, deadline)

    def give(self, wire: BlockingConnection) -> None:
        """Give back a wire that works."""
        idle = self._idle.get(wire.address)
        if idle is None:
            idle = self._idle.setdefault(wire.address, [])
        idle.append(wire)
        if self._closed:
            self.close()

    def drop(self, wire: BlockingConnection) -> None:
        """Let go of a wire that failed."""
        wire.close()
        with self._lock:
            self._count[wire.address] -= 1

    def forget(self, address: str) -> None:
        """Let go of the idle ones to an address: another has shown that its server was gone."""
        idle = self._idle.get(address)
        while idle:
            try:
                wire = idle.pop()
            except IndexError:  # another thread was quicker
                return
            self.drop(wire)

    def close(self) -> None:
        """Close all that are idle, and those in use when they are given back."""
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

    def _drop_unused_since(self, moment: float) -> None:
        for idle in list(self._idle.values()):
            while idle and idle[0].used <= moment:
                try:
                    wire = idle.pop(0)
                except IndexError:
                    break
                if wire.used > moment:  # another thread took the one that was meant
                    idle.append(wire)
                    break
                self.drop(wire)
