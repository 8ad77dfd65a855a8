"""A running POP consumer as its session and brokers see it: subscriptions, but no queues.

Lives from start to stop; applications hold a `PopConsumer`. Belongs to one event loop.
"""

from collections.abc import Iterable

from pocketmq.balance.consumer import lifecycle as life
from pocketmq.balance.consumer.instructions import Instruction, SendHeartbeats
from pocketmq.balance.consumer.schedule import FetchRoutes
from pocketmq.client.checks import check_range, check_seconds, warn_if_milliseconds
from pocketmq.client.consumer_options import FIRST, MOST_MESSAGES, PopConsumerOptions
from pocketmq.client.group.member import RunningMember
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.pop.popped import handle_of
from pocketmq.client.pop.receiving import PopReceives
from pocketmq.client.pop.requests import Asking, PopRequests, ReceiveSpec
from pocketmq.client.pop.sources import Sources
from pocketmq.client.session import Session
from pocketmq.errors import InvalidInput
from pocketmq.model import ConsumerData, ConsumeType, MessageModel, Subscription
from pocketmq.model.names import wrap_namespace
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.handles import PopHandle
from pocketmq.protocol.requests import client_calls


class PopMember(RunningMember):
    """A POP consumer at work.

    Changed routes and members, resets and offsets do not concern it: every receive reads the
    routes, and the broker keeps the group's progress.
    """

    kind = "POP"

    def __init__(
        self, session: Session, options: PopConsumerOptions, subscriptions: Subscriptions
    ) -> None:
        group = wrap_namespace(session.options.namespace, options.group)
        super().__init__(session, group, subscriptions, session.tasks)
        self._options = options
        self.requests = PopRequests(
            session, group, ordered=options.ordered, from_first=options.consume_from is FIRST
        )
        self.receiving = PopReceives(
            f"consumer of group {options.group}",
            Asking(self.requests, session.tasks, self._attempt if options.ordered else None),
            session.tasks,
            Sources(session.routes, session.options.request_timeout),
            self.subscribed,
        )

    def _attempt(self) -> str:
        return f"{self.session.random.getrandbits(128):032x}"

    def subscribed(self, topic: str | None = None) -> list[tuple[str, Subscription]]:
        """Return topics as the application calls them, with their subscriptions."""
        return [
            (shown, each)
            for each in self.subscriptions.all()
            if topic in (None, shown := self.subscriptions.shown(each.topic))
        ]

    # What callers pass; any thread may call these

    def checked(
        self, max_messages: int | None, invisible: float | None, timeout: float | None
    ) -> tuple[ReceiveSpec, float]:
        """Return what a receive asks for, and the seconds that its caller waits.

        Raises `InvalidInput`.
        """
        options = self._options
        most = options.max_messages if max_messages is None else max_messages
        check_range("max_messages", most, 1, MOST_MESSAGES)
        wanted = ReceiveSpec(most, options.invisible if invisible is None else invisible)
        check_seconds("invisible", wanted.invisible, at_least=0.001)
        patience = options.receive_timeout if timeout is None else timeout
        check_seconds("timeout", patience)
        warn_if_milliseconds(options.group, "timeout", timeout)
        return wanted, patience

    def to_receive(self, topic: str | None) -> list[tuple[str, Subscription]]:
        """Return all topics, or one of them. Raises `InvalidInput` if it is not subscribed."""
        subscribed = self.subscribed(topic)
        if not subscribed:
            missing = "no topic is" if topic is None else f"{topic!r} is not"
            raise InvalidInput(f"{missing} subscribed; call subscribe() first")
        return subscribed

    def by_broker(
        self, messages: ReceivedMessage | Iterable[ReceivedMessage]
    ) -> dict[str, list[tuple[str, PopHandle]]]:
        """Return what to acknowledge at each broker.

        Raises `InvalidInput` for a message that was not popped.
        """
        some = messages if isinstance(messages, Iterable) else (messages,)
        found: dict[str, list[tuple[str, PopHandle]]] = {}
        for message in some:
            handle = handle_of(message)
            topic = self.subscriptions.wire(message.topic)
            found.setdefault(handle.broker_name, []).append((topic, handle))
        return found

    # Start and stop

    def start_steps(self) -> tuple[Instruction, ...]:
        """Return the steps of a start; Java has no such consumer to compare with."""
        return life.RegisterGroup(), FetchRoutes(), SendHeartbeats()

    def stop_steps(self, wait: float) -> tuple[Instruction, ...]:
        """Return the steps of a stop."""
        return life.StopConsuming(wait), life.Unregister(), life.StopSession()

    async def stop_step(self, step: Instruction) -> None:
        """Take a step: what no receive returned goes back to the brokers, before and after.

        Brokers of ours answer held pops when the consumer unregisters; what they bring then is
        returned, too.
        """
        match step:
            case life.StopConsuming():
                await self.receiving.holds.close()
            case life.StopSession():
                await self.receiving.holds.returned()
            case _:
                await super().stop_step(step)

    # For the session

    def consumer_data(self) -> ConsumerData:  # noqa: D102
        return ConsumerData(
            group_name=self.group,
            consume_type=ConsumeType.CONSUME_POP,
            message_model=MessageModel.CLUSTERING,
            consume_from_where=self._options.consume_from,
            subscription_data_set=list(self.subscriptions.all()),
        )

    async def running_info(self, *, with_stacks: bool) -> client_calls.RunningInfo:  # noqa: ARG002, D102
        return client_calls.RunningInfo(
            properties={
                client_calls.PROP_CONSUME_TYPE: ConsumeType.CONSUME_POP.value,
                client_calls.PROP_ORDERLY: str(self._options.ordered).lower(),
                client_calls.PROP_START_TIMESTAMP: str(self.started_at_ms),
            },
            subscription_set=list(self.subscriptions.all()),
        )
