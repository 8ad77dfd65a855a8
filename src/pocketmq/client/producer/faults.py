"""Brokers that were slow or failed: a producer's fault table or adaptive choice, and the probes.

The rules are `balance.producer.fault_table` (with its detector), for an adaptive producer
`balance.producer.adaptive`; here are the clock, the lock, the log and the requests.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

from pocketmq.balance.producer import fault_table
from pocketmq.balance.producer.adaptive import Draw, Fleet
from pocketmq.balance.producer.broker_record import BrokerRecord
from pocketmq.balance.producer.plan import UpdateFault
from pocketmq.balance.profile import Profile
from pocketmq.client.producer.publishing import Publication, Publishing
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.questions.asking import ask, ask_address
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import BrokerNotFound, MQError, ServerError
from pocketmq.protocol.requests.offsets import GET_MAX_OFFSET, GetMaxOffsetRequest

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


class SharedFaultTable(fault_table.FaultTable):
    """A fault table for any thread: threads of a blocking producer send with one table.

    The lock guards what looks at several brokers or changes the table. `is_available` and
    `is_reachable` read one broker's entry, which is one step for all threads, and need none.
    """

    def __init__(self, profile: Profile, *, detector: bool = False, worst_index: int = 0) -> None:
        super().__init__(profile, detector=detector, worst_index=worst_index)
        self._lock = threading.Lock()

    def update(
        self, broker: str, latency: float, *, isolate: bool, reachable: bool = True, now: float
    ) -> None:
        """Record the outcome of a try."""
        with self._lock:
            super().update(broker, latency, isolate=isolate, reachable=reachable, now=now)

    def forget(self, broker: str) -> None:
        """Remove a broker."""
        with self._lock:
            super().forget(broker)

    def take_due(self, now: float, interval: float) -> list[str]:
        """Return the brokers whose probe is due."""
        with self._lock:
            return super().take_due(now, interval)

    def least_bad(self, now: float) -> str | None:
        """Pick a broker when all are paused."""
        with self._lock:
            return super().least_bad(now)

    def snapshot(self, now: float) -> tuple[fault_table.BrokerHealth, ...]:
        """Return the health of every broker in the table."""
        with self._lock:
            return super().snapshot(now)


class Faults:
    """The health of a producer's brokers; there is a table only if the options ask for one.

    Any thread may call `update`; probes belong to one event loop.
    """

    def __init__(
        self,
        session: Session,
        options: ProducerOptions,
        publishing: Publishing,
        fleet: SharedFleet | None = None,
    ) -> None:
        self._session = session
        self._publishing = publishing
        self._now = asyncio.get_running_loop().time
        self.fleet = fleet
        """The brokers of an adaptive producer, instead of the table."""
        self.table = (
            SharedFaultTable(
                session.options.profile,
                detector=options.probe_brokers,
                worst_index=session.random.randrange(1 << 31),
            )
            if options.avoid_slow_brokers
            else None
        )

    @property
    def detector(self) -> bool:
        """Whether unreachable brokers are probed."""
        return self.table is not None and self.table.detector

    def start(self, tasks: Tasks) -> None:
        """Start to probe, if the options ask for it."""
        if self.fleet is not None:
            self.fleet.on_avoided = FleetProbes(self.fleet, tasks, self._ask).begin
            refresh, draw = self._session.routes.refresh_soon, self._session.random.random
            self._publishing.on_lost = LostBrokers(tasks, refresh, draw).look_for
        if self.detector:
            tasks.every(
                fault_table.ROUND_INTERVAL,
                self.probe,
                "broker probes",
                first_after=fault_table.ROUND_INTERVAL,
            )

    def update(self, fault: UpdateFault) -> None:
        """Record the outcome of a try."""
        if self.table is not None:
            self.table.update(
                fault.broker,
                fault.latency,
                isolate=fault.isolate,
                reachable=fault.reachable,
                now=self._now(),
            )

    def health(self) -> tuple[fault_table.BrokerHealth, ...]:
        """Return the health of every broker in the table, or of an adaptive producer's brokers."""
        if self.fleet is not None:
            return self.fleet.snapshot(self._now())
        return () if self.table is None else self.table.snapshot(self._now())

    async def probe(self) -> None:
        """Send a small request to every broker whose probe is due."""
        if self.table is None:
            return
        probes = fault_table.plan_round(self.table, self._address_of, self._now())
        await asyncio.gather(*(self._probe(probe, self.table) for probe in probes))

    def _address_of(self, broker: str) -> str | None:
        try:
            return self._session.addresses.master(broker)
        except BrokerNotFound:
            return None

    async def _probe(self, probe: fault_table.Probe, table: fault_table.FaultTable) -> None:
        if await self._ask(probe.broker, probe.timeout, probe.address):
            table.mark_reachable(probe.broker)

    async def _ask(self, broker: str, timeout: float, address: str | None = None) -> bool:  # noqa: ASYNC109 - of the question
        """Send a broker a small request; return whether there was any response."""
        address = address or self._address_of(broker)
        topic = next(iter(self._publishing.topics()), None)
        if topic is None or address is None:
            return False  # as in Java: without a topic there is nothing to ask for
        question = ask(None, GET_MAX_OFFSET, GetMaxOffsetRequest(topic=topic, queue_id=0))
        call_at = self._session.brokers.call_at
        try:
            await ask_address(call_at, address, question, timeout=timeout)
        except ServerError:
            pass  # any response will do
        except MQError as error:
            logger.debug("probe of broker %s failed: %s", broker, error)
            return False
        return True
