"""What the rooms of one running pull consumer share. Belongs to one event loop."""

from dataclasses import dataclass, field

import msgspec

from pocketmq.balance.consumer.lite_pull import commit_step
from pocketmq.balance.consumer.start_offset import StartRule
from pocketmq.balance.profile import Profile
from pocketmq.client.consumer_options import PullConsumerOptions
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.offsets import OffsetStore
from pocketmq.client.group.pauses import Pauses
from pocketmq.client.group.subscriptions import Subscribed, Subscriptions
from pocketmq.client.pull.assigned import AssignedQueue, Assignment
from pocketmq.client.pull.cache import Cache
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.model.queue import MessageQueue
from pocketmq.model.subscription import Subscription


@dataclass(slots=True, eq=False)
class PullParts:
    """A pull consumer's settings and state, as far as more than one room needs them."""

    session: Session
    options: PullConsumerOptions
    profile: Profile
    group: str
    """With the name of the wire."""
    subscriptions: Subscriptions
    """What is shared out with the group; without those of queues assigned by hand."""
    offsets: OffsetStore
    tasks: Tasks
    start: StartRule
    assignment: Assignment
    cache: Cache
    pauses: Pauses
    by_hand: dict[str, Subscribed]
    """What is wanted of the topics of queues assigned by hand."""
    held: dict[MessageQueue, HeldQueue] = field(default_factory=dict)
    """Queues that are this member's share."""
    popped: dict[MessageQueue, HeldQueue] = field(default_factory=dict)
    """None: brokers do not assign queues to pull consumers."""

    def subscribed(self, topic: str) -> Subscribed:
        """Give what is wanted of a topic, by the wire's name."""
        known = self.subscriptions.get(topic) or self.by_hand.get(topic)
        if known is None:
            known = Subscribed.of(Subscription(topic=topic), self.session.options.namespace)
            self.by_hand[topic] = known
        return known

    def note_done(self, assigned: AssignedQueue) -> None:
        """Note what is surely done of a queue that is given up: all but what was polled last.

        Java stores what its last automatic commit noted, and everything since comes twice.
        """
        state = assigned.state
        if self.cache.last is assigned:
            state = msgspec.structs.replace(state, consume_offset=assigned.before_last)
        step = commit_step(assigned.queue, state, dropped=assigned.dropped)
        if step is not None and self.options.auto_commit:
            self.offsets.table.update(step.queue, step.offset, increase_only=True)
