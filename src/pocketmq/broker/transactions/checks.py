"""Transaction checks: asking producers for the outcome, round after round, until it is discarded.

A round checks every open half message, a few at a time so that clients do not have to wait. Which
are due is read from the queue's own entries: half messages that are not, cost nothing. A round
counts against a half message whether or not a producer was online, as in RocketMQ. Belongs to the
broker's loop.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial

from pocketmq.broker.core.alarm import Alarm
from pocketmq.broker.core.late_saving import LateSaving
from pocketmq.broker.core.peer import ClientPeer
from pocketmq.broker.delay.rules import real_place
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import BrokerState
from pocketmq.broker.transactions import rules
from pocketmq.broker.transactions.half_messages import KIND, HalfMessages
from pocketmq.broker.transactions.half_states import DISCARDED, MOST_CHECKS
from pocketmq.broker.writing.drafts import Draft
from pocketmq.errors import ResponseCode, StoreError, server_error
from pocketmq.model.names import DISCARDED_HALF_TOPIC, HALF_TOPIC
from pocketmq.model.property_names import TRANSACTION_PREPARED
from pocketmq.protocol import RecordView
from pocketmq.store import QueueIndex, TagRule

logger = logging.getLogger("pocketmq.broker")

_WINDOW = 16_384
"""Entries of the queue read together."""
_AT_ONCE = 64
"""Half messages checked before clients are served again."""
_CLOGGED = 4 << 20
"""Unsent bytes from which a producer is not asked."""
_STALE = 64 << 20
"""Bytes of the log behind what was saved, from which it is saved again: recovery reads them."""


def half_tag_rules() -> dict[str, TagRule]:
    """Return what a store needs to recover half messages."""
    return {HALF_TOPIC: rules.half_tag}


class TransactionChecks:
    """The transactions of a running broker."""

    def __init__(self, state: BrokerState, loop: asyncio.AbstractEventLoop) -> None:
        self._state = state
        self._halves = HalfMessages(state.store)
        self._saving = LateSaving(state, loop, kind=KIND, capture=self._halves.snapshot)
        self._alarm = Alarm("check of transactions", self._run, loop)
        self._round: Iterator[None] | None = None
        self._absent: set[str] = set()  # groups without a producer online in this round

    def start(self) -> None:
        """Resume where the broker stopped, and take half messages from now on."""
        state = self._state
        documents = dict(state.store.metadata.documents(KIND))
        opened = self._halves.recover(documents.get(KIND), state.clock.now_ms())
        if opened:
            logger.info("open transactions: count=%d", opened)
            self._saving.changed()
        self._halves.changed = self._saving.changed
        state.halves = self._halves
        state.redirects[TRANSACTION_PREPARED] = self._hold_back
        state.store.about_to_drop.append(self._discard_before)
        self._sleep()

    async def stop(self) -> None:
        """Stop checking, and save; call before the store is closed."""
        self._alarm.stop()
        await self._saving.stop()

    def _hold_back(self, draft: Draft) -> None:
        if not rules.is_half(draft):
            return
        state = self._state
        if state.config.reject_transaction_message:
            host = state.address.rpartition(":")[0]
            raise server_error(
                ResponseCode.NO_PERMISSION,
                f"the broker[{host}] sending transaction message is forbidden",
            )
        rules.prepare(draft, state.batch.now_ms)

    def _sleep(self) -> None:
        interval = max(self._state.config.transaction_check_interval, 10) / 1000
        self._alarm.wake_after(interval)

    def _run(self) -> None:
        """Continue the round, or start one; sleep when it is over.

        A round that raises is over: the retry finds nothing left of it, and sleeps.
        """
        if self._round is None:
            self._round = self._look_at_all()
            self._absent.clear()
        try:
            next(self._round)
        except StopIteration:
            self._end_round()
        else:
            self._alarm.wake_after(0)

    def _end_round(self) -> None:
        self._round = None
        if self._state.store.log.written - self._halves.saved_position > _STALE:
            self._saving.changed()
        self._sleep()

    def _look_at_all(self) -> Iterator[None]:
        """Check all once, yielding now and then so that clients are served."""
        halves, queue = self._halves, self._halves.queue
        if queue is None:
            return
        self._state.writer.write_now()
        offset, stop = max(halves.states.base, queue.min_offset), queue.next_offset
        while offset < stop:
            end = min(offset + _WINDOW, stop)
            due = self._due(queue, offset, end)
            for start in range(0, len(due), _AT_ONCE):
                self._deal_with(queue, due[start : start + _AT_ONCE])
                yield
            offset = end
            yield

    def _due(self, queue: QueueIndex, start: int, stop: int) -> list[int]:
        """Return the open half messages of a stretch about which producers are to be asked."""
        state, store = self._state, self._state.store
        now_ms, timeout_ms = state.clock.now_ms(), state.config.transaction_time_out
        found = [offset for offset, _ in self._halves.states.open_from(start, stop)]
        if not found:
            return found
        first = found[0]
        tags = queue.tags(first, found[-1] + 1 - first)
        return [
            each
            for each in found
            if rules.is_check_due(tag := tags[each - first], timeout_ms, now_ms)
            # If the producer chose the time, the tag does not say when it was stored.
            or (tag < 0 and store.store_time(queue, each) > now_ms)
        ]

    def _deal_with(self, queue: QueueIndex, offsets: list[int]) -> None:
        state, halves = self._state, self._halves
        self._state.writer.write_now()  # a write that fails must not drop clients' messages
        now_ms = state.batch.now_ms = state.clock.now_ms()
        for offset in offsets:
            checks = halves.state(offset)
            if checks is None or checks > MOST_CHECKS:
                continue  # it has just ended
            pieces = state.store.read(queue, offset, 1, 1).pieces
            half = RecordView(bytes(pieces[0]), 0) if pieces else None
            if half is None or half.queue_offset != offset:
                logger.error("half message is lost: offset=%d; transaction discarded", offset)
                halves.states.set(offset, DISCARDED)
            elif checks >= state.config.transaction_check_max or self._is_old(half, now_ms):
                self._discard(half, checks, now_ms)
            else:
                halves.checked(offset, checks + 1)
                self._ask(half, checks + 1)
        self._state.writer.write_now()

    def _is_old(self, half: RecordView, now_ms: int) -> bool:
        kept_ms = self._state.config.file_reserved_time * 3_600_000
        return now_ms - half.born_timestamp_ms > kept_ms

    def _discard(self, half: RecordView, checks: int, now_ms: int) -> None:
        state = self._state
        logger.error(
            "transaction unresolved: position=%d checks=%d; moving it to %s",
            half.commit_log_offset,
            checks,
            DISCARDED_HALF_TOPIC,
        )
        state.topics.create_for_group(DISCARDED_HALF_TOPIC, 1, now_ms=now_ms)
        save_changes(state)
        try:
            queue = self._halves.end(half, DISCARDED, rules.discarded(half, checks), now_ms)
        except StoreError as error:
            logger.error(  # noqa: TRY400 - the next round tries again
                "could not discard half message %d: error=%s; retrying", half.queue_offset, error
            )
        else:
            state.batch.appended(queue, 1, half.body_size)

    def _discard_before(self, position: int) -> None:
        """Discard what is still open in a log file to be deleted. Raises `StoreError`."""
        halves, queue = self._halves, self._halves.queue
        if queue is None or halves.states.first_open(queue.next_offset) == queue.next_offset:
            return
        self._state.writer.write_now()
        now_ms = self._state.clock.now_ms()
        for offset, checks in list(halves.states.open_from(queue.min_offset, queue.next_offset)):
            if (queue.position(offset) or 0) >= position:
                break
            for piece in self._state.store.read(queue, offset, 1, 1).pieces:
                half = RecordView(bytes(piece), 0)
                halves.end(half, DISCARDED, rules.discarded(half, checks), now_ms)
        self._state.store.sync_now()

    def _ask(self, half: RecordView, checks: int) -> None:
        request = rules.check_request(half, checks, self._state.config.broker_name)
        if request is None:
            logger.warning(
                "half message cannot be checked: offset=%d has no producer group or topic",
                half.queue_offset,
            )
            return
        group, frame = request
        connection = self._state.producers.available(group, self._allowed(half))
        if connection is None:
            if group not in self._absent:  # once a round, not for every transaction
                logger.warning(
                    "transaction check not sent, no producer is online: group=%s; "
                    "retrying in the next round",
                    group,
                )
            self._absent.add(group)
        elif connection.unsent < _CLOGGED:
            connection.write(frame)

    def _allowed(self, half: RecordView) -> Callable[[ClientPeer], bool] | None:
        """Return which producers may receive a half message: users that may send to its topic."""
        gate, place = self._state.gate, real_place(half.property_bytes)
        if gate is None or place is None:
            return None
        return partial(gate.may_send, topic=place[0])
