"""A scripted broker that stores messages and batches, and answers as Apache's brokers do."""

import asyncio
from typing import NamedTuple

from pocketmq.errors import ResponseCode
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.batch import decode_batch
from pocketmq.protocol.property_text import decode_properties
from tests.client.producer.stage import TestBroker


class Kept(NamedTuple):
    """A message as it was stored."""

    body: bytes
    properties: dict[str, str]
    place: str


class Storing:
    """Stores what it is sent, in order; holds its answers back while `held`."""

    def __init__(self, broker: TestBroker, *, name: int = 1, held: bool = False) -> None:
        self.queues: dict[int, list[Kept]] = {}
        self.requests: list[list[bytes]] = []
        """The bodies of each request."""
        self.codes: list[int] = []
        self.bad: set[bytes] = set()
        """A request with one of these bodies is refused as a whole, with `refusal`."""
        self.refusal = ResponseCode.MESSAGE_ILLEGAL
        self.remark = "illegal"
        self.most = 10**9
        """Messages of a batch; one with more is refused, too."""
        self.held = held
        self._name = name
        self._broker = broker
        self._answers: list[Command] = []
        broker.say = self.say

    def say(self, request: Command) -> Command | None:
        answer = self._answer(request)
        if not self.held:
            return answer
        self._answers.append(answer)
        return None

    def _answer(self, request: Command) -> Command:
        if request.code == RequestCode.SEND_BATCH_MESSAGE:
            parts = [(each.body, each.property_bytes) for each in decode_batch(request.body)]
        else:
            parts = [(request.body, request.ext["i"].encode())]
        self.requests.append([body for body, _ in parts])
        self.codes.append(request.code)
        if self.bad.intersection(self.requests[-1]) or len(parts) > self.most:
            return request.reply(self.refusal, self.remark)
        queue_id = int(request.ext["e"])
        queue = self.queues.setdefault(queue_id, [])
        first = len(queue)
        for body, text in parts:
            place = f"{self._name:016X}{queue_id:08X}{len(queue):08X}"
            queue.append(Kept(body, decode_properties(text), place))
        places = ",".join(each.place for each in queue[first:])
        fields = {"msgId": places, "queueId": str(queue_id), "queueOffset": str(first)}
        return request.reply(0, ext=fields)

    @property
    def waiting(self) -> int:
        """Answers held back."""
        return len(self._answers)

    def answer(self) -> None:
        """Answer what was held back."""
        answers, self._answers = self._answers, []
        (connection,) = self._broker.open
        connection.write(*[each.encode() for each in answers])

    def go_on(self) -> None:
        """Answer what was held back, and hold nothing back any more."""
        self.held = False
        self.answer()

    def cut(self) -> None:
        """Close all connections."""
        self._answers.clear()
        for connection in self._broker.open:
            connection.abort()

    @property
    def bodies(self) -> list[bytes]:
        """The bodies stored, queue by queue."""
        return [each.body for queue in self.queues.values() for each in queue]


async def turns(count: int = 5) -> None:
    """Let the loop turn a few times."""
    for _ in range(count):
        await asyncio.sleep(0)
