"""The bus: what members of a group tell each other, over queue 0 of a topic on each broker.

A broker's bus carries what concerns its queues. It is sent to without a producer's registration and
pulled with a subscription in each request: brokers keep no trace of it but the messages, and
`consumerProgress` does not show it. It serves speed, never safety, so nothing depends on a message
being heard. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress

from pocketmq.balance.consumer.pulling import PULL_TIMEOUT, PullStatus
from pocketmq.balance.handover.messages import BUS_TOPIC, Notice, read_notice, write_notice
from pocketmq.client.group.handover.ages import NoticeAges
from pocketmq.client.questions.pulling import PulledRecords, PullSpec, pull_once
from pocketmq.client.session import Session, ask_session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MessagesCutShort, MQError, RouteNotFound, TopicNotFound
from pocketmq.model import MessageQueue, PullFlag, property_names
from pocketmq.model.names import AUTO_CREATE_TOPIC, INNER_PRODUCER_GROUP
from pocketmq.protocol import DeliveryContext, ReceivedMessage, RequestCode
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.requests import sending, topics

logger = logging.getLogger("pocketmq.client")

HeardNotice = Callable[[str, Notice, float], None]
"""Takes the broker's name, what was heard, and its age in seconds."""

_READ_WRITE = 6
_SUSPEND = 15.0
_CATCH_UP = 3.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_MOST_BAD = 256
"""Senders of malformed notices that are remembered, so that each is logged once."""


def bus_queue(broker: str) -> MessageQueue:
    """Return the queue that is a broker's bus."""
    return MessageQueue(BUS_TOPIC, broker, 0)


def bus_tag(group: str) -> str:
    """Return the tag of a group's messages; `||` in a name would be read as an expression."""
    return group.replace("|", "!")


async def open_topic(session: Session, broker: str, *, missing: bool = False) -> None:
    """Create the topic on a broker that does not have it.

    With `missing` that is known, whatever its route says. Raises the `ServerError` of a
    refusal, and other `MQError`s if the broker cannot be asked.
    """
    try:
        known = await session.routes.refresh(BUS_TOPIC)
    except RouteNotFound:
        brokers = set[str]()
    else:
        brokers = {data.broker_name for data in known.route.queue_datas}
    if missing or broker not in brokers:
        header = topics.CreateTopicRequest(
            topic=BUS_TOPIC,
            default_topic=AUTO_CREATE_TOPIC,
            read_queue_nums=1,
            write_queue_nums=1,
            perm=_READ_WRITE,
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=0,
            order=False,
        )
        code = RequestCode.UPDATE_AND_CREATE_TOPIC
        await session.brokers.call(broker, code, header, master_only=True)


async def say(session: Session, group: str, broker: str, body: bytes) -> None:
    """Send the body of a notice. Raises `MQError`."""
    wire = {property_names.TAGS: bus_tag(group), property_names.WAIT: "false"}
    header = sending.SendRequestV2(
        producer_group=INNER_PRODUCER_GROUP,
        topic=BUS_TOPIC,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=1,
        queue_id=0,
        sys_flag=0,
        born_timestamp=session.clock.now_ms(),
        flag=0,
        properties=encode_properties(wire).decode(),
        reconsume_times=0,
        unit_mode=False,
        batch=False,
        bname=broker,
    )
    code = RequestCode.SEND_MESSAGE_V2
    await session.brokers.call(broker, code, header, body, master_only=True)


async def end_of_bus(session: Session, group: str, broker: str) -> int:
    """Return the offset of the next notice. Raises `MQError`.

    Every answer to a pull tells it, and the right to pull is needed anyway; the question for a
    queue's end needs another one.
    """
    return (await pull(session, group, broker, 0, 0.0)).max_offset


async def pull(
    session: Session, group: str, broker: str, offset: int, wait: float
) -> PulledRecords:
    """Pull a group's notices; the broker may hold the request for `wait` seconds.

    Raises `MQError`.
    """
    flags = PullFlag.SUBSCRIPTION | PullFlag.SUSPEND if wait else PullFlag.SUBSCRIPTION
    wanted = PullSpec(
        group, count=32, expression=bus_tag(group), expression_type="TAG", flags=flags, suspend=wait
    )
    question = pull_once(bus_queue(broker), offset, wanted, newest=True, timeout=PULL_TIMEOUT)
    return await ask_session(session, question, master_only=True)


