"""The work of a consumer without its member: queues are held and filled by the test.

Session, broker and name server are real, on sockets; what the member would do is done by hand.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pocketmq.balance.profile import V5, Profile
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.group.held_queue import HeldQueue, HoldState
from pocketmq.client.push.concurrent import ConcurrentWork
from pocketmq.client.push.handlers import TopicHandler
from pocketmq.client.push.orderly import OrderlyWork
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.model import MessageModel, MessageQueue, Subscription
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.protocol import Command, DeliveryContext, ReceivedMessage, RequestCode
from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.records import Record, encode_record
from tests.client.servers import Directory, Scripted, broker, route, serving, session_on
from tests.loops import until

GROUP = "billing"
QUEUE = MessageQueue("orders", "broker-a", 0)
HOST = encode_host("127.0.0.1:10911")


class Stand:
    """What the work is given, and what it reported."""

    def __init__(self, session: Session, options: PushConsumerOptions, profile: Profile) -> None:
        self.session = session
        self.options = options
        self.profile = profile
        self.group = options.group
        self.model = options.model
        self.tasks = Tasks("stand")
        self.started_at_ms = 1_794_707_172_145
        self.handlers: dict[str, TopicHandler] = {}
        self.offsets: dict[MessageQueue, int] = {}
        self.noted: list[int] = []
        self.holdings: dict[MessageQueue, HeldQueue] = {}
        self.locks: list[bool] = []
        """What brokers say to the next questions for a lock; then they grant it."""
        self.lock_calls = 0
        self.work: ConcurrentWork | OrderlyWork = (
            OrderlyWork(self) if options.orderly else ConcurrentWork(self)
        )

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def handler_for(self, topic: str) -> TopicHandler | None:
        return self.handlers.get(topic)

    def wire_topic(self, topic: str) -> str:
        return topic

    def held(self) -> Mapping[MessageQueue, HeldQueue]:
        return self.holdings

    def subscribed(self) -> Collection[Subscription]:
        return [Subscription(topic=topic, sub_string="*") for topic in self.handlers]

    def note_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        self.noted.append(offset)
        self.offsets[queue] = max(offset, self.offsets.get(queue, -1)) if increase_only else offset

    def noted_offset(self, queue: MessageQueue) -> int:
        return self.offsets.get(queue, -1)

    async def lock(self, held: HeldQueue) -> bool:
        self.lock_calls += 1
        granted = self.locks.pop(0) if self.locks else True
        if granted:
            held.process.lock_granted(self.now())
        return granted

    def request_rebalance(self) -> None:
        raise AssertionError("no work asks for that")

    # What the member would do

    def hold(self, queue: MessageQueue = QUEUE) -> HeldQueue:
        held = self.holdings[queue] = HeldQueue(queue, queue.topic, 0, self.now())
        held.process.lock_granted(self.now())
        self.work.taken(held)
        return held

    def arrive(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        dispatch = held.process.put(messages)
        self.work.arrived(held, messages, dispatch=dispatch)

    def drop(self, held: HeldQueue) -> None:
        held.enter(HoldState.DROPPED)
        self.work.dropped(held)


def messages(
    count: int, first: int = 0, *, queue_id: int = 0, reconsume_times: int = 0, **properties: str
) -> list[ReceivedMessage]:
    """Messages as they come out of a pull; their bodies are their offsets."""
    text = encode_properties({"UNIQ_KEY": "ID", **properties})
    records = b"".join(
        encode_record(
            Record(
                topic=b"orders",
                body=b"%d" % offset,
                property_bytes=text.replace(b"ID", b"ID%d" % offset),
                queue_id=queue_id,
                born_host=HOST,
                store_host=HOST,
                queue_offset=offset,
                commit_log_offset=1000 + offset,
                reconsume_times=reconsume_times,
            )
        )
        for offset in range(first, first + count)
    )
    return decode_pulled(records, DeliveryContext(broker_name="broker-a"))


class Taker(Scripted):
    """A broker that takes messages back, and copies of them."""

    def __init__(self) -> None:
        super().__init__(
            {
                RequestCode.CONSUMER_SEND_MSG_BACK: lambda request: request.reply(0),
                RequestCode.SEND_MESSAGE_V2: _stored,
                RequestCode.HEART_BEAT: lambda request: request.reply(0),
                RequestCode.UNREGISTER_CLIENT: lambda request: request.reply(0),
            }
        )

    def refuse(self, *codes: int) -> None:
        for code in codes:
            self.script[code] = lambda request: request.reply(1, "not now")

    def sent_back(self) -> list[dict[str, str]]:
        return [dict(one.ext) for one in self.asked_for(RequestCode.CONSUMER_SEND_MSG_BACK)]

    def copies(self) -> list[Command]:
        return self.asked_for(RequestCode.SEND_MESSAGE_V2)


def _stored(request: Command) -> Command:
    where = {"msgId": "7F00000100002A9F0000000000000001", "queueId": "0", "queueOffset": "5"}
    return request.reply(0, ext=where)


@asynccontextmanager
async def stand(
    *handlers: Callable[[Any], Any],
    batch: bool = False,
    profile: Profile = V5,
    taker: Taker | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Stand, Taker]]:
    """The work with a handler for `orders`, a broker and a name server."""
    taker = taker or Taker()
    async with serving(taker) as (_, at):
        names = broker("broker-a", at)
        retry = f"%RETRY%{GROUP}"
        directory = Directory({"orders": route(names), retry: route(names, queues=1)})
        # Without members a session forgets its brokers; here none is told of.
        never = {"route_interval": 1e5, "heartbeat_first_after": 1e5}
        async with serving(directory) as (_, server), session_on(server, **never) as session:
            # The session's first poll drops routes that no member uses: it must have ended.
            await until(lambda: AUTO_CREATE_TOPIC in directory.topics_asked(), "the first poll")
            await session.routes.refresh_all([AUTO_CREATE_TOPIC])  # joins it
            await session.fetch_routes(["orders", retry])
            one = Stand(session, PushConsumerOptions(group=GROUP, **options), profile)
            for handler in handlers:
                one.handlers["orders"] = TopicHandler("orders", handler, batch)
            one.work.start()
            try:
                yield one, taker
            finally:
                await one.work.stop(5.0)
                await one.tasks.stop()


BROADCASTING = MessageModel.BROADCASTING


class LoopClock:
    """A clock that goes with the loop."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def now_ms(self) -> int:
        return int(self.now() * 1000)

    def tick(self) -> int:
        return int(self.now() * 1e9)
