"""Where the two halves of a push consumer meet.

The engine decides which queues are held and fills their caches; the work room hands what is cached
to handlers and says what is done. `Work` is what the engine asks of the work room, `Consuming` is
what the work room is given. Both live on one event loop and call each other directly.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import signature
from typing import Any, Protocol

import msgspec

from pocketmq.balance.profile import Profile
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.push.consume_hooks import ConsumeHook
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import InvalidInput
from pocketmq.model.kinds import MessageModel
from pocketmq.model.queue import MessageQueue
from pocketmq.model.subscription import Subscription
from pocketmq.protocol.bodies.running import DirectConsumeResult, RunningInfo
from pocketmq.protocol.received import ReceivedMessage

Handler = Callable[[Any], Any]
"""Takes one message, or a list of them; a coroutine function or a plain one."""


class TopicHandler(msgspec.Struct, frozen=True):
    """What messages of a topic are given to."""

    topic: str
    """As the application calls it."""
    function: Handler
    batch: bool = False
    """Whether it takes a list of messages, of `handler_batch` at most."""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidInput(f"a handler is a function that takes messages, not {self.function}")
        _check_takes_one(self.function)


def _check_takes_one(function: Handler) -> None:
    try:
        takes = signature(function)
    except (TypeError, ValueError):
        return  # some that are written in C do not say
    try:
        takes.bind(None)
    except TypeError as error:
        raise InvalidInput(
            f"a handler takes one argument, the message or messages; {function} does not: {error}"
        ) from None


class Work(Protocol):
    """Handles what is pulled: concurrently or in order."""

    def start(self) -> None:
        """Begin the timers; called on the loop before the first queue is taken."""

    def taken(self, held: HeldQueue) -> None:
        """Take note of a new holding, before its first pull."""

    def arrived(
        self, held: HeldQueue, messages: Sequence[ReceivedMessage], *, dispatch: bool
    ) -> None:
        """Handle messages that have just been put into `held.process`; must not block.

        They carry the topic as the application calls it, also out of a retry topic.
        `dispatch` is what `ProcessQueue.put` said: an orderly consumer starts a task then.
        """

    def pulled(self, held: HeldQueue, count: int, elapsed: float) -> None:
        """Count a pull that took so many seconds and brought so many messages, for operators."""

    def dropped(self, held: HeldQueue) -> None:
        """Let go of what is kept for a holding that has ended.

        `held.process.dropped` is set before; calls under way go on, but count for nothing.
        """

    def add_hook(self, hook: ConsumeHook) -> None:
        """Have a hook told of all handler calls from now on."""

    async def consume_directly(
        self, message: ReceivedMessage, broker_name: str | None
    ) -> DirectConsumeResult:
        """Handle one message now, beside the queues, as an operator asked."""

    async def running_info(self, *, with_stacks: bool) -> RunningInfo:
        """Give an account of the consumer."""

    async def stop(self, wait: float) -> None:
        """Take nothing more on, wait so long for calls under way, and end everything of its own.

        What is finished meanwhile is still noted: offsets are stored after this.
        """


class Consuming(Protocol):
    """The consumer as its work room sees it.

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
        """Give the loop's time."""

    def handler_for(self, topic: str) -> TopicHandler | None:
        """Give the handler of a topic as the application calls it."""

    def wire_topic(self, topic: str) -> str:
        """Give a topic's name on the wire, with its namespace."""

    def held(self) -> Mapping[MessageQueue, HeldQueue]:
        """Give all holdings, dropped ones that wait for their release among them."""

    def subscriptions(self) -> Collection[Subscription]:
        """Give what is subscribed, with the names of the wire, the retry topic included."""

    def note_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        """Note an offset to store; see `balance.consumer.offset_table`."""

    def noted_offset(self, queue: MessageQueue) -> int:
        """Give the offset noted for a queue, or -1."""

    async def lock(self, held: HeldQueue) -> bool:
        """Ask the broker for an orderly queue's lock and mark the process queue accordingly.

        False if it is refused, the broker does not answer or the consumer stops.
        """

    def request_rebalance(self) -> None:
        """Have the queues shared out anew soon."""
