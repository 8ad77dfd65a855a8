"""The broker's locks on an orderly consumer's queues: taken, renewed, released.

Which queues, and what an answer means, is `balance.consumer.locks`; `member` has the timer that
renews them (every 20 s). Belongs to one event loop. A lock is a lease at the queue's master (60 s),
by group and client id. While it lasts, no other member is granted the queue; a member that cannot
renew it stops handling before the lease ends (`CallSequence`), so that two never handle one queue
at the same time.
"""

import asyncio
import logging
from collections.abc import Iterable

from pocketmq.balance.consumer import locks
from pocketmq.balance.consumer.facts import OwnedQueue
from pocketmq.balance.consumer.instructions import Instruction, LockBatch, UnlockBatch
from pocketmq.client.group.held_queue import log_name
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue
from pocketmq.protocol import RequestCode, decode_body, encode_body
from pocketmq.protocol.requests import assignment

logger = logging.getLogger("pocketmq.client")

LOCK_TIMEOUT = 1.0


class BrokerLocks:
    """The locks of one group, at the masters; slaves have none."""

    def __init__(self, session: Session, group: str, tasks: Tasks) -> None:
        self._session = session
        self._holder = session.addresses.holder
        self._group = group
        self._tasks = tasks

    async def renew(self, owned: Iterable[OwnedQueue]) -> list[Instruction]:
        """Ask all brokers for the locks of all queues again, side by side; return what follows."""
        plan = locks.lock_plan(owned, self._holder)
        answers = await asyncio.gather(*(self.lock(batch) for batch in plan))
        return [
            step
            for batch, granted in zip(plan, answers, strict=True)
            for step in locks.after_lock_batch(batch, granted)
        ]

    async def unlock_all(self, owned: Iterable[OwnedQueue]) -> list[Instruction]:
        """Release all locks, waiting for the brokers; return what follows."""
        plan = locks.unlock_plan(owned, self._holder)
        answers = await asyncio.gather(*(self.unlock(batch) for batch in plan))
        return [
            step
            for batch, answered in zip(plan, answers, strict=True)
            for step in locks.after_unlock_batch(batch, answered=answered)
        ]

    async def lock(self, batch: LockBatch) -> frozenset[MessageQueue] | None:
        """Ask one broker for locks; return those granted, None if it did not answer."""
        body = assignment.LockQueues(
            consumer_group=self._group,
            client_id=self._session.client_id,
            mq_set=list(batch.queues),
        )
        try:
            answer = await self._session.brokers.call(
                batch.broker_name,
                RequestCode.LOCK_BATCH_MQ,
                assignment.LockQueuesRequest(bname=batch.broker_name),
                encode_body(body),
                timeout=LOCK_TIMEOUT,
                master_only=True,
            )
            return frozenset(decode_body(answer.body, assignment.LockedQueues).locked)
        except MQError as error:
            logger.warning(
                'locking queues failed: group=%s broker=%s error="%s"; retrying',
                self._group, batch.broker_name, error,
            )  # fmt: skip
            return None

    async def lock_one(self, queue: MessageQueue) -> bool:
        """Ask for one queue's lock; no answer is a refusal."""
        granted = await self.lock(LockBatch(self._holder(queue), (queue,)))
        return granted is not None and queue in granted

    async def unlock(self, batch: UnlockBatch) -> bool:
        """Release the locks of one broker; False if it did not answer."""
        try:
            await self._session.brokers.call(
                batch.broker_name,
                RequestCode.UNLOCK_BATCH_MQ,
                assignment.UnlockQueuesRequest(bname=batch.broker_name),
                self._unlocking(batch.queues),
                timeout=LOCK_TIMEOUT,
                master_only=True,
            )
        except MQError as error:
            logger.warning(
                'unlocking queues failed: group=%s broker=%s error="%s"; the locks expire in 60 s',
                self._group, batch.broker_name, error,
            )  # fmt: skip
            return False
        return True

    def unlock_later(self, queue: MessageQueue, after: float) -> None:
        """Release one lock one-way, in `after` seconds, or at once if the consumer stops."""
        self._tasks.spawn(self._unlock_one(queue, after), f"unlock {queue}")

    async def _unlock_one(self, queue: MessageQueue, after: float) -> None:
        try:
            if after:
                await asyncio.sleep(after)
        finally:
            await self._send_unlock(queue)

    async def _send_unlock(self, queue: MessageQueue) -> None:
        holder = self._holder(queue)
        try:
            await self._session.brokers.tell(
                holder,
                RequestCode.UNLOCK_BATCH_MQ,
                assignment.UnlockQueuesRequest(bname=holder),
                self._unlocking((queue,)),
                timeout=LOCK_TIMEOUT,
                master_only=True,
            )
        except MQError as error:
            logger.info(
                'unlocking a queue failed: group=%s %s error="%s"; the lock expires in 60 s',
                self._group, log_name(queue), error,
            )  # fmt: skip

    def _unlocking(self, queues: Iterable[MessageQueue]) -> bytes:
        return encode_body(
            assignment.UnlockQueues(
                consumer_group=self._group,
                client_id=self._session.client_id,
                mq_set=list(queues),
            )
        )
