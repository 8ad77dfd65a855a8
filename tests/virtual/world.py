"""A cluster, its producers and a group of consumers on one virtual loop, and what befalls them.

Everything is real but time: sockets, files of the brokers, clients. A broker is killed by resetting
its connections and is back with its files; a member dies by losing its network first, so that
nobody hears of its end. A proxy before each broker makes the network fail.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from pocketmq.balance.allocation import allocate
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.broker import assembly
from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.offsets.table import ConsumerOffsetTable
from pocketmq.client import sessions
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.embedded.fault_proxy import FaultProxy
from pocketmq.errors import ConnectFailed, MQError
from pocketmq.model import ConsumeFromWhere, Message, MessageQueue
from pocketmq.nameserver import NameServer
from pocketmq.net import Connection
from pocketmq.protocol import ReceivedMessage
from tests.ports import free_port
from tests.virtual.device import VirtualFlusher
from tests.virtual.loop import VirtualClock, VirtualLoop

TOPIC = "orders"
GROUP = "billing"
QUEUES = 4


class House:
    """A broker, its files, and the proxy through which clients reach it."""

    def __init__(self, world: "World", name: str, directory: Path) -> None:
        self.name = name
        self.proxy = FaultProxy("127.0.0.1:0")
        self.proxy.accept()
        self.broker: Broker | None = None
        self._world = world
        self._directory = directory
        self._port = free_port()  # nobody else takes it while the broker is dead

    async def open(self) -> None:
        """Start the broker, on the port it had before."""
        settings = {
            "brokerName": self.name,
            "listenPort": str(self._port),
            "bindAddress": "127.0.0.1",
            "brokerIP1": "127.0.0.1",
            "advertisedPort": self.proxy.address.rpartition(":")[2],
            "defaultTopicQueueNums": str(QUEUES),
            "flushDiskType": "ASYNC_FLUSH",
            "mappedFileSizeCommitLog": str(1 << 20),
        }
        world = self._world
        broker = Broker(
            BrokerConfig.from_properties(settings),
            self._directory,
            [world.name_server_address],
            clock=world.clock,
        )
        await broker.start()
        assert broker.bound is not None
        self.proxy.target = str(broker.bound)
        self.broker = broker
        self._watch_offsets(broker.state.offsets)

    def _watch_offsets(self, table: ConsumerOffsetTable) -> None:
        """Show the world every offset as it is stored; first those of before."""
        commit, stored = table.commit, self._world.stored

        def watched(group: str, topic: str, queue_id: int, offset: int) -> None:
            commit(group, topic, queue_id, offset)
            if (group, topic) == (GROUP, TOPIC):
                now = table.offsets_of(GROUP, TOPIC)[queue_id]
                stored(MessageQueue(TOPIC, self.name, queue_id), now)

        for queue_id, offset in table.offsets_of(GROUP, TOPIC).items():
            stored(MessageQueue(TOPIC, self.name, queue_id), offset)
        vars(table)["commit"] = watched

    def queue_ids(self) -> range:
        """Return the queues that the broker has; none while it is dead."""
        if self.broker is None:
            return range(0)
        config = self.broker.state.topics.get(TOPIC)
        assert config is not None
        return range(config.read_queue_nums)

    async def kill(self) -> None:
        """Let the broker die."""
        broker, self.broker = self.broker, None
        if broker is not None:
            await broker.abort()

    async def close(self) -> None:
        """Stop the broker and its proxy."""
        if self.broker is not None:
            await self.broker.stop()
        await self.proxy.close()


class Person:
    """A member of the group."""

    def __init__(self, world: "World", number: int, settings: dict[str, object]) -> None:
        self.name = f"member-{number}"
        self.consumer = PushConsumer(
            world.name_server_address,
            group=GROUP,
            instance_name=self.name,
            client_ip="127.0.0.1",
            start_wait=None,
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            **settings,  # type: ignore[arg-type]
        )
        self.consumer._clock = world.clock
        self.consumer._random = Random(world.random.random())
        self._world = world
        self.consumer.subscribe(TOPIC, "*", self._handle)

    async def _handle(self, message: ReceivedMessage) -> None:
        await self._world.handled(self, message)

    async def start(self) -> None:
        """Join the group."""
        await self.consumer.start()

    async def leave(self) -> None:
        """Leave the group in good order."""
        await self.consumer.close()

    async def die(self) -> None:
        """Be gone without a word to anyone."""
        await self.lose_network(for_good=True)
        await self.consumer.close(0.0)

    async def lose_network(self, *, for_good: bool = False) -> None:
        """Reset all connections; if it is for good, there are no new ones."""
        dialer = self.consumer.session._dialer
        for connection in list(dialer.connections):
            connection.abort()
        if for_good:
            await dialer.close(0)

    def lose_broker(self, address: str) -> None:
        """Reset the connection to one broker; there is no new one before `find_broker`."""
        session = self.consumer.session
        dialer = session._dialer
        own = dialer._dial

        async def dial(at: str, host: str, port: int) -> Connection | ConnectFailed:
            return ConnectFailed(at, "no route") if at == address else await own(at, host, port)

        vars(dialer)["_dial"] = dial
        connection = session.calls.connected(address)
        assert connection is not None
        connection.abort()

    def find_broker(self) -> None:
        """Get connections to all brokers again."""
        del self.consumer.session._dialer._dial

    def queues(self) -> set[MessageQueue]:
        """Return what it holds."""
        return set(self.consumer.assignment().get(TOPIC, ()))


class World:
    """Everything there is."""

    def __init__(self, seed: int, directory: Path, settings: dict[str, object]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.random = Random(seed)
        self.clock = VirtualClock(loop)
        self.settings = settings
        self.name_server = NameServer()
        self.name_server_address = ""
        self.houses: list[House] = []
        self.members: list[Person] = []
        self.sent: list[str] = []
        """Keys of the acknowledged messages."""
        self.seen: dict[str, list[str]] = defaultdict(list)
        """Key of each handled message, with who handled it."""
        self.order: dict[tuple[str, int], list[int]] = defaultdict(list)
        """Offsets of each queue, in the order in which they were handled for the first time."""
        self.patience = 0.0
        """How long a handler takes at most."""
        self._directory = directory
        self._joined = 0
        self._number = 0
        self._name_server_port = free_port()
        self.producer: Producer | None = None

    # Life

    async def begin(self, brokers: int = 2) -> None:
        """Start the cluster and a producer, and make the topic on every broker."""
        await self.start_name_server()
        for index in range(brokers):
            house = House(self, f"broker-{index}", self._directory / str(index))
            self.houses.append(house)
            await house.open()
        self.producer = Producer(
            self.name_server_address,
            group="shop",
            instance_name="producer",
            client_ip="127.0.0.1",
            new_topic_queues=QUEUES,
        )
        await self.producer.start()
        for house in self.houses:
            queue = MessageQueue(TOPIC, house.name, 0)
            await self._send(queue=queue)

    async def end(self) -> None:
        """Stop everything."""
        for member in self.members:
            await member.leave()
        if self.producer is not None:
            await self.producer.close()
        for house in self.houses:
            await house.close()
        await self.name_server.stop()

    async def start_name_server(self) -> None:
        """Start a name server that knows nothing, on the port of the one before."""
        self.name_server = NameServer()
        address = await self.name_server.start("127.0.0.1", self._name_server_port)
        self.name_server_address = str(address)

    # What members do

    async def join(self) -> Person:
        """Start one more member."""
        self._joined += 1
        person = Person(self, self._joined, self.settings)
        self.members.append(person)
        await person.start()
        return person

    async def handled(self, person: Person, message: ReceivedMessage) -> None:
        """Take note of what a handler got."""
        if self.patience:
            await asyncio.sleep(self.random.random() * self.patience)
        (key,) = message.keys
        if key not in self.seen:
            self.order[message.broker_name, message.queue_id].append(message.queue_offset)
        self.seen[key].append(person.name)

    def stored(self, queue: MessageQueue, offset: int) -> None:
        """Take note of an offset that a broker has stored, or has again after a crash."""

    async def send(self, count: int) -> None:
        """Send messages; those the cluster does not acknowledge are forgotten."""
        for _ in range(count):
            with suppress(MQError):
                await self._send(ordering_key=f"lane-{self.random.randrange(50)}")

    async def _send(
        self, *, queue: MessageQueue | None = None, ordering_key: str | None = None
    ) -> None:
        assert self.producer is not None
        self._number += 1
        key = f"key-{self._number}"
        message = Message(TOPIC, key.encode(), keys=[key])
        await self.producer.send(message, queue=queue, ordering_key=ordering_key)
        self.sent.append(key)

    # What must be true at rest

    def all_queues(self) -> set[MessageQueue]:
        """Return every queue that brokers have."""
        return {
            MessageQueue(TOPIC, house.name, number)
            for house in self.houses
            for number in house.queue_ids()
        }

    def misplaced(self) -> dict[MessageQueue, list[str]]:
        """Return each queue that has not exactly one owner, with those it has."""
        owners: dict[MessageQueue, list[str]] = {queue: [] for queue in self.all_queues()}
        for member in self.members:
            for queue in member.queues():
                owners.setdefault(queue, []).append(member.name)
        return {queue: names for queue, names in owners.items() if len(names) != 1}

    def fair_shares(self) -> dict[str, set[MessageQueue]]:
        """Return what the strategy says each member holds."""
        strategy = strategy_by_name(str(self.settings["strategy"]))
        queues = self.all_queues()
        ids = {member.consumer.session.client_id: member.name for member in self.members}
        return {
            name: set(allocate(strategy, GROUP, client_id, queues, ids))
            for client_id, name in ids.items()
        }

    def unseen(self) -> list[str]:
        """Return the acknowledged messages that nobody handled."""
        return [key for key in self.sent if key not in self.seen]

    def offsets(self) -> dict[MessageQueue, int]:
        """Return the offsets that brokers have stored, as they say themselves."""
        return {
            MessageQueue(TOPIC, house.name, queue_id): offset
            for house in self.houses
            if house.broker is not None
            for queue_id, offset in house.broker.state.offsets.offsets_of(GROUP, TOPIC).items()
        }

    def lagging(self) -> dict[MessageQueue, tuple[int | None, int]]:
        """Return the queues whose stored offset is not their end, with both."""
        found = {}
        for house in self.houses:
            assert house.broker is not None
            state = house.broker.state
            offsets = state.offsets
            for queue_id in house.queue_ids():
                index = state.store.queue(TOPIC, queue_id)
                end = 0 if index is None else index.next_offset
                stored = offsets.query(GROUP, TOPIC, queue_id)
                if end and stored != end:
                    found[MessageQueue(TOPIC, house.name, queue_id)] = (stored, end)
        return found


def _clock_of_the_loop() -> VirtualClock:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return VirtualClock(loop)


def use_virtual_clocks() -> None:
    """Give everything in this process the clock and device of its loop, and keep it quiet."""
    vars(sessions)["SystemClock"] = _clock_of_the_loop
    vars(assembly)["Flusher"] = VirtualFlusher
    for logger in _loggers():
        logger.setLevel(logging.CRITICAL)


def _loggers() -> list[logging.Logger]:
    names = ("client", "broker", "nameserver", "net")
    return [logging.getLogger(f"pocketmq.{name}") for name in names]


@pytest.fixture
def virtual_clients() -> Iterator[None]:
    """Do so for one test."""
    clock, flusher = vars(sessions)["SystemClock"], vars(assembly)["Flusher"]
    levels = [(logger, logger.level) for logger in _loggers()]
    use_virtual_clocks()
    yield
    vars(sessions)["SystemClock"] = clock
    vars(assembly)["Flusher"] = flusher
    for logger, level in levels:
        logger.setLevel(level)
