"""The broker's locks on an orderly consumer's queues: asked for, renewed, given back.

Which queues, and what an answer means, is `balance.consumer.locks`; this room asks and tells.
Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Iterable

from pocketmq.balance.consumer.instructions import LockBatch, UnlockBatch
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.bodies.locks import LockedQueues, LockQueues, UnlockQueues
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.json_values import decode_body, encode_body
from pocketmq.protocol.requests.membership import LockQueuesRequest, UnlockQueuesRequest

logger = logging.getLogger("pocketmq.client")

LOCK_TIMEOUT = 1.0


class BrokerLocks:
    """Talks to masters about the locks of one group; slaves have none."""

    def __init__(self, session: Session, group: str, tasks: Tasks) -> None:
        self._session = session
        self._group = group
        self._tasks = tasks

    async def lock(self, batch: LockBatch) -> frozenset[MessageQueue] | None:
        """Ask one broker for locks; gives those granted, None if it did not answer."""
        body = LockQueues(
            consumer_group=self._group,
            client_id=self._session.client_id,
            mq_set=list(batch.queues),
        )
        try:
            answer = await self._session.brokers.call(
                batch.broker_name,
                RequestCode.LOCK_BATCH_MQ,
                LockQueuesRequest(bname=batch.broker_name),
                encode_body(body),
                timeout=LOCK_TIMEOUT,
                master_only=True,
            )
            return frozenset(decode_body(answer.body, LockedQueues).locked)
        except MQError as error:
            logger.warning(
                "group %s: no locks from broker %s: %s", self._group, batch.broker_name, error
            )
            return None

    async def lock_one(self, queue: MessageQueue) -> bool:
        """Ask for one queue's lock; no answer is a refusal."""
        granted = await self.lock(LockBatch(queue.broker_name, (queue,)))
        return granted is not None and queue in granted

    async def unlock(self, batch: UnlockBatch) -> bool:
        """Give one broker its locks back; False if it did not answer."""
        try:
            await self._session.brokers.call(
                batch.broker_name,
                RequestCode.UNLOCK_BATCH_MQ,
                UnlockQueuesRequest(bname=batch.broker_name),
                self._unlocking(batch.queues),
                timeout=LOCK_TIMEOUT,
                master_only=True,
            )
        except MQError as error:
            logger.warning(
                "group %s: locks of broker %s run out by themselves: %s",
                self._group, batch.broker_name, error,
            )  # fmt: skip
            return False
        return True

    def unlock_later(self, queue: MessageQueue, after: float) -> None:
        """Give one lock back one-way, in `after` seconds; a consumer that stops does so at once."""
        self._tasks.spawn(self._unlock_one(queue, after), f"unlock {queue}")

    async def _unlock_one(self, queue: MessageQueue, after: float) -> None:
        try:
            if after:
                await asyncio.sleep(after)
        finally:
            await self._tell(queue)

    async def _tell(self, queue: MessageQueue) -> None:
        try:
            await self._session.brokers.tell(
                queue.broker_name,
                RequestCode.UNLOCK_BATCH_MQ,
                UnlockQueuesRequest(bname=queue.broker_name),
                self._unlocking((queue,)),
                timeout=LOCK_TIMEOUT,
                master_only=True,
            )
        except MQError as error:
            logger.info("group %s: the lock of %s runs out: %s", self._group, queue, error)

    def _unlocking(self, queues: Iterable[MessageQueue]) -> bytes:
        return encode_body(
            UnlockQueues(
                consumer_group=self._group,
                client_id=self._session.client_id,
                mq_set=list(queues),
            )
        )
