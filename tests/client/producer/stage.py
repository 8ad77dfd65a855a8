"""Where producers are tried: scripted brokers, and a look into what a real one has stored."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

from pocketmq.client.producer.producer import Producer
from pocketmq.client.session import Session
from pocketmq.model import MessageQueue, PullFlag, TopicRoute
from pocketmq.net import Connection
from pocketmq.protocol import Command, DeliveryContext, ReceivedMessage, RequestCode
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.requests.reading import PullRequest
from tests.client.servers import Directory, Scripted, broker, route, serving

SENDS = (
    int(RequestCode.SEND_MESSAGE_V2),
    int(RequestCode.SEND_BATCH_MESSAGE),
)

Say = Callable[[Command], Command | None]


def stores(request: Command) -> Command:
    """Answer as a broker that stores everything at offset 7."""
    fields = {"msgId": "7F" * 16, "queueId": request.ext["e"], "queueOffset": "7"}
    return request.reply(0, ext=fields)


def refuses(code: int, remark: str = "no") -> Say:
    """Answer every send with a refusal."""
    return lambda request: request.reply(code, remark)


def silent(_: Command) -> None:
    """Print nothing."""


class TestBroker(Scripted):
    """A broker that answers sends as `say` does."""

    __test__ = False

    def __init__(self, say: Say = stores) -> None:
        super().__init__(dict.fromkeys(SENDS, self._say))
        self.script[RequestCode.HEART_BEAT] = lambda request: request.reply(0)
        self.script[RequestCode.UNREGISTER_CLIENT] = lambda request: request.reply(0)
        self.say = say

    def _say(self, request: Command) -> Command | None:
        return self.say(request)

    @property
    def open(self) -> list[Connection]:
        """Connections that are."""
        return [each for each in self.opened if not each.closed]

    @property
    def sends(self) -> list[Command]:
        """Requests to store something."""
        return [request for request in self.requests if request.code in SENDS]


async def ask_anew(producer: Producer, topic: str) -> None:
    """Ask for a topic's route, after which the producer has what is true now."""
    for _ in range(2):  # the first may join a question of before, such as the session's own
        await producer.session.routes.refresh(topic)


class Stage(NamedTuple):
    """A producer, the brokers it sends to, and their name server."""

    producer: Producer
    brokers: dict[str, TestBroker]
    directory: Directory

    @property
    def asked(self) -> dict[str, int]:
        """How many sends each broker got."""
        return {name: len(each.sends) for name, each in self.brokers.items()}

    async def reroute(self, wanted: TopicRoute) -> None:
        """Change the route of `orders`, and have the producer know it."""
        self.directory.routes["orders"] = wanted
        await ask_anew(self.producer, "orders")

    async def begin_with(self, position: int) -> None:
        """Let the next message go to the queue at this position."""
        publication = await self.producer.sending.publishing.find("orders", 5.0)
        publication.robin.index = position - 1


@asynccontextmanager
async def stage(
    says: Mapping[str, Say] | None = None, *, queues: int = 2, perm: int = 6, **settings: Any
) -> AsyncIterator[Stage]:
    """Scripted brokers with a topic `orders`; a topic `TBW102` to make others from."""
    says = says or {"broker-a": stores, "broker-b": stores}
    async with AsyncExitStack() as stack:
        brokers = {name: TestBroker(say) for name, say in says.items()}
        datas = [
            broker(name, (await stack.enter_async_context(serving(each)))[1])
            for name, each in brokers.items()
        ]
        topics = {name: route(*datas, queues=queues, perm=perm) for name in ("orders", "TBW102")}
        directory = Directory(topics)
        _, address = await stack.enter_async_context(serving(directory))
        producer = Producer(address, group="shop", **settings)
        await stack.enter_async_context(producer)
        yield Stage(producer, brokers, directory)


async def stored(session: Session, queue: MessageQueue) -> list[ReceivedMessage]:
    """Read what a broker has in a queue, 32 messages at most."""
    header = PullRequest(
        consumer_group="tests",
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=0,
        max_msg_nums=32,
        sys_flag=int(PullFlag.SUBSCRIPTION),
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription="*",
        sub_version=0,
        expression_type="TAG",
    )
    accept = frozenset({0, 19, 20, 21})
    answer = await session.brokers.call(
        queue.broker_name, RequestCode.PULL_MESSAGE, header, accept=accept
    )
    return decode_pulled(answer.body, DeliveryContext()) if answer.code == 0 else []