class Bus:
    """The buses of one member: one listening task for each broker."""

    def __init__(self, session: Session, group: str, tasks: Tasks, heard: HeardNotice) -> None:
        self._session = session
        self._group = group
        self._tasks = tasks
        self._heard = heard
        self._ages = NoticeAges(asyncio.get_running_loop().time)
        self._listening: dict[str, asyncio.Task[None]] = {}
        self._ready: dict[str, asyncio.Event] = {}
        self._next: dict[str, int] = {}
        """Offset of the first notice on each bus that was not heard yet."""
        self._failing: set[str] = set()
        self._bad: set[str] = set()

    def listen(self, brokers: frozenset[str]) -> None:
        """Listen to the buses of these brokers, and to no others."""
        for broker in self._listening.keys() - brokers:
            self._listening.pop(broker).cancel()
            del self._ready[broker]
            self._next.pop(broker, None)
            self._ages.forget(broker)
        for broker in brokers - self._listening.keys():
            self._ready[broker] = asyncio.Event()
            self._listening[broker] = self._tasks.spawn(self._listen(broker), f"bus of {broker}")

    async def until_listening(self, patience: float) -> None:
        """Wait until every bus is listened to, but not longer than `patience`."""
        waits = [asyncio.ensure_future(ready.wait()) for ready in self._ready.values()]
        if waits:
            _, late = await asyncio.wait(waits, timeout=patience)
            for wait in late:
                wait.cancel()

    async def catch_up(self, brokers: Collection[str]) -> None:
        """Hear all that is on these buses by now; no bus is waited for longer than 3 seconds.

        Held pulls are answered in the broker's own time. Java's forget one for up to 5 seconds if
        a notice comes just while it is put aside.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_CATCH_UP):
                await asyncio.gather(*(self._catch_up(broker) for broker in brokers))

    async def _catch_up(self, broker: str) -> None:
        end: int | None = None
        try:
            while (asked := self._next.get(broker)) is not None and (end is None or asked < end):
                pulled = await pull(self._session, self._group, broker, asked, 0.0)
                end = pulled.max_offset if end is None else end
                if self._next.get(broker) != asked:
                    continue  # the listening task was quicker
                if pulled.next_offset <= asked:
                    return
                self._hear(broker, pulled, asked)
        except MQError as error:
            self._fails(broker, "pull", error)

    def tell(self, broker: str, notice: Notice) -> None:
        """Send a notice without waiting."""
        self._tasks.spawn(self._say(broker, notice), f"notice to {broker}")

    async def _say(self, broker: str, notice: Notice) -> None:
        body = write_notice(notice)
        self._ages.sent(broker, body)
        try:
            await say(self._session, self._group, broker, body)
        except MQError as error:
            self._fails(broker, "send", error)
        else:
            self._works(broker)

    async def _listen(self, broker: str) -> None:
        pause, offset, missing = _FIRST_PAUSE, -1, False
        while True:
            try:
                if offset < 0:
                    await open_topic(self._session, broker, missing=missing)
                    offset = await end_of_bus(self._session, self._group, broker)
                    self._next[broker] = offset
                    self._ready[broker].set()
                asked = offset
                pulled = await pull(self._session, self._group, broker, asked, _SUSPEND)
            except MQError as error:
                missing = isinstance(error, TopicNotFound)
                if missing:  # deleted: made again, or no member would be heard again
                    offset = -1
                self._fails(broker, "pull", error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            self._works(broker)
            pause = _FIRST_PAUSE
            if pulled.status is PullStatus.OFFSET_ILLEGAL:
                # What is stored below was heard, or is old.
                offset = self._next[broker] = pulled.max_offset
                await asyncio.sleep(_FIRST_PAUSE)
                continue
            self._hear(broker, pulled, asked)
            offset = self._next[broker]
            if pulled.status is not PullStatus.FOUND and offset == asked:
                # Not at once: a broker that holds no pulls would be asked without end.
                await asyncio.sleep(0 if pulled.status is PullStatus.NO_NEW_MSG else _FIRST_PAUSE)

    def _hear(self, broker: str, pulled: PulledRecords, asked: int) -> None:
        """Hear what a pull brought, but for what another one has brought already."""
        first, following = self._next[broker], pulled.next_offset
        self._next[broker] = following if first == asked else max(first, following)
        if pulled.status is PullStatus.FOUND:
            self._take(broker, pulled.records, first)

    def _take(self, broker: str, records: bytes, first: int) -> None:
        try:
            messages = decode_pulled(records, DeliveryContext(broker_name=broker, queue_id=0))
        except MessagesCutShort as error:
            messages = error.decoded
            self._skip(broker, f"at offset {first}", str(error))
        except MQError as error:
            self._skip(broker, f"at offset {first}", str(error))
            return
        for message in messages:
            if message.queue_offset < first:
                continue
            try:
                self._read(broker, message)
            except MQError as error:  # anybody may write a body that cannot be inflated
                self._skip(broker, f"from {message.born_host}", str(error))
            except Exception:
                logger.exception(
                    "handling a hand-over notice failed: group=%s broker=%s; ignored",
                    self._group, broker,
                )  # fmt: skip

    def _read(self, broker: str, message: ReceivedMessage) -> None:
        if message.tag != bus_tag(self._group):
            return
        body = message.body
        age = self._ages.heard(broker, body, message.store_timestamp)
        notice = read_notice(body)
        if notice is None:
            self._skip(broker, f"from {message.born_host}", "not a notice")
        else:
            self._heard(broker, notice, age)

    def _skip(self, broker: str, sender: str, why: str) -> None:
        if sender not in self._bad and len(self._bad) < _MOST_BAD:
            self._bad.add(sender)
            logger.warning(
                'malformed hand-over notice ignored: topic=%s group=%s broker=%s sender="%s" '
                'error="%s"',
                BUS_TOPIC, self._group, broker, sender, why,
            )  # fmt: skip

    def _fails(self, broker: str, operation: str, error: MQError) -> None:
        log = logger.debug if broker in self._failing else logger.warning
        self._failing.add(broker)
        log(
            "hand-over topic unavailable: topic=%s operation=%s group=%s broker=%s "
            'error="%s"; new members get queues of other members when it works again',
            BUS_TOPIC, operation, self._group, broker, error,
        )  # fmt: skip

    def _works(self, broker: str) -> None:
        if broker in self._failing:
            self._failing.discard(broker)
            logger.info(
                "hand-over topic works again: topic=%s group=%s broker=%s",
                BUS_TOPIC, self._group, broker,
            )  # fmt: skip
