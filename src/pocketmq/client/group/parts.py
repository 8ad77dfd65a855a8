"""What the modules of one running member share: its settings, and the table of its queues.

Also how far it is behind in these, by what its own pulls have told. Belongs to one event loop.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from pocketmq.balance.consumer.offsets import StartRule
from pocketmq.balance.profile import Profile
from pocketmq.client.consumer_options import ConsumerOptions
from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.local_offsets import LocalOffsets, offsets_file
from pocketmq.client.group.offsets import OffsetStore, RemoteOffsets
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.model import ConsumeType, MessageModel, MessageQueue, MessageRequestMode, sort_queues
from pocketmq.model.names import is_retry_topic, unwrap_namespace

Q = TypeVar("Q", bound=HeldQueue)

HALF_AN_HOUR_MS = 30 * 60 * 1000


class QueueTable(Generic[Q]):
    """The queues of one member, each from `AddQueue` to `RemoveQueue`, whatever its state."""

    def __init__(self) -> None:
        self.pulled: dict[MessageQueue, Q] = {}
        self.popped: dict[MessageQueue, Q] = {}
        """Queues that a broker wants to be popped (5.x)."""

    def __iter__(self) -> Iterator[Q]:
        return iter((*self.pulled.values(), *self.popped.values()))

    def of(self, mode: MessageRequestMode) -> dict[MessageQueue, Q]:
        """Return the queues of one mode."""
        return self.pulled if mode is MessageRequestMode.PULL else self.popped

    def working(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the queues of a topic that are this member's, sorted."""
        return tuple(sort_queues({h.queue for h in self if h.queue.topic == topic and h.mine}))


@dataclass(slots=True, eq=False, kw_only=True)
class MemberParts(Generic[Q]):
    """A member that shares the queues of its topics with its group."""

    session: Session
    options: ConsumerOptions
    profile: Profile
    group: str
    """With the name of the wire."""
    subscriptions: Subscriptions
    offsets: OffsetStore
    tasks: Tasks
    start: StartRule
    queues: QueueTable[Q]


def member_profile(session: Session) -> Profile:
    """Return the client line to behave like."""
    # Java waits for its timer when a route changes; that pause serves no purpose.
    return msgspec.structs.replace(session.options.profile, rebalance_on_route_change=True)


def member_tasks(session: Session, options: ConsumerOptions) -> Tasks:
    """Return the owner of a member's background work."""
    return Tasks(f"{session.client_id}: consumer {options.group}")


def offset_store(session: Session, options: ConsumerOptions, group: str) -> OffsetStore:
    """Return where a member's offsets are kept: on its brokers, or in a file of its own."""
    if options.model is MessageModel.BROADCASTING:
        return LocalOffsets(offsets_file(options.offsets_dir, session.client_id, group))
    if options.sticky is not None:
        return ConfirmedOffsets(session, group)
    return RemoteOffsets(session, group, session.options.profile)


def start_rule(options: ConsumerOptions, now_ms: int, kind: ConsumeType) -> StartRule:
    """Return where a queue without a stored offset starts."""
    start_ms = now_ms - HALF_AN_HOUR_MS
    if options.start_at is not None:
        start_ms = int(options.start_at * 1000)
    return StartRule(options.consume_from, start_ms, kind)


class QueueLag(msgspec.Struct, frozen=True):
    """The messages of a queue that are not handled yet."""

    cached: int
    """Those that were pulled."""
    behind: int
    """Those that were in the queue behind them when it was pulled last; 0 if it is popped."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.cached + self.behind


def lag_of(queues: Iterable[HeldQueue], namespace: str) -> dict[MessageQueue, QueueLag]:
    """Return the lag of each queue, by its name for the application; without retry topics."""
    found = {}
    for held in queues:
        queue = held.queue
        if held.mine and not is_retry_topic(queue.topic):
            shown = MessageQueue(
                unwrap_namespace(namespace, queue.topic), queue.broker_name, queue.queue_id
            )
            found[shown] = QueueLag(held.process.count, max(0, held.waiting))
    return found
