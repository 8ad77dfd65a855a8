"""The requests of pop consumption on the event loop, each sent to one broker and answered in time.

Which broker to ask, and when, is the consumer's decision; what is asked is in `questions`. Names
are those of the wire.
"""

import asyncio

from pocketmq.client.pop.popped import PopResult
from pocketmq.client.pop.questions import ANY_QUEUE, Acks, PopQuestions
from pocketmq.client.questions.asking import Ask, run
from pocketmq.client.session import Session
from pocketmq.model import MessageQueue, Subscription
from pocketmq.protocol import Command
from pocketmq.protocol.handles import PopHandle

__all__ = ["ANY_QUEUE", "PopRequests"]

_MOST_AT_ONCE = 32


class PopRequests:
    """The pop requests of one group. Belongs to one event loop."""

    def __init__(self, session: Session, group: str, *, ordered: bool, from_first: bool) -> None:
        self._brokers = session.brokers
        self.questions = PopQuestions(
            group, ordered=ordered, from_first=from_first, grace=session.options.request_timeout
        )

    async def carry(self, asked: Ask) -> Command:
        """Ask the master of a queue's broker.

        Raises `BrokerNotFound`, `ServerError`, `TransportError`.
        """
        assert asked.queue is not None
        return await self._brokers.call(
            asked.queue.broker_name,
            asked.code,
            asked.header,
            asked.body,
            timeout=asked.timeout,
            master_only=True,
            accept=asked.accept,
        )

    async def pop(
        self,
        queue: MessageQueue,
        subscription: Subscription,
        name: str,
        *,
        most: int,
        invisible: float,
        wait: float,
        attempt: str | None = None,
    ) -> PopResult:
        """Take messages of a queue; return none if the broker has none for `wait` seconds.

        `name` is what the application calls the topic. Raises `BrokerNotFound`, `ServerError`,
        `TransportError`, `ProtocolError`.
        """
        question = self.questions.pop(
            queue,
            subscription,
            name,
            most=most,
            invisible=invisible,
            wait=wait,
            asked=asyncio.get_running_loop().time(),
            attempt=attempt,
        )
        return await run(question, self.carry)

    async def ack(self, broker: str, acks: Acks) -> None:
        """Acknowledge messages of one broker, each by its topic and handle."""
        acks = self.questions.settled(acks)
        if len(acks) == 1:  # a task for it would cost more than the request
            await run(self.questions.ack_one(broker, *acks[0]), self.carry)
            return
        if await run(self.questions.ack_together(broker, acks), self.carry):
            return
        for start in range(0, len(acks), _MOST_AT_ONCE):
            some = acks[start : start + _MOST_AT_ONCE]
            await asyncio.gather(
                *(run(self.questions.ack_one(broker, *each), self.carry) for each in some)
            )

    async def change_invisible(self, topic: str, handle: PopHandle, invisible: float) -> PopHandle:
        """Hide a message for `invisible` seconds from now on; return its new handle."""
        now = asyncio.get_running_loop().time()
        question = self.questions.change_invisible(topic, handle, invisible, now)
        return await run(question, self.carry)
