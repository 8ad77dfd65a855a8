"""A producer for pipelines: batches that are encoded already, half messages that end elsewhere.

What a pipeline makes by the ten thousand never becomes a `Message` here. A half message can be
ended by any process that has its `HalfMessage`. Independent of pipelines.
"""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Self

import msgspec

from pocketmq.balance.producer.transactions import half_properties
from pocketmq.blocking.producer import Producer
from pocketmq.client.producer.choices import choice_of
from pocketmq.client.producer.preparing import unique_ids
from pocketmq.client.producer.requests import Outgoing
from pocketmq.errors import MQError, ResponseCode
from pocketmq.model import Message, MessageQueue, SendReceipt, TransactionState, property_names
from pocketmq.model.names import wrap_namespace
from pocketmq.net import Connection
from pocketmq.protocol import RequestCode
from pocketmq.protocol.message_ids import UniqueIds, parse_offset_id
from pocketmq.protocol.peers import Language
from pocketmq.protocol.requests.sending import EndTransactionRequest

ID_DIGITS = 4
"""Last digits of an id that count; those before are the same for all of a range."""
AT_ONCE = 512
"""Ends of half messages in flight at once."""

_SEND_BATCH = int(RequestCode.SEND_BATCH_MESSAGE)
_END = int(RequestCode.END_TRANSACTION)
_SUCCESS = int(ResponseCode.SUCCESS)


class IdRange(msgspec.Struct, frozen=True):
    """Unique ids: `prefix` and, in four hexadecimal digits, `first` and those after it.

    FFFF is followed by 0000.
    """

    prefix: str
    first: int


class HalfMessage(msgspec.Struct, frozen=True, array_like=True):
    """The position of a half message, as far as it is needed to end it."""

    broker: str
    topic: str
    queue_offset: int
    commit_log_offset: int
    message_id: str

    @classmethod
    def of(cls, receipt: SendReceipt) -> Self:
        """Return that of a receipt; raises `InvalidInput` if the broker's id is invalid."""
        place = parse_offset_id(receipt.offset_message_id or "")
        queue = receipt.queue
        return cls(
            queue.broker_name,
            queue.topic,
            receipt.queue_offset,
            place.commit_log_offset,
            receipt.message_id,
        )


