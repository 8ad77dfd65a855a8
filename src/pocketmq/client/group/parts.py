"""What the rooms of one running consumer share. Belongs to one event loop."""

from dataclasses import dataclass

from pocketmq.balance.consumer.limits import QueueLimits
from pocketmq.balance.profile import Profile
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.offsets import OffsetStore
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.push.work import Work
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.model.queue import MessageQueue


@dataclass(slots=True, eq=False)
class Parts:
    """A consumer's settings and state, as far as more than one room needs them."""

    session: Session
    options: PushConsumerOptions
    profile: Profile
    group: str
    """With the name of the wire."""
    subscriptions: Subscriptions
    offsets: OffsetStore
    tasks: Tasks
    held: dict[MessageQueue, HeldQueue]
    """Queues that are pulled; those that wait for their release are dropped."""
    popped: dict[MessageQueue, HeldQueue]
    """Queues a broker wants to be popped (5.x)."""
    limits: QueueLimits
    """In force for each queue; they change with the number of queues."""
    work: Work
    running: bool = False
    suspended: bool = False
    """While offsets are reset: nothing is pulled, nothing rebalanced."""
