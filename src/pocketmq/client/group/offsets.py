"""A group's offsets at its brokers: noted in memory, sent now and then, read when a queue is taken.

What is noted and forgotten when is `balance.consumer.offset_table`'s business; this room asks and
tells. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Collection
from typing import Protocol

from pocketmq.balance.consumer.offset_table import OffsetTable
from pocketmq.balance.consumer.start_offset import OFFSET_UNKNOWN, offset_after_refusal
from pocketmq.balance.profile import Profile
from pocketmq.client.questions.of_session import ask_session
from pocketmq.client.questions.offsets import commit_header, committed, end_offset, near_offset
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import BrokerNotFound, MQError, ResponseCode, ServerError
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.requests.offsets import UpdateConsumerOffsetRequest

logger = logging.getLogger("pocketmq.client")

LAST_TIMEOUT = 1.0
"""For the answers to the last offsets before the end."""


class OffsetStore(Protocol):
    """Where a consumer keeps its offsets; `table` holds what is noted in memory."""

    table: OffsetTable

    def load(self) -> None:
        """Read what there is, at start."""

    async def read(self, queue: MessageQueue) -> int:
        """Give the stored offset and note it; or `NO_OFFSET`, or `OFFSET_UNKNOWN`."""

    def persist(self, queue: MessageQueue) -> None:
        """Store what is noted of one queue, without waiting."""

    async def persist_all(self, held: Collection[MessageQueue]) -> None:
        """Store what is noted of the held queues, and forget the rest.

        Returns when all is on its way, what `persist` was told before included.
        """

    async def persist_last(self, held: Collection[MessageQueue]) -> None:
        """Do the same before the end: whoever comes next should find what is stored."""


class RemoteOffsets:
    """The offset store of a group that shares its queues: its brokers."""

    def __init__(self, session: Session, group: str, profile: Profile) -> None:
        self.table = OffsetTable()
        self._session = session
        self._group = group
        self._profile = profile
        self._tasks = Tasks(f"{session.client_id}: offsets of {group}")
        self._under_way: set[asyncio.Task[None]] = set()
        self._unknown: set[MessageQueue] = set()  # could not be read the last time

    def load(self) -> None:
        """Do nothing: brokers are asked queue by queue."""

    async def read(self, queue: MessageQueue) -> int:
        """Ask the queue's broker; whatever it says is noted."""
        try:
            offset = await ask_session(self._session, committed(self._group, queue))
        except ServerError as error:
            found = offset_after_refusal(self._profile, error.code)
            if found == OFFSET_UNKNOWN:  # such as no permission: who waits for messages must know
                self._complain(queue, error)
            else:
                self._unknown.discard(queue)
            return found
        except MQError as error:
            self._complain(queue, error)
            return OFFSET_UNKNOWN
        self._unknown.discard(queue)
        if offset is None:
            return offset_after_refusal(self._profile, ResponseCode.QUERY_NOT_FOUND)
        self.table.update(queue, offset, increase_only=False)
        return offset

    def _complain(self, queue: MessageQueue, error: MQError) -> None:
        """Log the first failure of many in a row."""
        log = logger.debug if queue in self._unknown else logger.warning
        log("group %s: the offset of %s is unknown: %s", self._group, queue, error)
        self._unknown.add(queue)

    def persist(self, queue: MessageQueue) -> None:
        """Send the noted offset one-way; a failure is logged, as in Java."""
        offset = self.table.read(queue)
        if offset >= 0:
            self._send(queue, offset)

    async def persist_all(self, held: Collection[MessageQueue]) -> None:
        """Send what is noted of the held queues one-way, and forget the rest."""
        for queue, offset in self.table.to_persist(held).items():
            self._send(queue, offset)
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def persist_last(self, held: Collection[MessageQueue]) -> None:
        """Send what is noted, then wait for the brokers' word, though not for long.

        Java sends one-way here, too, and its brokers take offsets and farewells in any order: a
        member that starts at once may be told an offset from before.
        """
        asked = [
            self._answered(queue, offset) for queue, offset in self.table.to_persist(held).items()
        ]
        await asyncio.gather(*asked)
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def _answered(self, queue: MessageQueue, offset: int) -> None:
        session, code = self._session, RequestCode.UPDATE_CONSUMER_OFFSET
        try:
            address = session.brokers.address(queue.broker_name)
            if session.calls.connected(address) is None:
                self._send(queue, offset)
                return
            header = commit_header(self._group, queue, offset)
            await session.brokers.call(queue.broker_name, code, header, timeout=LAST_TIMEOUT)
        except MQError as error:
            logger.warning("group %s: offset %s of %s not stored: %s",
                self._group, offset, queue, error)  # fmt: skip

    def _send(self, queue: MessageQueue, offset: int) -> None:
        """Send an offset at once if the broker is connected, or as soon as it is."""
        session = self._session
        header = commit_header(self._group, queue, offset)
        try:
            address = session.brokers.address(queue.broker_name)
        except BrokerNotFound as error:
            logger.warning("group %s: offset %s of %s not stored: %s",
                self._group, offset, queue, error)  # fmt: skip
            return
        connection = session.calls.connected(address)
        request = session.calls.request(RequestCode.UPDATE_CONSUMER_OFFSET, header)
        if connection is not None and connection.send_oneway(request):
            return
        task = self._tasks.spawn(self._send_later(queue, header), f"offset of {queue}")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _send_later(self, queue: MessageQueue, header: UpdateConsumerOffsetRequest) -> None:
        try:
            await self._session.brokers.tell(
                queue.broker_name, RequestCode.UPDATE_CONSUMER_OFFSET, header
            )
        except MQError as error:
            logger.warning("group %s: offset %s of %s not stored: %s",
                self._group, header.commit_offset, queue, error)  # fmt: skip


async def max_offset(session: Session, queue: MessageQueue) -> int | None:
    """Give where a queue ends; None if its broker does not say."""
    try:
        return await ask_session(session, end_offset(queue))
    except MQError as error:
        logger.warning("the end of %s is unknown: %s", queue, error)
        return None


async def offset_at(session: Session, queue: MessageQueue, timestamp_ms: int) -> int | None:
    """Give the offset of a store time; None if the broker does not say."""
    try:
        return await ask_session(session, near_offset(queue, timestamp_ms))
    except MQError as error:
        logger.warning("the offset of %s at %s is unknown: %s", queue, timestamp_ms, error)
        return None