class RecordSender(Producer):
    """A blocking producer that also sends what is encoded already. Threads may share it."""

    # Of its own: these ids are counted in strides, those of single messages one by one.
    _ids: UniqueIds

    def start(self) -> Self:
        """Make ready to send; does nothing if it is running."""
        super().start()
        if not hasattr(self, "_ids"):
            self._ids = unique_ids(self._client.session, f"{self.options.group} records")
            self._taking = threading.Lock()
            self._taken = 0
            self._end_once: dict[str, bool] = {}  # by broker
        return self

    def take_ids(self, amount: int) -> IdRange:
        """Return ids for `amount` messages, at most 65536, that are sent now."""
        with self._taking:
            first, self._taken = self._taken, self._taken + amount & 0xFFFF
        newest = self._ids.next_ids(self._client.session.clock.now_ms(), 1)[0]
        return IdRange(newest[:-ID_DIGITS], first)

    def send_packed(
        self,
        topic: str,
        body: bytes,
        *,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
    ) -> SendReceipt:
        """Send a batch whose body is encoded as `protocol.batch` has it; raises as `send` does."""
        sending = self._running().sending
        preparing = sending.preparing
        batch_id = preparing.ids.next_id(preparing.clock.now_ms())
        stands_for_all = Message(topic, body)
        outgoing = Outgoing(
            preparing.wire_topic(topic),
            body,
            preparing.batch_properties(batch_id),
            batch_id,
            code=_SEND_BATCH,
            messages=(stands_for_all,),
            batch_id=batch_id,
            for_5x=True,
        )
        choice = choice_of(stands_for_all, queue, None, None, sending.namespace)
        return sending.deliver(outgoing, choice, timeout=timeout)

    def submit_half(
        self,
        message: Message,
        message_id: str,
        *,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
    ) -> Future[SendReceipt]:
        """Start to send a half message; return a future of its receipt. Raises as `submit` does.

        No consumer receives it until it is committed. An error whose `outcome_unknown` is true may
        have left a half message with this id.
        """
        parts = self._running()
        sending = parts.sending
        extra = half_properties({property_names.UNIQUE_KEY: message_id}, self._client.sending.group)
        choice = choice_of(message, queue, None, None, sending.namespace)
        outgoing = sending.preparing.prepare(message, extra)
        return parts.submitting.submit(outgoing, choice, timeout)

    def half(self, receipt: SendReceipt) -> HalfMessage:
        """Return the position of a half message; raises `InvalidInput` as `HalfMessage.of` does."""
        session, queue = self._client.session, receipt.queue
        topic = wrap_namespace(session.options.namespace, queue.topic)
        broker = session.addresses.holder(MessageQueue(topic, queue.broker_name, queue.queue_id))
        return msgspec.structs.replace(HalfMessage.of(receipt), broker=broker)

    def ends_once(self, half: HalfMessage, timeout: float = 5.0) -> bool:
        """Return whether ending a half message is idempotent, at any time and for any process.

        It is for our brokers. Java's do not remember what has ended: ending a half message that
        they have begun to check back on makes them commit it twice.
        """
        known = self._end_once.get(half.broker)
        if known is None:
            try:
                known = self._call(self._is_ours(half, timeout))
            except MQError:
                return False
            self._end_once[half.broker] = known
        return known

    async def _is_ours(self, half: HalfMessage, timeout: float) -> bool:  # noqa: ASYNC109 - for each question
        """Return whether the language in a broker's response, whatever it says, is Python."""
        connection = await self._connect(half.broker, (half.topic,), timeout)
        request = self._client.session.calls.request(int(RequestCode.GET_BROKER_RUNTIME_INFO))
        answer = await connection.request(request, timeout)
        return answer.language is Language.PYTHON

    def end_halves(
        self, halves: Sequence[HalfMessage], state: TransactionState, timeout: float = 30.0
    ) -> int:
        """End half messages, in their order, and return the number of acknowledged ends.

        Brokers check back on the others later, or have received their ends already.
        """
        return self._call(self._end_halves(halves, state, timeout))

    async def _end_halves(
        self,
        halves: Sequence[HalfMessage],
        state: TransactionState,
        timeout: float,  # noqa: ASYNC109 - for each question
    ) -> int:
        done = 0
        by_broker: dict[str, list[HalfMessage]] = {}
        for half in halves:
            by_broker.setdefault(half.broker, []).append(half)
        for broker, here in by_broker.items():
            for start in range(0, len(here), AT_ONCE):
                some = here[start : start + AT_ONCE]
                try:
                    connection = await self._connect(broker, {half.topic for half in some}, timeout)
                except MQError:
                    break
                done += await self._end_some(connection, some, state, timeout)
        return done

    async def _connect(
        self,
        broker: str,
        topics: Iterable[str],
        timeout: float,  # noqa: ASYNC109 - for each question
    ) -> Connection:
        for topic in topics:  # their routes have the broker's address
            await self._client.queues(topic, timeout)
        session = self._client.session
        address = session.brokers.address(broker, master_only=True)
        return await session.calls.dialer.connect(address, timeout)

    async def _end_some(
        self,
        connection: Connection,
        halves: Sequence[HalfMessage],
        state: TransactionState,
        timeout: float,  # noqa: ASYNC109 - one timer serves all requests
    ) -> int:
        session = self._client.session
        answers = []
        for half in halves:
            if connection.closed:
                break
            request = EndTransactionRequest(
                topic=wrap_namespace(session.options.namespace, half.topic),
                producer_group=self._client.sending.group,
                tran_state_table_offset=half.queue_offset,
                commit_log_offset=half.commit_log_offset,
                commit_or_rollback=int(state),
                msg_id=half.message_id,
                transaction_id=half.message_id,
                bname=half.broker,
            )
            opaque, answer = connection.expect(_END, timeout)
            command = session.calls.request(_END, request)
            connection.post(opaque, msgspec.structs.replace(command, opaque=opaque).encode())
            answers.append(answer)
        done = 0
        for outcome in await asyncio.gather(*answers, return_exceptions=True):
            if isinstance(outcome, Exception) and not isinstance(outcome, MQError):
                raise outcome
            done += not isinstance(outcome, BaseException) and outcome.code == _SUCCESS
        return done
