"""A broker's state without sockets, for tests of handlers and tables.

Peers are plain objects that keep what is written to them; store, tables and handlers are real.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from pocketmq.broker import by_code
from pocketmq.broker.balancing import requests as balancing
from pocketmq.broker.balancing.queue_locks import GroupQueueLocks
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core.answers import SendAnswers
from pocketmq.broker.core.write_batch import WriteBatch
from pocketmq.broker.groups import requests as groups
from pocketmq.broker.groups.table import GroupConfigTable
from pocketmq.broker.members import requests
from pocketmq.broker.members import requests as members
from pocketmq.broker.members.consumers import OnlineConsumers
from pocketmq.broker.members.producers import OnlineProducers
from pocketmq.broker.offsets import moving, progress
from pocketmq.broker.offsets import requests as offsets
from pocketmq.broker.offsets.table import ConsumerOffsetTable
from pocketmq.broker.pulling.suspended_pulls import SuspendedPulls
from pocketmq.broker.saving import load_tables
from pocketmq.broker.state import BrokerState
from pocketmq.broker.statistics import requests as statistics
from pocketmq.broker.statistics.counters import BrokerTotals, TopicStatistics
from pocketmq.broker.topics import requests as topics
from pocketmq.broker.topics.table import TopicConfigTable, system_groups, system_topics
from pocketmq.broker.writing.log_writer import CommitLogWriter, Counters
from pocketmq.errors import MQError, ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.records import Record
from pocketmq.store import Flusher, MessageStore, StoreOptions
from pocketmq.store.disk import FileSystem
from tests.broker.wire import Wire

HANDLERS = {
    int(code)
    for feature in (balancing, requests, groups, members, offsets, statistics, topics)
    for code in feature.HANDLERS
}
TOOLS = HANDLERS | {int(code) for feature in (moving, progress) for code in feature.HANDLERS}
"""With what only tools ask."""


class Clock:
    """Time that stands still until a test moves it."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.time = now
        self.off = 0.0
        """How far the machine's clock was set forward or back."""

    def now(self) -> float:
        return self.time + self.off

    def now_ms(self) -> int:
        return int(self.now() * 1000)

    def steady(self) -> float:
        return self.time


class _NameServer:
    """A name server that lists the topics it is sent."""

    sent = 0

    def __init__(self, announced: list[str]) -> None:
        self._announced = announced

    def announce(self, topics: Iterable[str], number: int) -> None:
        del number
        self._announced.extend(topics)


class Desk:
    """A broker's tables and handlers, asked without a network."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        options: StoreOptions | None = None,
        disk: FileSystem | None = None,
        flusher: Flusher | None = None,
        **settings: Any,
    ) -> None:
        self.clock = Clock()
        self.announced: list[str] = []
        self.config = BrokerConfig(**settings)
        now_ms = self.clock.now_ms()
        store = MessageStore.open(path, options, disk=disk, flusher=flusher)
        batch = WriteBatch()
        answers = SendAnswers("DefaultRegion", bytes(8), trace_on=True)
        counters = Counters(traffic=BrokerTotals(), stats=TopicStatistics())
        self.state = BrokerState(
            config=self.config,
            store=store,
            topics=TopicConfigTable(system_topics(self.config), now_ms=now_ms),
            groups=GroupConfigTable(system_groups(), now_ms=now_ms),
            offsets=ConsumerOffsetTable(now_ms=now_ms),
            consumers=OnlineConsumers(),
            producers=OnlineProducers(),
            locks=GroupQueueLocks(),
            waiting=SuspendedPulls(),
            clock=self.clock,
            steady=self.clock.steady,
            batch=batch,
            writer=CommitLogWriter(
                batch,
                store,
                self.clock,
                self.config,
                steady=self.clock.steady,
                answers=answers,
                counters=counters,
            ),
            traffic=counters.traffic,
            stats=counters.stats,
            unique_ids=UniqueIds(bytes(4), 1, 1),
            send_answers=answers,
            address="127.0.0.1:10911",
        )
        self.state.announcements.attach(_NameServer(self.announced))
        load_tables(self.state)

    def ask(
        self,
        code: RequestCode,
        ext: dict[str, str] | None = None,
        body: Any = None,
        wire: Wire | None = None,
        *,
        oneway: bool = False,
    ) -> Command:
        """Return the answer to a request; what raises `MQError` is answered as code 1."""
        answer = self.try_ask(code, ext, body, wire, oneway=oneway)
        assert isinstance(answer, Command)
        return answer

    def try_ask(
        self,
        code: RequestCode,
        ext: dict[str, str] | None = None,
        body: Any = None,
        wire: Wire | None = None,
        *,
        oneway: bool = False,
    ) -> Command | bytes | None:
        data = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        frame = Command.request(code, 7, ext, data, oneway=oneway).encode()
        (received,) = FrameReader(1 << 24).feed(frame)
        request = read_command(received)
        try:
            assert code in TOOLS
            return by_code.HANDLERS[code](self.state, cast("Connection", wire or Wire()), request)
        except MQError as error:
            return request.reply(ResponseCode.SYSTEM_ERROR, str(error))

    def make_topic(self, name: str, **ext: str) -> Command:
        """Ask for a topic with four queues, or as `ext` says."""
        base = {"topic": name, "readQueueNums": "4", "writeQueueNums": "4", "perm": "6"}
        return self.ask(
            RequestCode.UPDATE_AND_CREATE_TOPIC, base | {"topicFilterType": "SINGLE_TAG"} | ext
        )

    def disconnect(self, wire: Wire) -> None:
        """Close a connection from the client's side."""
        wire.closed = True
        members.connection_closed(self.state, wire)

    def store_message(self, topic: str, queue_id: int, body: bytes = b"x") -> None:
        """Put one message into a queue."""
        store = self.state.store
        record = Record(topic=topic.encode(), body=body, queue_id=queue_id)
        store.append(store.make_queue(topic, queue_id), [record], [0], self.clock.now_ms())

    def close(self) -> None:
        self.state.store.close()
