"""Offsets: bounds of queues, resets of groups, copies from group to group."""

from typing import TypeVar

import msgspec

from pocketmq.admin.gathered import Gathered, Missing, ServerPlace
from pocketmq.admin.groups import Groups
from pocketmq.admin.topics import Topics
from pocketmq.admin.wire import AdminWire
from pocketmq.client.questions import offsets as questions
from pocketmq.client.questions.asking import Question
from pocketmq.errors import BrokerNotFound, ConsumerOffline, MQError
from pocketmq.model import MessageQueue, TopicRoute, sort_queues
from pocketmq.model.topics import is_logical
from pocketmq.protocol.requests import client_calls
from pocketmq.protocol.requests import offsets as rows

T = TypeVar("T")

LATEST = -1
"""Instead of a time: after the last message."""


class QueueReset(msgspec.Struct, frozen=True):
    """The offset of a group in a queue, before and after a reset.

    The other three are known only if no member was online: then offsets are set one by one.
    """

    offset: int
    broker_offset: int | None = None
    consumer_offset: int | None = None
    found_offset: int | None = None
    """The offset of the requested time; `offset` differs only if it would skip messages."""


class ResetResult(msgspec.Struct, frozen=True):
    """Where a group continues in each queue; `online` if its members were notified."""

    queues: dict[MessageQueue, QueueReset]
    online: bool
    missing: tuple[Missing, ...] = ()


class Offsets:
    """Reads and changes offsets."""

    def __init__(self, wire: AdminWire, topics: Topics, groups: Groups) -> None:
        self._wire = wire
        self._topics = topics
        self._groups = groups

    async def bounds(self, queue: MessageQueue) -> tuple[int, int]:
        """Return a queue's first offset and the one after its last message."""
        return await self._ask(questions.bounds(queue))

    async def at_time(self, queue: MessageQueue, time_ms: int) -> int:
        """Return the offset of the first message stored at or after a time, or the queue's end."""
        return await self._ask(questions.offset_at(queue, time_ms, self._wire.options.group))

    async def commit(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Commit an offset of a group in a queue; members that are online overwrite it."""
        await self._ask(questions.commit(group, queue, offset))

    async def reset(
        self, group: str, topic: str, time_ms: int, *, back_only: bool = False
    ) -> ResetResult:
        """Reset a group to a time in all queues of a topic, or to `LATEST`, after the last message.

        With `back_only` it never skips messages. Members that are online continue there at once;
        without any, offsets are stored for later members. Raises `RouteNotFound`, and the error if
        no broker succeeded.
        """
        places = await self._topics.places(topic)
        header = rows.ResetOffsetRequest(
            group=group, topic=topic, timestamp=time_ms, is_force=not back_only
        )

        async def reset(place: ServerPlace) -> rows.ResetOffset:
            answer = await self._wire.call(
                place.address, rows.INVOKE_BROKER_TO_RESET_OFFSET, header
            )
            return rows.ResetOffset() if answer.is_empty else answer.result()

        done = await self._wire.each(places, reset)
        if any(isinstance(each.error, ConsumerOffline) for each in done.missing):
            return await self.reset_stored(group, topic, time_ms, back_only=back_only)
        moved = {
            queue: QueueReset(offset)
            for body in done.some().values()
            for queue, offset in body.offset_table.items()
        }
        queues = {queue: moved[queue] for queue in sort_queues(set(moved))}
        return ResetResult(queues, online=True, missing=done.missing)

    async def reset_queue(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Reset a group to an offset of one queue, also members that are online (5.x brokers)."""
        header = rows.ResetOffsetRequest(
            group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            offset=offset,
            timestamp=0,
            is_force=True,
        )
        address = await self.address_of(queue)
        await self._wire.call(address, rows.INVOKE_BROKER_TO_RESET_OFFSET, header)

    async def reset_stored(
        self, group: str, topic: str, time_ms: int, *, back_only: bool = False
    ) -> ResetResult:
        """Change only the stored offsets; members that are online are not notified."""
        route = await self._topics.route(topic)
        queues = sort_queues(route.subscribe_queues(topic))
        progress = await self._groups.progress(group, topic)

        async def one(queue: MessageQueue) -> QueueReset:
            latest = time_ms == LATEST
            found = await self._ask(
                questions.end_offset(queue) if latest else questions.near_offset(queue, time_ms)
            )
            was = progress.queues.get(queue)
            at = was.consumer_offset if was is not None else None
            moved = not back_only or at is None or found <= at
            if moved:
                await self.commit(group, queue, found)
            return QueueReset(
                offset=found if moved or at is None else at,
                broker_offset=was.broker_offset if was is not None else None,
                consumer_offset=at,
                found_offset=found,
            )

        outcomes = dict(zip(queues, await self._wire.together(queues, one), strict=True))
        moved = {q: each for q, each in outcomes.items() if not isinstance(each, MQError)}
        missing = {
            queue.broker_name: Missing(ServerPlace("", queue.broker_name, 0, ""), each)
            for queue, each in outcomes.items()
            if isinstance(each, MQError)
        }
        if not moved and missing:
            raise next(iter(missing.values())).error
        return ResetResult(moved, online=False, missing=tuple(missing.values()))

    async def clone(self, source: str, destination: str, topic: str) -> dict[MessageQueue, int]:
        """Copy a group's offsets in a topic to another group; return the offsets stored.

        Raises `Absent`, `RouteNotFound`, and the first error if a broker did not take part.
        """
        progress = await self._groups.progress(source, topic)
        offsets = {
            queue: each.consumer_offset
            for queue, each in progress.queues.items()
            if queue.topic == topic and each.consumer_offset >= 0
        }

        async def store(queue: MessageQueue) -> None:
            await self.commit(destination, queue, offsets[queue])

        outcomes = await self._wire.together(offsets, store)
        Gathered((), progress.missing).all()
        for outcome in outcomes:
            if isinstance(outcome, MQError):
                raise outcome
        return offsets

    async def in_memory(
        self, group: str, topic: str, client_id: str | None = None
    ) -> dict[str, dict[MessageQueue, int]]:
        """Return the offsets that members have in memory, of all or of one, by client id.

        Raises `RouteNotFound`, and the error if no broker reaches the members.
        """
        header = client_calls.GetConsumerStatusRequest(
            topic=topic, group=group, client_addr=client_id
        )
        places = await self._topics.places(topic)
        request = client_calls.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
        found = (await self._wire.read_each(places, request, header)).some()
        return {
            client: offsets
            for status in found.values()
            for client, offsets in status.consumer_table.items()
        }

    async def address_of(self, queue: MessageQueue) -> str:
        """Return the address of a queue's broker. Raises `RouteNotFound`, `BrokerNotFound`."""
        known = await self._wire.session.routes.get(queue.topic, self._wire.options.timeout)
        address = None if is_logical(queue) else _address(known.route, queue)
        if address is None:  # the topic may be on a broker that the cached route does not have yet
            address = _address(await self._topics.route(queue.topic), queue)
        if address is None:
            raise BrokerNotFound(queue.broker_name)
        return address

    async def _ask(self, question: Question[T]) -> T:
        return await self._wire.run(question, self.address_of)


def _address(route: TopicRoute, queue: MessageQueue) -> str | None:
    broker = route.leaders(queue.topic).get(queue, queue.broker_name)
    for data in route.broker_datas:
        if data.broker_name == broker and data.broker_addrs:
            return data.broker_addrs[min(data.broker_addrs)]
    return None
