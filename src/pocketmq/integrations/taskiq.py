"""A broker of Taskiq: tasks are messages of a topic, workers are members of a group.

    broker = TaskiqBroker("127.0.0.1:9876")

    @broker.task
    async def bill(order: int) -> None: ...

    await bill.kiq(17)
    await bill.kicker().with_labels(delay=60).kiq(18)  # in a minute

Needs the extra `taskiq`. A task is acknowledged as Taskiq's `ack_type` says, once its result is
saved unless told otherwise; tasks of a worker that ended before are given to another one.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Any

from taskiq import AckableMessage, AsyncBroker, AsyncResultBackend, BrokerMessage

from pocketmq.client.consumer_options import PushConsumerSettings
from pocketmq.client.producer.producer import Producer
from pocketmq.client.producer_options import ProducerSettings
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.errors import InvalidInput
from pocketmq.model import Message
from pocketmq.protocol import ReceivedMessage

_DELAY = "delay"


class TaskiqBroker(AsyncBroker):
    """Sends tasks to a topic and receives them as a member of a group."""

    def __init__(
        self,
        address: str,
        *,
        topic: str = "taskiq",
        group: str = "taskiq",
        prefetch: int = 100,
        producer: ProducerSettings | None = None,
        consumer: PushConsumerSettings | None = None,
        result_backend: AsyncResultBackend[Any] | None = None,
        task_id_generator: Callable[[], str] | None = None,
    ) -> None:
        """Take the name servers' address, and what the clients and Taskiq are set to.

        A worker has at most `prefetch` tasks at a time that it has not acknowledged.
        """
        super().__init__(result_backend=result_backend, task_id_generator=task_id_generator)
        self._address = address
        self._topic = topic
        self._group = group
        self._producer = Producer(address, group=f"{group}-producers", **(producer or {}))
        settings: PushConsumerSettings = {"threads": prefetch, "consume_from": "first"}
        settings.update(consumer or {})
        self._consumer_settings = settings
        self._consumer: PushConsumer | None = None
        self._came: asyncio.Queue[AckableMessage] = asyncio.Queue()

    async def startup(self) -> None:
        """Start the producer, and whatever else is to start with the broker."""
        await super().startup()
        await self._producer.start()

    async def shutdown(self) -> None:
        """Stop; tasks that are not acknowledged are given to another worker."""
        try:
            if self._consumer is not None:
                await self._consumer.close(0.0)
            await self._producer.close()
        finally:
            await super().shutdown()

    async def kick(self, message: BrokerMessage) -> None:
        """Send a task; its label `delay` is the number of seconds until it is delivered."""
        task = Message(self._topic, message.message, tag=None, keys=[message.task_id])
        await self._producer.send(task, delay=_delay_of(message))

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yield tasks as they come."""
        if self._consumer is None:
            self._consumer = PushConsumer(
                self._address, group=self._group, **self._consumer_settings
            )
            self._consumer.subscribe(self._topic, "*", self._handle)
            await self._consumer.start()
        while True:
            yield await self._came.get()

    async def _handle(self, message: ReceivedMessage) -> None:
        """Return when the task is acknowledged: the message's offset is stored after that."""
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done = partial(_finish, acknowledged)
        self._came.put_nowait(AckableMessage(data=message.body, ack=done))
        await acknowledged


def _finish(acknowledged: "asyncio.Future[None]") -> None:
    if not acknowledged.done():
        acknowledged.set_result(None)


def _delay_of(message: BrokerMessage) -> float | None:
    if _DELAY not in message.labels:
        return None
    given = message.labels[_DELAY]
    try:
        return float(given)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"the task label 'delay' must be a number of seconds, not {given!r}"
        ) from error
