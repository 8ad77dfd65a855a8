"""Messages sent one at a time to members of a group that pop, each when all of them wait again.

So whose turn it is depends on who holds pops, not on how quick the machine is.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from pocketmq.client.producer.producer import Producer
from pocketmq.model import Message, MessageQueue, MessageRequestMode
from pocketmq.protocol import RequestCode, encode_body
from pocketmq.protocol.requests import assignment, pop
from tests.loops import until
from tests.wire_client import WireClient


class Turns:
    """A topic and a group of the same name, on brokers known by their addresses."""

    def __init__(self, name: str, brokers: Mapping[str, str], patience: float) -> None:
        self.name = name
        self.brokers = brokers
        self.members = 0
        self._patience = patience  # seconds in all for members that hold no pops

    def push_consumers_pop(self) -> None:
        """Make push consumers of the group pop any queue."""
        mode = assignment.RequestMode(
            topic=self.name,
            consumer_group=self.name,
            mode=MessageRequestMode.POP,
            pop_share_queue_num=0,
        )
        for address in self.brokers.values():
            with WireClient(address) as client:
                answer = client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=encode_body(mode))
                assert answer.code == 0, answer.remark

    def held(self) -> int:
        """Return how many pops the broker holds that holds the fewest."""
        asked = pop.PollingInfoRequest(consumer_group=self.name, topic=self.name, queue_id=-1)
        counts = []
        for address in self.brokers.values():
            with WireClient(address) as client:
                answer = client.ask(RequestCode.POLLING_INFO, asked)
                counts.append(answer.header(pop.PollingInfoResponse).polling_num)
        return min(counts)

    async def send(self, name_server: str, turns: int, taken: Callable[[], int]) -> int:
        """Send so many messages to each broker; return how many in all."""
        sent = 0
        async with Producer(name_server, group="senders", send_timeout=30.0) as producer:
            for _ in range(turns):
                for broker in self.brokers:
                    await self._all_hold()
                    queue = MessageQueue(topic=self.name, broker_name=broker, queue_id=0)
                    await producer.send(Message(self.name, b"%d" % sent), queue=queue)
                    sent += 1
                    await until(lambda: taken() >= sent, "the message to be taken")  # noqa: B023
        return sent

    async def _all_hold(self) -> None:
        """Wait until every member holds a pop at every broker, within what patience is left."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        with suppress(AssertionError):  # shares are what the tests are about
            await until(lambda: self.held() >= self.members, "all to hold", self._patience)
        self._patience -= loop.time() - began
