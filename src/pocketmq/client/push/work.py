"""Where the two halves of a push consumer meet.

The member decides which queues are owned and fills their caches; the work hands cached
messages to handlers and reports what is done. `Work` is what the member asks of the work,
`Consuming` is what the work is given, `PushParts` is what the member's modules share. All live
on one event loop and call each other directly.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pocketmq.balance.consumer.limits import QueueLimits
from pocketmq.balance.profile import Profile
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.parts import MemberParts
from pocketmq.client.push.consume_hooks import ConsumeHook
from pocketmq.client.push.handlers import TopicHandler
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.model import MessageModel, MessageQueue, Subscription
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.requests.client_calls import DirectConsumeResult, RunningInfo

FEW = 8
"""Messages of a pull that were sent just now, and that their handlers get before all else. With
more of them the broker's work on the next pull should begin first."""


class Work(Protocol):
    """Handles what is pulled: concurrently or in order."""

    def start(self) -> None:
        """Start the timers; called on the loop before the first queue is taken."""

    def taken(self, held: HeldQueue) -> None:
        """Prepare for a new queue, before its first pull."""

    def arrived(
        self,
        held: HeldQueue,
        messages: Sequence[ReceivedMessage],
        *,
        dispatch: bool,
        asked: bool = False,
    ) -> None:
        """Handle messages that have just been put into `held.process`; must not block.

        They carry the topic as the application calls it, also out of a retry topic.
        `dispatch` is the result of `ProcessQueue.put`: an orderly consumer starts a task then.
        `asked`: whether the next pull was sent already.
        """

    def pulled(self, held: HeldQueue, count: int, elapsed: float) -> None:
        """Count a pull of `count` messages that took `elapsed` seconds."""

    def dropped(self, held: HeldQueue) -> None:
        """Discard what is kept for a queue that was dropped.

        `held.may_start` is cleared before; calls in flight continue, their results are ignored.
        """

    def resumed(self, held: HeldQueue) -> None:
        """Continue a queue whose fence was lifted (STICKY): handle what is cached."""

    def add_hook(self, hook: ConsumeHook) -> None:
        """Call a hook around all handler calls from now on."""

    async def consume_directly(
        self, message: ReceivedMessage, broker_name: str | None
    ) -> DirectConsumeResult:
        """Handle one message now, beside the queues, on an operator's request (309)."""

    async def running_info(self, *, with_stacks: bool) -> RunningInfo:
        """Return a report about the consumer (307)."""

    async def stop(self, wait: float) -> None:
        """Start no more calls, wait at most `wait` seconds for those in flight, end all tasks.

        Offsets of what is finished meanwhile are still noted: they are stored after this.
        """


class Consuming(Protocol):
    """What the work needs of its consumer.

    Times are the loop's (`now`), the same that `ProcessQueue` is given; wall time comes from
    `session.clock`.
    """

    @property
    def session(self) -> Session:
        """The running session."""

    @property
    def options(self) -> PushConsumerOptions:
        """The consumer's options."""

    @property
    def profile(self) -> Profile:
        """The client line to behave like."""

    @property
    def group(self) -> str:
        """The group, with the name of the wire."""

    @property
    def model(self) -> MessageModel:
        """Clustering or broadcasting."""

    @property
    def tasks(self) -> Tasks:
        """For background work; what runs here is cancelled at the end of a stop."""

    @property
    def started_at_ms(self) -> int:
        """When the consumer started, in milliseconds since 1970."""

    def now(self) -> float:
        """Return the loop's time."""

    def handler_for(self, topic: str) -> TopicHandler | None:
        """Return the handler of a topic as the application calls it."""

    def wire_topic(self, topic: str) -> str:
        """Return a topic's name on the wire, with its namespace."""

    def held(self) -> Mapping[MessageQueue, HeldQueue]:
        """Return all pulled queues, also dropped ones that wait for their release."""

    def subscribed(self) -> Collection[Subscription]:
        """Return the subscriptions, with the names of the wire, the retry topic included."""

    def note_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        """Note an offset to store; see `balance.consumer.offsets`."""

    def noted_offset(self, queue: MessageQueue) -> int:
        """Return the offset noted for a queue, or -1."""

    async def lock(self, held: HeldQueue) -> bool:
        """Ask the broker for an orderly queue's lock and mark the process queue accordingly.

        False if it is refused, the broker does not answer or the consumer stops.
        """

    def request_rebalance(self) -> None:
        """Rebalance soon."""


@dataclass(slots=True, eq=False, kw_only=True)
class PushParts(MemberParts[HeldQueue]):
    """A push consumer's settings and state, as far as more than one module needs them."""

    options: PushConsumerOptions
    limits: QueueLimits
    """In force for each queue; they change with the number of queues."""
    work: Work = field(init=False)
    running: bool = False
    suspended: bool = False
    """While offsets are reset: nothing is pulled, nothing rebalanced."""
