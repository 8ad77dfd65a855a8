"""The brokers of an adaptive producer as threads share them, and the probes that bring one back.

The rules are `balance.producer.adaptive`; here are the lock, the log and the requests.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

from pocketmq.balance.producer.adaptive import Draw, Fleet
from pocketmq.balance.producer.broker_record import BrokerRecord
from pocketmq.client.producer.publishing import Publication
from pocketmq.client.tasks import Tasks

logger = logging.getLogger("pocketmq.client")

PROBE_TIMEOUT = 1.0
"""Seconds. After this time in silence the dialler closes a connection and makes a new one."""
LOOK_EVERY = 2.0
"""Seconds from one question for a route that lost a broker to the next, a quarter more or less."""
LOOK_FOR = 120.0
"""Seconds after which the ordinary refresh of routes has to do."""

Ask = Callable[[str, float], Awaitable[bool]]
"""Sends a broker a small request, with a timeout; returns whether there was any response."""


class SharedFleet(Fleet):
    """A fleet for any thread: threads of a blocking producer send with one.

    The lock guards changes of a broker's state, which are rare. What is done for each message
    needs none (see `balance.producer.broker_record`).
    """

    def __init__(self, draw: Draw, group: str) -> None:
        super().__init__(draw)
        self.on_avoided: Callable[[BrokerRecord], None] | None = None
        """Called, on any thread, when a broker is avoided."""
        self._group = group
        self._lock = threading.Lock()

    def avoid(self, record: BrokerRecord, reason: str, now: float, *, silent: bool) -> None:
        """Leave a broker alone until it is reached by a probe."""
        with self._lock:
            if record.avoided_since is not None:
                return
            super().avoid(record, reason, now, silent=silent)
        logger.warning(
            'broker avoided: group=%s broker=%s reason="%s"; probing it in %g s',
            self._group, record.name, reason, record.pause,
        )  # fmt: skip
        if self.on_avoided is not None:
            self.on_avoided(record)

    def use_again(self, record: BrokerRecord, now: float) -> None:
        """Take a broker into use again."""
        with self._lock:
            since = record.avoided_since
            if since is None:
                return
            super().use_again(record, now)
        logger.info(
            "broker used again: group=%s broker=%s avoided_for=%.1fs",
            self._group, record.name, now - since,
        )  # fmt: skip


class FleetProbes:
    """Probes each broker that is avoided until it responds. Belongs to one event loop."""

    def __init__(self, fleet: SharedFleet, tasks: Tasks, ask: Ask) -> None:
        self._fleet = fleet
        self._tasks = tasks
        self._ask = ask
        self._loop = asyncio.get_running_loop()
        self._probed: set[BrokerRecord] = set()

    def begin(self, record: BrokerRecord) -> None:
        """Begin to probe a broker. Any thread may call it."""
        with suppress(RuntimeError):  # the loop is closed: nobody sends any more
            self._loop.call_soon_threadsafe(self._begin, record)

    def _begin(self, record: BrokerRecord) -> None:
        if record not in self._probed:
            self._probed.add(record)
            self._tasks.spawn(self._probe(record), f"probes of broker {record.name}")

    async def _probe(self, record: BrokerRecord) -> None:
        fleet, now = self._fleet, self._loop.time
        try:
            while (pause := fleet.next_probe(record, now())) is not None:
                await asyncio.sleep(pause)
                if await self._ask(record.name, PROBE_TIMEOUT):
                    fleet.use_again(record, now())
        finally:
            self._probed.discard(record)


class LostBrokers:
    """Looks for brokers that have left a topic's route: one that crashed is often back soon.

    A name server drops a broker as soon as its connection closes, and routes are refreshed every
    30 s, so otherwise a broker that was restarted would get nothing for that long. Belongs to one
    event loop.
    """

    def __init__(self, tasks: Tasks, refresh_route: Callable[[str], None], draw: Draw) -> None:
        self._tasks = tasks
        self._refresh_route = refresh_route
        self._draw = draw
        self._loop = asyncio.get_running_loop()
        self._wanted: dict[Publication, set[str]] = {}

    def look_for(self, publication: Publication, brokers: frozenset[str]) -> None:
        """Ask for a topic's route now and then until these brokers are in it, for a while."""
        wanted = self._wanted.get(publication)
        if wanted is not None:
            wanted.update(brokers)
            return
        wanted = self._wanted[publication] = set(brokers)
        self._tasks.spawn(self._look(publication, wanted), f"brokers of {publication.topic}")

    async def _look(self, publication: Publication, wanted: set[str]) -> None:
        until = self._loop.time() + LOOK_FOR
        try:
            while wanted - publication.brokers and self._loop.time() < until:
                await asyncio.sleep(LOOK_EVERY * (0.75 + self._draw() / 2))
                self._refresh_route(publication.topic)
        finally:
            del self._wanted[publication]
