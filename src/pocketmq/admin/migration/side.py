"""One of the two clusters of a migration: its requests, retries while servers do not respond.

Surveys it for the plan, and creates on it what the plan says.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from pocketmq import errors
from pocketmq.admin.brokers import Brokers
from pocketmq.admin.gathered import Gathered, ServerPlace
from pocketmq.admin.groups import Groups
from pocketmq.admin.migration.copies import CopyRequest
from pocketmq.admin.migration.plan import ClusterContents, MigrationPlan, TopicPlan
from pocketmq.admin.name_servers import NameServers
from pocketmq.admin.reading import PageStatus
from pocketmq.admin.topics import Topics
from pocketmq.admin.wire import AdminOptions, AdminWire
from pocketmq.client.options import ClientOptions
from pocketmq.client.questions import offsets as questions
from pocketmq.client.questions.asking import Question
from pocketmq.client.questions.pulling import PulledRecords, PullSpec, pull_once
from pocketmq.model import GroupConfig, MessageQueue, TopicConfig
from pocketmq.model.groups import TAG
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.requests import sending, topics
from pocketmq.protocol.requests import stats as rows

T = TypeVar("T")

PRODUCER_GROUP = "pocketmq_migrate"
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0
_PAGE = 1024
"""Messages requested at once; brokers return fewer."""
_SUSPICIOUS = (10, 11, 12)  # stored, but not yet flushed or not yet at a slave
_STORED = frozenset({int(errors.ResponseCode.SUCCESS), *_SUSPICIOUS})


class Side:
    """Reads and writes one cluster. Belongs to one event loop."""

    def __init__(self, client: ClientOptions, cluster: str | None, own: AdminOptions) -> None:
        self.wire = AdminWire(client, own)
        self.cluster = cluster
        self.brokers = Brokers(self.wire)
        self.name_servers = NameServers(self.wire)
        self.topics = Topics(self.wire, self.brokers, self.name_servers)
        self.groups = Groups(self.wire, self.brokers, self.topics)
        self.places: dict[str, ServerPlace] = {}

    async def open(self) -> None:
        """Connect to the name server and find the brokers. Raises `NameServersUnreachable`."""
        await self.wire.open()
        await self.find_brokers()

    async def find_brokers(self) -> None:
        """Refresh the brokers. Raises `CannotMigrate` if there are none, or of several clusters."""
        places = await self.brokers.masters(self.cluster)
        clusters = sorted({place.cluster for place in places})
        where = ", ".join(self.wire.name_servers)
        if len(clusters) > 1:
            reason = f"it has {', '.join(clusters)}; choose one with --cluster or --to-cluster"
            raise errors.CannotMigrate(f"the clusters of name server {where}", reason)
        if not places:
            raise errors.CannotMigrate(f"the cluster of name server {where}", "it has no broker")
        self.places = {place.broker: place for place in places}

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self.wire.close()

    def address(self, broker: str) -> str:
        """Return the address of a broker. Raises `BrokerNotFound`."""
        if broker not in self.places:
            raise errors.BrokerNotFound(broker)
        return self.places[broker].address

    async def held(self, topic: str, broker: str) -> dict[MessageQueue, rows.OffsetRange]:
        """Return the offsets of a topic's queues on a broker; empty if it does not have it."""
        header = topics.GET_TOPIC_STATS_INFO.header(topic=topic)
        try:
            stats = await self.wire.read(self.address(broker), topics.GET_TOPIC_STATS_INFO, header)
        except errors.TopicNotFound:
            return {}
        return {
            MessageQueue(topic, broker, queue.queue_id): held
            for queue, held in stats.offset_table.items()
        }

    async def read(
        self, queue: MessageQueue, offset: int
    ) -> tuple[PageStatus, list[ReceivedMessage], PulledRecords]:
        """Return messages of a queue from an offset on, and where to continue."""
        wanted = PullSpec(
            self.wire.options.group, _PAGE, expression_type=TAG, version=self.wire.now_ms()
        )
        told = await self._ask(pull_once(queue, offset, wanted))
        status = PageStatus(told.status.value)
        if status is not PageStatus.FOUND:
            return status, [], told
        delivery = DeliveryContext(
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            offset_delta=told.offset_delta,
        )
        messages = decode_pulled(told.records, delivery)
        return status, [each for each in messages if each.queue_offset >= offset], told

    async def send(self, queue: MessageQueue, request: CopyRequest) -> int:
        """Store messages in a queue; return the offset of the first."""
        header = sending.SendRequestV2(
            producer_group=PRODUCER_GROUP,
            topic=queue.topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=4,
            queue_id=queue.queue_id,
            sys_flag=request.sys_flag,
            born_timestamp=request.born_ms,
            flag=request.flag,
            properties=request.properties,
            reconsume_times=request.reconsume_times,
            unit_mode=False,
            batch=request.is_batch,
            bname=queue.broker_name,
        )
        row = sending.SEND_BATCH_MESSAGE if request.is_batch else sending.SEND_MESSAGE_V2
        address = self.address(queue.broker_name)
        answer = await self.wire.call(address, row, header, request.body, accept=_STORED)
        return answer.header().queue_offset

    async def committed(self, group: str, queue: MessageQueue) -> int | None:
        """Return a group's committed offset in a queue; None if there is none."""
        offset = await self._ask(questions.committed(group, queue, zero_if_none=False))
        return offset if offset is not None and offset >= 0 else None

    async def commit(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Commit an offset of a group in a queue."""
        await self._ask(questions.commit(group, queue, offset))

    async def members(self, group: str) -> int:
        """Return the number of a group's online members."""
        places = list(self.places.values())
        seen = (await self.groups.connections_at(group, places)).all()
        return len({each.client_id for view in seen for each in view.connection_set})

    async def _ask(self, question: Question[T]) -> T:
        async def address_of(queue: MessageQueue) -> str:
            return self.address(queue.broker_name)

        return await self.wire.run(question, address_of)


class Patience:
    """Retries of requests to two clusters. Belongs to one event loop."""

    def __init__(self, sides: tuple[Side, Side], seconds: float, stop: asyncio.Event) -> None:
        self._sides = sides
        self._seconds = seconds
        self._stop = stop

    async def until_done(self, work: Callable[[], Awaitable[T]]) -> T:
        """Retry `work` until it succeeds.

        Raises errors that a retry cannot fix, and the last error when the time is over or a stop
        was requested.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                return await work()
            except errors.MQError as error:
                if not error.retryable or isinstance(
                    error, errors.NoPermission | errors.TopicNotFound
                ):
                    raise
                if loop.time() + pause > deadline or self._stop.is_set():
                    raise
                if error.refresh_route:
                    await self._find_brokers()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _find_brokers(self) -> None:
        for side in self._sides:
            try:
                await side.find_brokers()
            except errors.MQError:
                continue  # the known ones are tried again


async def survey(side: Side) -> ClusterContents:
    """Return the contents of a cluster. Raises `CannotMigrate` if a broker does not answer."""
    topics: dict[str, dict[str, TopicConfig]] = {}
    groups: dict[str, GroupConfig] = {}
    places = list(side.places.values())
    for answer in _whole(await side.topics.configs(side.cluster)):
        for topic, config in answer.value.items():
            topics.setdefault(topic, {})[answer.place.broker] = config
    for table in _whole(await side.groups.configs(side.cluster)).values():
        for group, settings in table.items():
            groups.setdefault(group, settings)
    own: set[str] = set()
    for place in places:
        own |= {place.broker, place.cluster, f"{place.cluster}_REPLY_TOPIC"}
        own |= set(await side.topics.system_names(place.address))
    return ClusterContents(
        cluster=places[0].cluster,
        brokers=tuple(sorted(side.places)),
        topics=topics,
        groups=groups,
        own_topics=frozenset(own),
    )


def _whole(gathered: Gathered[T]) -> Gathered[T]:
    for missing in gathered.missing:
        subject = f"broker {missing.place.broker!r} at {missing.place.address}"
        raise errors.CannotMigrate(subject, str(missing.error))
    return gathered


async def holdings(
    side: Side, topic: str, brokers: list[str]
) -> dict[MessageQueue, rows.OffsetRange]:
    """Return the offsets of a topic's queues on some brokers."""
    return {
        queue: held
        for broker in brokers
        for queue, held in (await side.held(topic, broker)).items()
    }


async def make_groups(target: Side, groups: tuple[GroupConfig, ...]) -> None:
    """Create missing groups. Raises `CannotMigrate` if a broker refuses."""
    for group in groups:
        await _make(target.groups.create(group, target.cluster), f"group {group.group_name!r}")


async def prepare(target: Side, plan: MigrationPlan) -> None:
    """Create missing topics and groups. Raises `CannotMigrate` if a broker refuses."""
    await make_groups(target, plan.groups)
    for topic in plan.topics:
        for broker, config in sorted(topic.create.items()):
            making = target.topics.create(config, address=target.address(broker))
            await _make(making, f"topic {topic.topic!r}")


async def settle(target: Side, topic: TopicPlan) -> None:
    """Set the permissions a topic has in the source, now that all is copied."""
    if not topic.final:
        return
    there = await survey(target)
    for broker, permission in sorted(topic.final.items()):
        config = there.topics[topic.topic][broker]
        final = msgspec.structs.replace(config, perm=permission, attributes={})
        making = target.topics.create(final, address=target.address(broker))
        await _make(making, f"topic {topic.topic!r}")


async def _make(making: Awaitable[Gathered[None]], subject: str) -> None:
    try:
        done = await making
    except errors.MQError as error:
        raise errors.CannotMigrate(subject, str(error)) from error
    for missing in done.missing:
        raise errors.CannotMigrate(subject, f"the target's broker {missing}")
