"""The life of a broker's pops: recovery, redelivery of what was not acknowledged, saving.

One timer, set for the next message that is due or the next waiting pop that times out; without pops
there is none (see `alarm`). Belongs to the broker's loop.

A message that is not acknowledged in time is copied to the retry topic of group and topic, with one
more try on its count; after the last try of its group it goes to the dead-letter topic. (RocketMQ
leaves that to its clients, and redelivers for ever with those that do not.) The copy is stored
before the message counts as done, and names it, so that a crash between the two does not make a
second copy (see `journal_repair`).
"""

import asyncio
import logging
from collections.abc import Callable

from pocketmq.broker.core.alarm import RETRY_AFTER, Alarm
from pocketmq.broker.core.late_saving import LateSaving
from pocketmq.broker.core.log_origins import origin_of_popped
from pocketmq.broker.pop.in_flight import QueueInFlight, Taken
from pocketmq.broker.pop.pops import Pops
from pocketmq.broker.pop.recovery import recover, snapshot
from pocketmq.broker.pop.single_messages import single_messages
from pocketmq.broker.pop.table import LATEST_MS
from pocketmq.broker.retry.rules import PopOfFailed, retries_exhausted, retry_limit, retry_of_popped
from pocketmq.broker.saving import save_changes, submit_offsets
from pocketmq.broker.state import BrokerState
from pocketmq.broker.writing.appending import place
from pocketmq.broker.writing.drafts import Placed
from pocketmq.broker.writing.log_writer import CommitLogWriter
from pocketmq.errors import ServerError, StoreError
from pocketmq.model import GroupConfig
from pocketmq.model.names import dead_letter_topic
from pocketmq.protocol import RecordView
from pocketmq.protocol.handles import TopicMark
from pocketmq.protocol.property_text import decode_properties

logger = logging.getLogger("pocketmq.broker")

KIND = "pops"
_MESSAGES = 256
_SIZE = 1 << 20
"""Messages and bytes that are redelivered before clients are served again."""
_REFUSED_AFTER = 60.0
"""Seconds until a message is tried again whose copy the broker itself refuses."""
_ENTRIES = 100_000
_SAVE_AFTER = 30.0
"""Entries of the journal, and seconds, after which a new snapshot is saved."""

_QUEUES = 1


