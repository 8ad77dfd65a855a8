"""Delayed messages of the source: by level, by timer, and retries before their next delivery.

They arrive in their topic when they are due, and are copied then. To stop the source earlier, they
can be moved: the target gets them with their delivery time.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from pocketmq.admin.brokers import status_of
from pocketmq.admin.migration.copies import DELAYED_ORIGIN, CopyRequest, kept_properties
from pocketmq.admin.migration.copying import delayed_key
from pocketmq.admin.migration.ledger import MigrationLedger
from pocketmq.admin.migration.side import Side
from pocketmq.admin.reading import PageStatus
from pocketmq.errors import CannotMigrate, ServerError, SystemFailure
from pocketmq.model import COMPRESSION_MASK, MessageQueue, SysFlag, property_names, sort_queues
from pocketmq.model.delay import parse_delay_levels
from pocketmq.model.names import SCHEDULE_TOPIC, TIMER_TOPIC
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.requests import broker_admin, offsets

_TRIES, _PAUSE = 10, 0.5
"""How often a broker is asked for its version, and the seconds between."""
_SOON_MS = 10_000
"""Messages due within this many milliseconds are not moved: they are copied when due."""


class DelayedMessage(msgspec.Struct, frozen=True):
    """A delayed message, its queue and its delivery time."""

    message: ReceivedMessage
    home: MessageQueue
    """The queue it will be delivered to, on its own broker."""
    due_ms: int


class WaitingCount(msgspec.Struct, frozen=True):
    """The number of delayed messages, and the last delivery time."""

    messages: int
    last_due_ms: int | None


async def waiting(side: Side) -> AsyncIterator[DelayedMessage]:
    """Yield every delayed message that was not recalled."""
    now_ms = side.wire.now_ms()
    for broker in sorted(side.places):
        async for each in _levels(side, broker):
            yield each
        timed: dict[str, DelayedMessage] = {}
        recalled: set[str] = set()
        async for message in _all(side, MessageQueue(TIMER_TOPIC, broker, 0), 0):
            key = message.get_property(property_names.TIMER_DELETE_UNIQUE_KEY)
            if key is not None:
                recalled |= {key, key.rpartition("+")[2]}
                continue
            found = _home(message, broker)
            due = message.get_property(property_names.TIMER_OUT_MS) or ""
            if found is not None and due.isdigit() and int(due) > now_ms:
                timed[delayed_key(message)] = DelayedMessage(message, found, int(due))
        for each in timed.values():
            if each.message.message_id not in recalled:
                yield each


async def _levels(side: Side, broker: str) -> AsyncIterator[DelayedMessage]:
    address = side.address(broker)
    (config,) = (await side.brokers.config(address=address)).all()
    levels = parse_delay_levels(config.get("messageDelayLevel", "") or "1s")
    reached = (await side.wire.read(address, offsets.GET_ALL_DELAY_OFFSET, None)).offset_table
    queues = await side.held(SCHEDULE_TOPIC, broker)
    for queue in sort_queues(set(queues)):
        held, queue_id = queues[queue], queue.queue_id
        start = max(held.min_offset, reached.get(queue_id + 1, 0))
        if start >= held.max_offset or queue_id >= len(levels):
            continue
        async for message in _all(side, queue, start):
            home = _home(message, broker)
            if home is not None:
                due_ms = message.store_timestamp_ms + int(levels[queue_id] * 1000)
                yield DelayedMessage(message, home, due_ms)


async def _all(side: Side, queue: MessageQueue, offset: int) -> AsyncIterator[ReceivedMessage]:
    while True:
        try:
            status, messages, told = await side.read(queue, offset)
        except ServerError:
            return  # a broker without this topic has no such messages
        for message in messages:
            yield message
        if status is PageStatus.NO_NEW_MSG or told.next_offset <= offset:
            return
        offset = told.next_offset


def _home(message: ReceivedMessage, broker: str) -> MessageQueue | None:
    topic = message.get_property(property_names.REAL_TOPIC)
    queue_id = message.get_property(property_names.REAL_QUEUE_ID) or ""
    if topic is None or not queue_id.isdigit():
        return None
    return MessageQueue(topic, broker, int(queue_id))


async def count_waiting(side: Side, ledger: MigrationLedger | None) -> WaitingCount:
    """Count the delayed messages that were not moved yet."""
    dues = [
        each.due_ms
        async for each in waiting(side)
        if ledger is None or not ledger.moved_delayed(delayed_key(each.message))
    ]
    return WaitingCount(len(dues), max(dues, default=None))


async def move_waiting(source: Side, target: Side, ledger: MigrationLedger) -> int:
    """Move delayed messages to the target, with their delivery time; return their number.

    When they are delivered in the source later, they are not copied again. Raises `CannotMigrate`
    if the target is a 4.x broker, which would deliver them at once.
    """
    await _check_timers(target)
    places = {state.source: state.target for state in ledger.queues()}
    moved = 0
    soon_ms = source.wire.now_ms() + _SOON_MS
    async for each in waiting(source):
        key = delayed_key(each.message)
        home = places.get(each.home)
        if home is None or each.due_ms <= soon_ms or ledger.moved_delayed(key):
            continue
        await target.send(home, _request(each, ledger.migration))
        ledger.note_delayed(key, each.due_ms)
        moved += 1
    return moved


def _request(each: DelayedMessage, migration: str) -> CopyRequest:
    message = each.message
    kept = kept_properties(message)
    kept[property_names.TIMER_DELIVER_MS] = str(each.due_ms)
    place = f"{message.broker_name}/{message.topic}/{message.queue_id}/{message.queue_offset}"
    kept[DELAYED_ORIGIN] = f"{migration}/{place}"
    return CopyRequest(
        first=message.queue_offset,
        count=1,
        body=message.stored_body,
        properties=encode_properties(kept).decode(),
        born_ms=message.born_timestamp_ms,
        flag=message.flag,
        sys_flag=message.sys_flag & (int(SysFlag.COMPRESSED) | COMPRESSION_MASK),
        reconsume_times=message.reconsume_times,
    )


async def _check_timers(target: Side) -> None:
    for place in target.places.values():
        version = await _version(target, place.address)
        if version.startswith("V4"):
            reason = f"the target's broker {place.broker!r} is {version}, which has no timers"
            raise CannotMigrate("delayed messages", f"{reason}; wait until they are due")


async def _version(target: Side, address: str) -> str:
    """Return a broker's version; one of 4.x that has just started refuses to tell for a second."""
    tries = _TRIES
    while True:
        try:
            told = await target.wire.read(address, broker_admin.GET_BROKER_RUNTIME_INFO, None)
        except SystemFailure:
            tries -= 1
            if not tries:
                raise
            await asyncio.sleep(_PAUSE)
        else:
            return status_of(told.table).version or ""
