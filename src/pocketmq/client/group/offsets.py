"""A group's offsets: noted in memory, stored at an interval, read when a queue is taken.

The interval is 5 s, the first one 1 s (`persist_interval`, `persist_first_after`).

`balance.consumer.offsets` decides what is noted and forgotten; this module talks to brokers.
Belongs to one event loop. What order must hold:
- A released queue is persisted before it is forgotten and before its lock is given back: the next
  owner reads the stored offset, and with an older one it would get messages twice.
- Offsets are sent one-way, on one connection to each broker. A broker applies them in any order
  (it has many threads), so an older one may win; the next interval repairs that.
- The last offsets of a consumer that stops are awaited before it unregisters: a member that takes
  over as soon as the broker notifies it would read an older offset.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from pocketmq.balance.consumer import offsets
from pocketmq.balance.consumer.instructions import AskMaxOffset, SearchOffset, UseOffset
from pocketmq.balance.profile import Profile
from pocketmq.client.group.held_queue import log_name
from pocketmq.client.options import ClientOptions
from pocketmq.client.questions.offsets import commit_header, committed, end_offset, near_offset
from pocketmq.client.session import Session, ask_session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import BrokerNotFound, MQError, ResponseCode, ServerError
from pocketmq.model import MessageQueue
from pocketmq.protocol import RequestCode
from pocketmq.protocol.requests.offsets import UpdateConsumerOffsetRequest

logger = logging.getLogger("pocketmq.client")

LAST_TIMEOUT = 1.0
"""Seconds for the answers to the last offsets before the end."""
_IDLE = 10
"""If nothing is handled, offsets are first stored after this many times `persist_first_after`."""


class OffsetStore(Protocol):
    """Where a consumer stores its offsets; `table` holds them in memory."""

    table: offsets.NotedOffsets

    def load(self) -> None:
        """Read what is stored, at start."""

    async def read(self, queue: MessageQueue) -> int:
        """Return the stored offset and note it; or `NO_OFFSET`, or `OFFSET_UNKNOWN`."""

    def persist(self, queue: MessageQueue) -> None:
        """Store what is noted of one queue, without waiting."""

    async def persist_all(self, held: Collection[MessageQueue]) -> None:
        """Store what is noted of the held queues, and forget the rest.

        Returns when all is sent, what `persist` was called with before included.
        """

    async def persist_last(self, held: Collection[MessageQueue]) -> None:
        """Do the same before the end: the next owner must find what is stored."""


class RemoteOffsets:
    """Offsets of a clustering group, stored on its brokers."""

    def __init__(self, session: Session, group: str, profile: Profile) -> None:
        self.table = offsets.NotedOffsets()
        self._session = session
        self._group = group
        self._profile = profile
        self._tasks = Tasks(f"{session.client_id}: offsets of {group}")
        self._under_way: set[asyncio.Task[None]] = set()
        self._unknown: set[MessageQueue] = set()  # could not be read the last time

    def load(self) -> None:
        """Do nothing: brokers are asked queue by queue."""

    async def read(self, queue: MessageQueue) -> int:
        """Ask the queue's broker, and note its answer."""
        try:
            offset = await ask_session(self._session, committed(self._group, queue))
        except ServerError as error:
            found = offsets.offset_after_refusal(self._profile, error.code)
            if found == offsets.OFFSET_UNKNOWN:  # such as no permission: operators must see it
                self._complain(queue, error)
            else:
                self._unknown.discard(queue)
            return found
        except MQError as error:
            self._complain(queue, error)
            return offsets.OFFSET_UNKNOWN
        self._unknown.discard(queue)
        if offset is None:
            return offsets.offset_after_refusal(self._profile, ResponseCode.QUERY_NOT_FOUND)
        self.table.update(queue, offset, increase_only=False)
        return offset

    def _complain(self, queue: MessageQueue, error: MQError) -> None:
        """Log the first failure of many in a row."""
        log = logger.debug if queue in self._unknown else logger.warning
        log('reading offset failed: group=%s %s error="%s"', self._group, log_name(queue), error)
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
        """Send what is noted, and wait at most `LAST_TIMEOUT` for the brokers' answers.

        Java sends one-way here, too, and its brokers handle offsets and unregistrations in any
        order: a member that starts at once may read an offset from before.
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
            address = session.brokers.address(session.addresses.holder(queue))
            if session.calls.connected(address) is None:  # a stop must not wait to connect
                self._send(queue, offset)
                return
            header = commit_header(self._group, queue, offset)
            holder = session.addresses.holder(queue)
            await session.brokers.call(holder, code, header, timeout=LAST_TIMEOUT)
        except MQError as error:
            self._not_stored(queue, offset, error)

    def _send(self, queue: MessageQueue, offset: int) -> None:
        """Send an offset at once if the broker is connected, or as soon as it is."""
        session = self._session
        header = commit_header(self._group, queue, offset)
        try:
            address = session.brokers.address(session.addresses.holder(queue))
        except BrokerNotFound as error:
            self._not_stored(queue, offset, error)
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
            holder = self._session.addresses.holder(queue)
            await self._session.brokers.tell(holder, RequestCode.UPDATE_CONSUMER_OFFSET, header)
        except MQError as error:
            self._not_stored(queue, header.commit_offset, error)

    def _not_stored(self, queue: MessageQueue, offset: int, error: MQError) -> None:
        logger.warning(
            'offset not stored: group=%s %s offset=%s error="%s"; retrying at the next '
            "interval", self._group, log_name(queue), offset, error,
        )  # fmt: skip


async def max_offset(session: Session, queue: MessageQueue) -> int | None:
    """Return the offset of the next message; None if the broker does not answer."""
    try:
        return await ask_session(session, end_offset(queue))
    except MQError as error:
        logger.warning('reading the end offset failed: %s error="%s"', log_name(queue), error)
        return None


async def offset_at(session: Session, queue: MessageQueue, timestamp_ms: int) -> int | None:
    """Return the offset of a store time; None if the broker does not answer."""
    try:
        return await ask_session(session, near_offset(queue, timestamp_ms))
    except MQError as error:
        logger.warning(
            'searching the offset failed: %s time=%s error="%s"',
            log_name(queue), timestamp_ms, error,
        )  # fmt: skip
        return None


async def start_offset(
    session: Session, queue: MessageQueue, stored: int, rule: offsets.StartRule
) -> int | None:
    """Return where a queue starts, given its stored offset; None if a broker did not answer."""
    step = offsets.start_step(queue, stored, rule)
    if isinstance(step, AskMaxOffset | SearchOffset):
        step = offsets.after_answer(queue, await answer_to(session, step))
    return step.offset if isinstance(step, UseOffset) else None


async def answer_to(session: Session, step: AskMaxOffset | SearchOffset) -> int | None:
    """Ask the broker what a step needs; None if it does not answer."""
    if isinstance(step, AskMaxOffset):
        return await max_offset(session, step.queue)
    return await offset_at(session, step.queue, step.timestamp_ms)


def persist_periodically(
    tasks: Tasks,
    table: offsets.NotedOffsets,
    options: ClientOptions,
    persist: Callable[[], Awaitable[object]],
) -> None:
    """Store what is noted in a table at an interval, until the tasks are stopped.

    The first time is soon after the first handled message. Java waits ten seconds after the start,
    whatever was handled: if a consumer crashes before that, all its messages are redelivered.
    """
    advanced = asyncio.Event()
    table.when_advanced = advanced.set

    async def begin() -> None:
        first_after = options.persist_first_after
        try:
            async with asyncio.timeout(_IDLE * first_after):
                await advanced.wait()
        except TimeoutError:
            first_after = 0.0
        tasks.every(options.persist_interval, persist, "offsets", first_after=first_after)

    tasks.spawn(begin(), "first offsets")