class PopLifecycle:
    """The pops of a running broker."""

    def __init__(
        self, state: BrokerState, writer: CommitLogWriter, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._state = state
        self._writer = writer
        self._loop = loop
        self._pops = Pops(state)
        self._saving = LateSaving(state, loop, kind=KIND, capture=self._capture)
        self._alarm = Alarm("redelivery of popped messages", self._run, loop)
        self._open = False
        self._save_timer: asyncio.TimerHandle | None = None
        self._unsaved = 0  # entries of the journal
        self._set_for_ms = LATEST_MS  # the earliest deadline that the alarm was set for

    def start(self) -> None:
        """Recover what was in flight when the broker stopped, and serve pops from now on."""
        state, pops = self._state, self._pops
        documents = dict(state.store.metadata.documents(KIND))
        now_ms = state.clock.now_ms()
        out = recover(
            pops.table.all_in_flight, pops.journal, state.store, documents.get(KIND), now_ms
        )
        state.batch.notes += 1  # recovery may have added entries to the journal
        if out:
            logger.info("recovered popped messages in flight: count=%d", out)
            self._saving.changed()
        pops.wake_by = self._alarm.wake_by
        pops.sealed = self._sealed
        state.pops = pops
        self._open = True
        self._set_alarm()

    async def stop(self) -> None:
        """Redeliver nothing any more, and save; call before the store is closed."""
        self._open = False
        self._alarm.stop()
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None
        if self._unsaved:
            self._saving.changed()
        await self._saving.stop()

    # The timer

    def _set_alarm(self) -> None:
        self._alarm.wake_by(self._pops.waiting.wake_at)
        due_ms = self._pops.table.deadlines.next_ms
        self._set_for_ms = LATEST_MS if due_ms is None else due_ms
        if due_ms is not None:
            self._alarm.wake_at(due_ms, self._state.clock.now_ms())

    def _run(self) -> None:
        self._state.batch.now_ms = self._state.clock.now_ms()
        self._pops.serve_due()
        self._bring_back()
        self._set_alarm()

    def _bring_back(self) -> None:
        """Redeliver a part of what is due, and serve pops that wait for a locked queue.

        `take_due` removes deadlines: every pop that still has messages in flight must get a new
        one, whatever happens to it or to another. Without one its messages would be neither in
        the queue nor redelivered until the broker restarts.
        """
        table, writer, batch = self._pops.table, self._writer, self._state.batch
        due_ms = table.deadlines.next_ms
        if due_ms is None or due_ms > batch.now_ms:
            return
        # First write what requests have appended: if the store refuses the copies below, that
        # must not fail other clients' messages.
        writer.write_now()
        messages, size, later_ms = _MESSAGES, _SIZE, batch.now_ms
        soon_ms = batch.now_ms + int(RETRY_AFTER * 1000)
        for due in table.deadlines.take_due(batch.now_ms):
            if not isinstance(due, Taken):
                self._pops.unlocked(due.topic, due.group, due.queue_id)
                continue
            next_ms = later_ms
            if messages > 0 and size > 0:
                messages -= due.left
                next_ms = batch.now_ms + int(_REFUSED_AFTER * 1000)
                try:
                    size -= revive(self._state, self._pops, due, _MESSAGES)
                except StoreError as error:
                    logger.error(  # noqa: TRY400 - the store's state, not a fault of the code
                        "redelivery of unacknowledged messages failed: %s; retrying in %g s",
                        error, RETRY_AFTER,
                    )  # fmt: skip
                    batch.check_dropped()
                    messages, next_ms, later_ms = 0, soon_ms, soon_ms
                except Exception:  # an edge: one pop must not cost the others their deadlines
                    in_flight = due.in_flight
                    logger.exception(
                        "redelivery failed: group=%s topic=%s queue=%d; retrying in %g s",
                        in_flight.group, in_flight.topic, in_flight.queue_id, RETRY_AFTER,
                    )  # fmt: skip
                    next_ms = soon_ms
            if due.left:
                table.deadlines.add(due, next_ms)
        writer.write_now()  # writes the copies, and wakes pops that wait for them

    # Saving

    def _sealed(self, entries: int) -> None:
        before, self._unsaved = self._unsaved, self._unsaved + entries
        if not before and entries and self._open:
            self._set_timer_for_saving()
        elif before < _ENTRIES <= self._unsaved:
            self._saving.changed()
        due_ms = self._pops.table.deadlines.next_ms
        if due_ms is not None and (due_ms < self._set_for_ms or not self._alarm.is_set):
            self._set_for_ms = due_ms
            self._alarm.wake_at(due_ms, self._state.batch.now_ms)

    def _set_timer_for_saving(self) -> None:
        if self._save_timer is not None:
            self._save_timer.cancel()
        self._save_timer = self._loop.call_later(_SAVE_AFTER, self._saving.changed)

    def _capture(self) -> Callable[[], bytes]:
        """Capture a snapshot. Offsets are submitted before it: recovery relies on that order."""
        self._unsaved = 0
        submit_offsets(self._state)
        return snapshot(self._pops.table.all_in_flight, self._pops.journal)


def revive(state: BrokerState, pops: Pops, taken: Taken, most: int) -> int:
    """Redeliver the messages of a pop that are still in flight, at most `most`; return their bytes.

    A message whose copy is refused stays in flight, and so do the others if the store fails, which
    raises `StoreError`.
    """
    in_flight, size = taken.in_flight, 0
    group = state.groups.get(in_flight.group)
    # Reading writes what was appended. Copies must be written together with the journal's entry
    # that they were made: seal first, or a crash would redeliver their messages a second time.
    pops.seal()
    records = [(offset, _record(state, in_flight, offset)) for offset in taken.out()[:most]]
    for offset, failed in records:
        if group is not None and failed is not None:
            size += failed.store_size
            try:
                copy = _send_again(state, pops, in_flight, failed, group, taken.pop_time_ms)
            except ServerError as error:
                logger.error(  # noqa: TRY400 - a refusal, not a fault of the code
                    "redelivery refused: group=%s topic=%s queue=%d offset=%d: %s; "
                    "retrying in %g s",
                    in_flight.group, in_flight.topic, in_flight.queue_id, offset, error.remark,
                    _REFUSED_AFTER,
                )  # fmt: skip
                continue
            pops.table.copied(taken, offset, copy.position)
        else:
            place_of = in_flight.topic, in_flight.group, in_flight.queue_id
            pops.table.settle(*place_of, taken.pop_time_ms, [offset])
        state.batch.notes += 1
    return size


def _record(state: BrokerState, in_flight: QueueInFlight, offset: int) -> RecordView | None:
    """Return a popped message; None if retention has deleted it."""
    queue = state.store.queue(in_flight.topic, in_flight.queue_id)
    read = single_messages(state.store.read(queue, offset, 1, 1), offset, 1, 1)
    found = RecordView(bytes(read.pieces[0]), 0) if read.pieces else None
    if found is None or found.queue_offset != offset:
        logger.warning(
            "popped message no longer in the log, not redelivered: "
            "group=%s topic=%s queue=%d offset=%d",
            in_flight.group, in_flight.topic, in_flight.queue_id, offset,
        )  # fmt: skip
        return None
    return found


def _send_again(  # noqa: PLR0917 - one step of bringing a message back
    state: BrokerState,
    pops: Pops,
    in_flight: QueueInFlight,
    failed: RecordView,
    group: GroupConfig,
    pop_time_ms: int,
) -> Placed:
    exhausted = retries_exhausted(failed.reconsume_times, retry_limit(group))
    topic = dead_letter_topic(in_flight.group) if exhausted else retry_topic_of(state, in_flight)
    if topic not in state.topics:
        made = state.topics.create_for_group(topic, _QUEUES, now_ms=state.batch.now_ms)
        if made is None:
            logger.error("topic limit reached, cannot create topic %s; delete unused topics", topic)
        save_changes(state)
        if not exhausted and state.offsets.query(in_flight.group, topic, 0) is None:
            state.offsets.commit(in_flight.group, topic, 0, 0)
        pops.topics_changed()
    if state.measures is not None and not exhausted:
        state.measures.revived.add((first_topic(in_flight), in_flight.group))
    pop = PopOfFailed(in_flight.group, first_topic(in_flight), pop_time_ms)
    draft = retry_of_popped(failed, topic, pop, exhausted=exhausted)
    queue = state.store.queue(in_flight.topic, in_flight.queue_id)
    found = None if queue is None else state.store.place_of(queue, failed.queue_offset)
    origin = failed.commit_log_offset if found is None else found
    draft.prepared_transaction_offset = origin_of_popped(origin)
    try:
        return place(state, draft, ())
    except ServerError:  # the properties are too long with those of a retry
        draft.properties = decode_properties(failed.property_bytes)
        return place(state, draft, ())


def retry_topic_of(state: BrokerState, in_flight: QueueInFlight) -> str:
    """Return where a message goes that was popped from this queue; retries stay where they are."""
    if TopicMark.of(in_flight.topic) is not TopicMark.NORMAL:
        return in_flight.topic
    mark = TopicMark.RETRY_V2 if state.config.enable_retry_topic_v2 else TopicMark.RETRY
    return mark.real_topic(in_flight.topic, in_flight.group)


def first_topic(in_flight: QueueInFlight) -> str:
    """Return the topic a message was first popped from."""
    mark = TopicMark.of(in_flight.topic)
    return in_flight.topic.removeprefix(mark.real_topic("", in_flight.group))
