"""Members that remember what they were told, and answer as told."""

from collections.abc import Collection

from pocketmq.client.routes import KnownRoute
from pocketmq.model import ConsumerData, MessageQueue, Subscription
from pocketmq.protocol import Command, ReceivedMessage
from pocketmq.protocol.requests import client_calls, sending


class Producing:
    """A producer that sends nothing."""

    def __init__(self, group: str = "shop", *topics: str, waits_for: str = "") -> None:
        self.group = group
        self.routes: list[KnownRoute] = []
        self.checks: list[tuple[str, int, str]] = []
        self.replies: list[bytes] = []
        self._topics = topics
        self._waits_for = waits_for

    def topics(self) -> Collection[str]:
        return self._topics

    def on_route_changed(self, known: KnownRoute) -> None:
        self.routes.append(known)

    async def check_transaction(
        self, message: ReceivedMessage, header: sending.CheckTransactionStateRequest, address: str
    ) -> None:
        self.checks.append((message.topic, header.commit_log_offset, address))

    def take_reply(self, header: client_calls.PushReplyRequest, request: Command) -> bool:
        if header.topic != self._waits_for:
            return False
        self.replies.append(request.body)
        return True


class Consuming:
    """A consumer that pulls nothing."""

    def __init__(self, group: str = "billing", *topics: str) -> None:
        self.group = group
        self.expression = "*"
        self.routes: list[KnownRoute] = []
        self.ids_changed = 0
        self.active: list[str] = []
        self.lost: list[str] = []
        self.resets: list[tuple[str, dict[MessageQueue, int]]] = []
        self.info = client_calls.RunningInfo(properties={"PROP_CONSUMEORDERLY": "false"})
        self.failure: Exception | None = None
        self._topics = topics

    def topics(self) -> Collection[str]:
        return self._topics

    def on_route_changed(self, known: KnownRoute) -> None:
        self.routes.append(known)

    def consumer_data(self) -> ConsumerData:
        return ConsumerData(
            group_name=self.group,
            subscription_data_set=[
                Subscription(topic=topic, sub_string=self.expression, sub_version=7)
                for topic in self._topics
            ],
        )

    def on_ids_changed(self) -> None:
        self.ids_changed += 1

    def on_broker_active(self, address: str) -> None:
        self.active.append(address)

    def on_broker_lost(self, address: str) -> None:
        self.lost.append(address)

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        self.resets.append((topic, offsets))

    async def offsets_reached(self, topic: str) -> dict[MessageQueue, int]:
        return {MessageQueue(topic, "broker-0", 3): 41}

    async def running_info(self, *, with_stacks: bool) -> client_calls.RunningInfo:
        if self.failure is not None:
            raise self.failure
        return self.info

    async def consume_directly(
        self, message: ReceivedMessage, broker_name: str | None
    ) -> client_calls.DirectConsumeResult:
        return client_calls.DirectConsumeResult(remark=f"{broker_name} {message.body.decode()}")
