"""Run and tail locks at the queues' masters: many instructions, few requests.

A queue's tail lock is that of a queue number that no topic has. Locks are taken under the name of
the retry topic: a lock under the group itself makes brokers of 5.x treat the retries of concurrent
consumers as those of orderly ones. Orderly consumers do use the group, which keeps Java's orderly
members out. Belongs to one event loop.
"""

import logging
from collections.abc import Collection, Iterable

from pocketmq.balance.handover.events import Part
from pocketmq.balance.handover.instructions import Lock, Renew, Unlock
from pocketmq.client.session import Session
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue
from pocketmq.model.names import retry_topic
from pocketmq.protocol import RequestCode, decode_body, encode_body
from pocketmq.protocol.requests import assignment

logger = logging.getLogger("pocketmq.client")

LOCK_TIMEOUT = 3.0
TAIL_BIT = 1 << 30

Named = tuple[MessageQueue, Part]


class LockRequest:
    """Locks of one broker that are asked for, or released, in one owner's name."""

    __slots__ = ("broker", "owner", "steps")

    def __init__(self, broker: str, owner: str | None) -> None:
        self.broker = broker
        self.owner = owner
        """None: ask for the locks, in the member's own name."""
        self.steps: list[Lock | Unlock] = []

    @property
    def locks(self) -> list[Named]:
        """What the request is about."""
        return [(step.queue, part) for step in self.steps for part in step.parts]


def lock_requests(steps: Iterable[Lock | Unlock]) -> list[LockRequest]:
    """Gather instructions into requests, in an order in which each queue's own is kept."""
    requests: list[LockRequest] = []
    last: dict[MessageQueue, int] = {}  # the request with a queue's last instruction
    for step in steps:
        broker = step.queue.broker_name
        owner = step.owner if isinstance(step, Unlock) else None
        at = last.get(step.queue, -1) + 1
        while at < len(requests) and (requests[at].broker, requests[at].owner) != (broker, owner):
            at += 1
        if at == len(requests):
            requests.append(LockRequest(broker, owner))
        requests[at].steps.append(step)
        last[step.queue] = at
    return requests


class HandoverLocks:
    """The locks of one group, in the name of this member or of one that is gone."""

    def __init__(self, session: Session, group: str, owner: str, *, orderly: bool) -> None:
        self._session = session
        self._group = group
        self._lock_group = group if orderly else retry_topic(group)
        self._owner = owner

    async def lock(self, broker: str, locks: Collection[Named]) -> frozenset[Named] | None:
        """Ask for locks, or for the same again; return those granted, None without an answer."""
        asked = {_numbered(queue, part): (queue, part) for queue, part in locks}
        body = assignment.LockQueues(
            consumer_group=self._lock_group, client_id=self._owner, mq_set=list(asked)
        )
        try:
            answer = await self._session.brokers.call(
                broker,
                RequestCode.LOCK_BATCH_MQ,
                assignment.LockQueuesRequest(bname=broker),
                encode_body(body),
                timeout=LOCK_TIMEOUT,
                master_only=True,
            )
            granted = decode_body(answer.body, assignment.LockedQueues).locked
        except MQError as error:
            logger.info(
                'queue locks not granted: group=%s broker=%s error="%s"; retrying',
                self._group, broker, error,
            )  # fmt: skip
            return None
        return frozenset(asked[queue] for queue in granted if queue in asked)

    async def renew(self, step: Renew) -> frozenset[Named] | None:
        """Ask for all locks at a broker again; return as `lock` does."""
        return await self.lock(step.broker, step.locks)

    async def unlock(self, broker: str, owner: str, locks: Collection[Named]) -> bool:
        """Release locks in an owner's name; False without an answer."""
        queues = [_numbered(queue, part) for queue, part in locks]
        body = assignment.UnlockQueues(
            consumer_group=self._lock_group, client_id=owner, mq_set=queues
        )
        try:
            await self._session.brokers.call(
                broker,
                RequestCode.UNLOCK_BATCH_MQ,
                assignment.UnlockQueuesRequest(bname=broker),
                encode_body(body),
                timeout=LOCK_TIMEOUT,
                master_only=True,
            )
        except MQError as error:
            logger.info(
                'queue locks not released: group=%s broker=%s error="%s"; they expire in 60 s',
                self._group, broker, error,
            )  # fmt: skip
            return False
        return True


def _numbered(queue: MessageQueue, part: Part) -> MessageQueue:
    if part is Part.RUN:
        return queue
    return MessageQueue(queue.topic, queue.broker_name, queue.queue_id | TAIL_BIT)
