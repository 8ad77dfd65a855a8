"""A running POP consumer as its session and brokers see it: subscriptions, but no queues.

Lives from start to stop; applications hold a `PopConsumer`. Belongs to one event loop.
"""

from pocketmq.balance.consumer import lifecycle as life
from pocketmq.balance.consumer.instructions import Instruction, SendHeartbeats
from pocketmq.balance.consumer.schedule import FetchRoutes
from pocketmq.client.consumer_options import FIRST, PopConsumerOptions
from pocketmq.client.group.member import RunningMember
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.pop.asking import Asking
from pocketmq.client.pop.receiving import Receiving
from pocketmq.client.pop.requests import PopRequests
from pocketmq.client.pop.sources import Sources
from pocketmq.client.session import Session
from pocketmq.model import ConsumerData, ConsumeType, MessageModel, Subscription
from pocketmq.model.names import wrap_namespace
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
        self.receiving = Receiving(
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
