"""Copying one queue: read, send in order, record where it went; resume after any failure.

A request without an answer may have been carried out. So after such a failure, before anything else
is sent, and at the start of every run, the target's queue is scanned from the last known offset:
copies found there count as copied. Without that, a retry would store messages twice.
"""

import asyncio
from collections.abc import Callable

import msgspec

from pocketmq.admin.migration.copies import CopyRequest, origin_of, requests_for
from pocketmq.admin.migration.ledger import MigrationLedger, QueueState
from pocketmq.admin.migration.offset_map import CopiedRange
from pocketmq.admin.migration.side import Patience, Side
from pocketmq.admin.reading import PageStatus
from pocketmq.errors import CannotMigrate, InvalidInput, MessageIllegal, MQError, NoPermission
from pocketmq.model import MessageQueue, property_names
from pocketmq.protocol import ReceivedMessage


class CopyRules(msgspec.Struct, frozen=True):
    """How messages are copied."""

    patience: float = 60.0
    """Seconds to retry servers that do not answer."""
    born_within: float = 1.0
    """Seconds between messages that may share a batch, and so its born timestamp."""
    parallel: int = 16
    """Queues copied concurrently."""
    replan: float = 5.0
    """Seconds between two checks for new topics, while following."""


class QueueCopier:
    """Copies one queue. Belongs to one event loop; one task at a time may use it."""

    def __init__(
        self,
        sides: tuple[Side, Side],
        ledger: MigrationLedger,
        state: QueueState,
        rules: CopyRules,
        stop: asyncio.Event,
    ) -> None:
        self._source, self._target = sides
        self._ledger = ledger
        self._rules = rules
        self._stop = stop
        self._patience = Patience(sides, rules.patience, stop)
        self.state = state
        self.next = state.next
        self.lost = 0
        self._scanned = False
        self._count: Callable[[int], object] = int

    async def run(self, until: int, first: int, count: Callable[[int], object]) -> None:
        """Copy up to an offset; `first` is the source's first one. Returns early on a stop.

        Calls `count` with the number of messages after each request. Raises `CannotMigrate`, and
        the last error if servers do not respond for too long.
        """
        self._count = count
        if not self._scanned:
            await self._patience.until_done(self.scan)
            self._scanned = True
            self.check_end(until)
        if self.next is None:
            self._ledger.record(self.state.id, [], first, self.state.seen)
            self.next = first
        while self.next < until and not self._stop.is_set():
            page = await self._patience.until_done(self._read)
            if not page:
                return
            if not await self._copy(page):
                return

    def check_end(self, end: int) -> None:
        """Raise `CannotMigrate` if the source ends before what was copied."""
        check_end(self.state.source, self.next, end)

    async def _copy(self, page: list[ReceivedMessage]) -> bool:
        """Copy a page; return False if stopped before its end."""
        for request in self._requests(page):
            await self._send(request)
            if self._stop.is_set():
                return False
            if self.next is None or self.next < request.first + request.count:
                return True  # a scan found a part of it: read again from there
        end = page[-1].queue_offset + 1
        if self.next is None or self.next < end:  # the last ones were moved while delayed
            self._ledger.record(self.state.id, [], end, self.state.seen)
            self.next = end
        return True

    async def scan(self) -> None:
        """Read the target's queue from the last scan on; copies found count as copied.

        Raises `CannotMigrate` if the last copy is not where it was stored.
        """
        await self._check_last()
        offset, found, next_offset = self.state.seen, [], self.next
        while True:
            status, messages, told = await self._target.read(self.state.target, offset)
            for message in messages:
                origin = origin_of(message)
                if origin is None or not self._is_ours(origin[:3]):
                    continue
                if next_offset is None or origin.offset >= next_offset:
                    found.append(CopiedRange(origin.offset, message.queue_offset, 1))
                    next_offset = origin.offset + 1
            moved = told.next_offset > offset
            offset = max(offset, told.next_offset)
            if status is PageStatus.NO_NEW_MSG or not moved:
                break
        if found and next_offset is not None:
            self._ledger.record(self.state.id, _joined(found), next_offset, offset)
            self.next = next_offset
        self.state = msgspec.structs.replace(self.state, seen=offset)

    async def _check_last(self) -> None:
        last = self._ledger.last(self.state.id)
        if last is None:
            return
        _, messages, told = await self._target.read(self.state.target, last.target_end - 1)
        if told.min_offset >= last.target_end:
            return  # it was deleted by retention
        origin = origin_of(messages[0]) if messages else None
        if origin is None or not self._is_ours(origin[:3]) or origin.offset != last.end - 1:
            raise self._target_lost(last.target_end - 1)

    def _target_lost(self, offset: int) -> CannotMigrate:
        reason = (
            f"the copy at offset {offset} of the target is gone: has the target lost data? "
            "Delete the topic there, and start again with a new state file and --adopt"
        )
        return CannotMigrate(_named(self.state.source), reason)

    def _is_ours(self, place: tuple[str, str, int]) -> bool:
        source = self.state.source
        return place == (self._ledger.migration, source.broker_name, source.queue_id)

    async def _read(self) -> list[ReceivedMessage]:
        assert self.next is not None
        _, messages, told = await self._source.read(self.state.source, self.next)
        if messages:
            if messages[0].queue_offset > self.next:
                self._skip(messages[0].queue_offset)
            return messages
        if told.next_offset > self.next:
            self._skip(told.next_offset)
        return []

    def _skip(self, offset: int) -> None:
        assert self.next is not None
        self._ledger.skip(self.state.id, offset, offset - self.next)
        self.lost += offset - self.next
        self.next = offset

    def _requests(self, page: list[ReceivedMessage]) -> list[CopyRequest]:
        if self._ledger.any_delayed():
            page = [each for each in page if not self._ledger.moved_delayed(delayed_key(each))]
        topic = self.state.target.topic
        within_ms = int(self._rules.born_within * 1000)
        try:
            return list(requests_for(page, topic, self._ledger.migration, within_ms))
        except InvalidInput as error:
            raise CannotMigrate(_named(self.state.source), str(error)) from error

    async def _send(self, request: CopyRequest) -> None:
        """Send a request until it is known to be stored."""

        async def attempt() -> None:
            if self.next is not None and self.next > request.first:
                return  # an earlier attempt was stored
            try:
                at = await self._target.send(self.state.target, request)
            except (MessageIllegal, NoPermission) as error:
                raise CannotMigrate(_named(self.state.source), str(error)) from error
            except MQError as error:
                # It may be stored, or the target has restarted without its data.
                if error.retryable or error.outcome_unknown:
                    await self._patience.until_done(self.scan)
                raise
            if at < self.state.seen:
                raise self._target_lost(self.state.seen - 1)
            stored = CopiedRange(request.first, at, request.count)
            end = request.first + request.count
            self._ledger.record(self.state.id, [stored], end, stored.target_end)
            self.state = msgspec.structs.replace(self.state, seen=stored.target_end)
            self.next = end
            self._count(request.count)

        await self._patience.until_done(attempt)


def check_end(queue: MessageQueue, copied: int | None, end: int) -> None:
    """Raise `CannotMigrate` if a queue of the source ends before what was copied of it."""
    if copied is not None and copied > end:
        reason = f"it ends at {end}, but was copied up to {copied}: has the source lost data?"
        raise CannotMigrate(_named(queue), reason)


def delayed_key(message: ReceivedMessage) -> str:
    """Return the key of a message in the record of moved delayed messages."""
    topic = message.get_property(property_names.REAL_TOPIC) or message.topic
    return f"{topic}/{message.message_id}"


def _joined(stretches: list[CopiedRange]) -> list[CopiedRange]:
    joined: list[CopiedRange] = []
    for each in stretches:
        if joined and joined[-1].joins(each):
            last = joined[-1]
            joined[-1] = CopiedRange(last.first, last.target, last.size + each.size)
        else:
            joined.append(each)
    return joined


def _named(queue: MessageQueue) -> str:
    return f"queue {queue.queue_id} of topic {queue.topic!r} on broker {queue.broker_name!r}"
