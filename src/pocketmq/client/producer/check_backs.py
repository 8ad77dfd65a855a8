"""Check-backs: brokers ask a producer group for the state of a transaction that has not ended.

A broker asks any producer of the group, again and again, until it gets COMMIT or ROLLBACK. So a
question that cannot be queued or answered now is dropped, and nothing is lost.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from pocketmq.balance.producer.transactions import branch_state, check_remark
from pocketmq.client.callbacks import LocalCalls
from pocketmq.client.producer import transactions
from pocketmq.client.producer.transactions import State, send_end
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError
from pocketmq.model import property_names
from pocketmq.model.message import DEFAULT_REGION
from pocketmq.model.names import unwrap_namespace
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.requests.sending import CheckTransactionStateRequest, EndTransactionRequest

logger = logging.getLogger("pocketmq.client")

TransactionCheck: TypeAlias = Callable[[ReceivedMessage], State | Awaitable[State]]
"""Called with the half message. Raising, or returning None, leaves the state unknown."""

AT_ONCE = 1
"""Java's pool has one thread, so that check functions need not be reentrant."""
MOST_WAITING = 2000
_TIMEOUT = 3.0


class _Question(msgspec.Struct, frozen=True):
    message: ReceivedMessage
    header: CheckTransactionStateRequest
    address: str

    @property
    def key(self) -> tuple[str, int]:
        return self.address, self.header.commit_log_offset


class CheckBacks:
    """Answers check-backs of one producer by the application's check function, one at a time.

    Belongs to one event loop. The queue is bounded, and a question that waits already is not queued
    twice: a broker repeats its questions as long as the check function is slow.
    """

    def __init__(
        self,
        session: Session,
        tasks: Tasks,
        group: str,
        check: TransactionCheck | None,
    ) -> None:
        self.on_end: transactions.TakeEnd | None = None
        """Called with each end that was sent."""
        self._session = session
        self._tasks = tasks
        self._group = group
        self._check = check
        self._states = transactions.ReturnedStates("check function")
        self._asked_in_vain = False
        self._calls = LocalCalls(f"pocketmq-check-{group}", AT_ONCE)
        self._waiting: deque[_Question] = deque()
        self._known: set[tuple[str, int]] = set()  # waiting, or being answered
        self._working = 0

    def take(
        self, message: ReceivedMessage, header: CheckTransactionStateRequest, address: str
    ) -> None:
        """Queue a question; the answer goes to the broker at `address`."""
        if self._check is None:
            logger.log(
                logging.DEBUG if self._asked_in_vain else logging.WARNING,
                "cannot answer a check-back: broker=%s group=%s, the producer has no check "
                "function; pass `check` to it",
                address,
                self._group,
            )
            self._asked_in_vain = True
            return
        question = _Question(message, header, address)
        if question.key in self._known:
            return
        if len(self._waiting) >= MOST_WAITING:
            logger.warning(
                "check-back queue is full: group=%s; dropping one, "
                "the broker will check back again",
                self._group,
            )
            return
        self._known.add(question.key)
        self._waiting.append(question)
        if self._working < AT_ONCE:
            self._working += 1
            self._tasks.spawn(self._work(self._check), f"transaction checks of {self._group}")

    def close(self) -> None:
        """Start no more checks."""
        self._waiting.clear()
        self._calls.close()

    async def _work(self, check: TransactionCheck) -> None:
        try:
            while self._waiting:
                question = self._waiting.popleft()
                try:
                    await self._answer(question, check)
                finally:
                    self._known.discard(question.key)
        finally:
            self._working -= 1

    async def _answer(self, question: _Question, check: TransactionCheck) -> None:
        namespace = self._session.options.namespace
        topic = unwrap_namespace(namespace, question.message.topic)
        message = question.message.with_topic(topic)
        outcome: State | Exception
        remark = None
        try:
            result = await self._calls.call(check, message)
            outcome, _ = self._states.read(result, message.message_id)
        except Exception as error:
            logger.exception(
                "check function of group %s failed: transaction=%s; its state is unknown",
                self._group,
                message.message_id,
            )
            outcome, remark = error, check_remark(error)
        state = branch_state(outcome)
        header = question.header
        request = EndTransactionRequest(
            topic=header.topic,
            producer_group=self._group,
            tran_state_table_offset=header.tran_state_table_offset,
            commit_log_offset=header.commit_log_offset,
            commit_or_rollback=int(state),
            from_transaction_check=True,
            msg_id=message.message_id,
            transaction_id=header.transaction_id,
            bname=header.bname,
        )
        try:
            await send_end(self._session, question.address, request, remark, timeout=_TIMEOUT)
        except MQError as error:
            logger.warning(
                "cannot answer a check-back: broker=%s transaction=%s error=%s; it will ask again",
                question.address,
                message.message_id,
                error,
            )
            return
        if self.on_end is not None:
            self.on_end(
                transactions.TransactionEnd(
                    group=unwrap_namespace(namespace, self._group),
                    topic=topic,
                    tag=message.tag,
                    keys=message.get_property(property_names.KEYS),
                    message_id=message.message_id,
                    transaction_id=message.transaction_id,
                    state=state,
                    address=question.address,
                    region=message.get_property(property_names.MSG_REGION) or DEFAULT_REGION,
                    from_check=True,
                )
            )
