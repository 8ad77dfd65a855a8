"""The requests of a STICKY member's machine: sent to brokers, and each one answered.

The machine waits for an answer to every request, so there is one whatever happens. Locks and
messages to others are gathered first, and travel in few requests. Belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from typing import Any, TypeVar

from pocketmq.balance.consumer.offsets import NO_OFFSET
from pocketmq.balance.handover import events
from pocketmq.balance.handover import instructions as do
from pocketmq.balance.handover.events import LockPart
from pocketmq.balance.handover.messages import BusMessage, Notice
from pocketmq.balance.handover.settings import HandoverSettings
from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.group.handover.bus import Bus
from pocketmq.client.group.offsets import start_offset
from pocketmq.client.group.parts import MemberParts
from pocketmq.client.session import Session
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue
from pocketmq.model.names import retry_topic
from pocketmq.protocol import RequestCode, decode_body, encode_body
from pocketmq.protocol.requests import assignment

logger = logging.getLogger("pocketmq.client")

T = TypeVar("T")

LOCK_TIMEOUT = 3.0
TAIL_BIT = 1 << 30
"""No topic has a queue of such a number: a queue's tail lock is that of its own and this bit."""

Named = tuple[MessageQueue, LockPart]


class LockRequest:
    """Locks of one broker that are asked for, or released, in one owner's name."""

    __slots__ = ("broker", "owner", "steps")

    def __init__(self, broker: str, owner: str | None) -> None:
        self.broker = broker
        self.owner = owner
        """None: ask for the locks, in the member's own name."""
        self.steps: list[do.Lock | do.Unlock] = []

    @property
    def locks(self) -> list[Named]:
        """What the request is about."""
        return [(step.queue, part) for step in self.steps for part in step.parts]


def lock_requests(steps: Iterable[do.Lock | do.Unlock]) -> list[LockRequest]:
    """Gather instructions into requests, in an order in which each queue's own is kept."""
    requests: list[LockRequest] = []
    last: dict[MessageQueue, int] = {}  # the request with a queue's last instruction
    for step in steps:
        broker = step.queue.broker_name
        owner = step.owner if isinstance(step, do.Unlock) else None
        at = last.get(step.queue, -1) + 1
        while at < len(requests) and (requests[at].broker, requests[at].owner) != (broker, owner):
            at += 1
        if at == len(requests):
            requests.append(LockRequest(broker, owner))
        requests[at].steps.append(step)
        last[step.queue] = at
    return requests


class HandoverLocks:
    """The run and tail locks of one group, in the name of this member or of one that is gone.

    They are taken under the name of the retry topic: a lock under the group itself makes brokers of
    5.x treat the retries of concurrent consumers as those of orderly ones. Orderly consumers do use
    the group, which keeps Java's orderly members out.
    """

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

    async def renew(self, step: do.Renew) -> frozenset[Named] | None:
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


def _numbered(queue: MessageQueue, part: LockPart) -> MessageQueue:
    if part is LockPart.RUN:
        return queue
    return MessageQueue(queue.topic, queue.broker_name, queue.queue_id | TAIL_BIT)


class HandoverRequests:
    """Carries out the machine's instructions to ask brokers, and reports their answers."""

    def __init__(
        self,
        parts: MemberParts[Any],
        settings: HandoverSettings,
        bus: Bus,
        report: Callable[[events.HandoverEvent], None],
        *,
        orderly: bool,
    ) -> None:
        assert isinstance(parts.offsets, ConfirmedOffsets)
        self._commits = parts.offsets
        self._parts = parts
        self._settings = settings
        self._bus = bus
        self._locks = HandoverLocks(parts.session, parts.group, settings.owner, orderly=orderly)
        self._report = report
        self._now = asyncio.get_running_loop().time
        self._lock_steps: list[do.Lock | do.Unlock] = []
        self._messages: dict[str, list[BusMessage]] = {}

    # What is gathered

    def add_locks(self, step: do.Lock | do.Unlock) -> None:
        """Ask for locks, or release some, with the next `send`."""
        self._lock_steps.append(step)

    def add_message(self, step: do.Tell) -> None:
        """Add a message to other members to the next `send`."""
        self._messages.setdefault(step.broker, []).append(step.message)

    def send(self) -> None:
        """Send what was gathered."""
        requests = lock_requests(self._lock_steps)
        self._lock_steps.clear()
        for request in requests:
            ask = self._lock if request.owner is None else self._unlock
            self._spawn(ask(request), f"locks of {request.broker}")
        gathered, self._messages = self._messages, {}
        settings = self._settings
        for broker, messages in gathered.items():
            self._bus.tell(broker, Notice(settings.client_id, settings.boot, tuple(messages)))

    async def _lock(self, request: LockRequest) -> None:
        asked = self._locks.lock(request.broker, request.locks)
        granted = await self._answer_to(asked, "lock queues", None)
        for step in request.steps:
            parts = None
            if granted is not None:
                parts = frozenset(part for part in step.parts if (step.queue, part) in granted)
            self._report(events.Locked(step.queue, parts))

    async def _unlock(self, request: LockRequest) -> None:
        owner = request.owner or self._settings.owner
        asked = self._locks.unlock(request.broker, owner, request.locks)
        done = await self._answer_to(asked, "unlock queues", otherwise=False)
        for step in request.steps:
            self._report(events.Unlocked(step.queue, step.parts, owner, done))

    # What is sent at once

    def renew(self, step: do.Renew) -> None:
        """Ask for the locks at a broker again."""
        self._spawn(self._renew(step), "renew locks")

    async def _renew(self, step: do.Renew) -> None:
        sent_at = self._now()
        granted = await self._answer_to(self._locks.renew(step), "renew locks", None)
        self._report(events.Renewed(step.broker, sent_at, granted))

    def read_offset(self, step: do.ReadStart) -> None:
        """Read where a queue starts."""
        self._spawn(self._read_offset(step), "read an offset")

    async def _read_offset(self, step: do.ReadStart) -> None:
        read = self._start_of(step.queue)
        offset, stored = await self._answer_to(read, "read an offset", (None, False))
        self._report(events.StartRead(step.queue, offset, stored))

    async def _start_of(self, queue: MessageQueue) -> tuple[int | None, bool]:
        parts = self._parts
        stored = await parts.offsets.read(queue)
        offset = await start_offset(parts.session, queue, stored, parts.start)
        return offset, stored != NO_OFFSET

    def store_offset(self, step: do.StoreOffset) -> None:
        """Store where a queue starts."""
        self._spawn(self._store_offset(step), "store an offset")

    async def _store_offset(self, step: do.StoreOffset) -> None:
        stored = self._commits.store(step.queue, step.offset)
        done = await self._answer_to(stored, "store an offset", otherwise=False)
        self._report(events.OffsetStored(step.queue, done))

    def recheck(self, step: do.Recheck) -> None:
        """Compare the stored offset with what was committed."""
        self._spawn(self._recheck(step), "check an offset")

    async def _recheck(self, step: do.Recheck) -> None:
        if await self._commits.recheck(step.queue):
            self._report(events.Overtaken(step.queue))

    async def _answer_to(self, request: Awaitable[T], what: str, otherwise: T) -> T:
        """Return the answer to a request, whatever happens: the machine waits for it."""
        try:
            return await request
        except Exception:
            logger.exception(
                'hand-over request failed: group=%s operation="%s"; retrying',
                self._parts.group, what,
            )  # fmt: skip
            return otherwise

    def _spawn(self, work: Coroutine[None, None, None], what: str) -> None:
        self._parts.tasks.spawn(work, what)
