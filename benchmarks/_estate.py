"""A large estate on one cluster: topics, groups, and clients that are connections and little more.

Each client is a socket to every broker with a heartbeat, which tells what it holds when asked.
"""

import asyncio
import threading
from types import TracebackType
from typing import Self

import pocketmq as mq
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.model.groups import ConsumerData, GroupConfig, ProducerData, Subscription
from pocketmq.model.kinds import ConsumeFromWhere, ConsumeType, MessageModel
from pocketmq.model.queue import MessageQueue, sort_queues
from pocketmq.model.topics import TopicConfig
from pocketmq.net import parse_address
from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.requests import client_calls, membership

QUEUES = 4
LARGE = "large"
LARGE_QUEUES = 5000
"""Queues of one topic on each of two brokers."""


class Estate:
    """Makes topics and groups, and keeps clients connected until it is left."""

    def __init__(self, address: str, topics: int, groups: int, clients: int) -> None:
        self.address = address
        self.topics = [f"topic-{number:03}" for number in range(topics)]
        self.groups = [f"group-{number:03}" for number in range(groups)]
        self._members = [
            (f"10.0.{number // 250}.{number % 250}@{number}", self.groups[number % groups])
            for number in range(clients)
        ]
        self._brokers: dict[str, str] = {}
        self._answering: list[asyncio.Task[None]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        with mq.Admin(self.address) as admin:
            self._brokers = {place.broker: place.address for place in admin.brokers.masters()}
            configs = [
                TopicConfig(topic_name=name, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
                for name in self.topics
            ]
            large = LARGE_QUEUES
            configs.append(
                TopicConfig(topic_name=LARGE, read_queue_nums=large, write_queue_nums=large)
            )
            admin.topics.create_many(configs).all()
            names = [GroupConfig(group_name=name) for name in self.groups]
            admin.groups.create_many(names).all()
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._connect(), self._loop).result(300)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def topic_of(self, group: str) -> str:
        """Return the topic a group consumes."""
        return self.topics[self.groups.index(group) % len(self.topics)]

    async def _connect(self) -> None:
        for client, group in self._members:
            for address in self._brokers.values():
                host, port = parse_address(address)
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(self._heartbeat(client, group))
                work = self._answer(client, group, reader, writer)
                self._answering.append(self._loop.create_task(work))

    async def _leave(self) -> None:
        for task in self._answering:
            task.cancel()
        await asyncio.wait(self._answering)

    def _heartbeat(self, client: str, group: str) -> bytes:
        topic = self.topic_of(group)
        consumer = ConsumerData(
            group_name=group,
            consume_type=ConsumeType.CONSUME_PASSIVELY,
            message_model=MessageModel.CLUSTERING,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            subscription_data_set=[Subscription(topic=topic, sub_string="*")],
        )
        body = membership.Heartbeat(
            client_id=client,
            consumer_data_set=[consumer],
            producer_data_set=[ProducerData(group_name="producers")],
        )
        return Command.request(RequestCode.HEART_BEAT, 1, {}, encode_body(body)).encode()

    async def _answer(
        self,
        client: str,
        group: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        frames = FrameReader()
        try:
            while data := await reader.read(65536):
                for frame in frames.feed(data):
                    command = read_command(frame)
                    if command.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
                        body = encode_body(self._running(client, group))
                        writer.write(command.reply(0, body=body).encode())
        finally:
            writer.close()

    def _running(self, client: str, group: str) -> client_calls.RunningInfo:
        topic = self.topic_of(group)
        queues = sort_queues(
            {MessageQueue(topic, broker, n) for broker in self._brokers for n in range(QUEUES)}
        )
        members = sorted(each for each, own in self._members if own == group)
        held = strategy_by_name("AVG").allocate(group, client, queues, members)
        return client_calls.RunningInfo(
            properties={"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY"},
            subscription_set=[Subscription(topic=topic, sub_string="*")],
            mq_table={queue: client_calls.ProcessQueueBody() for queue in held},
        )
