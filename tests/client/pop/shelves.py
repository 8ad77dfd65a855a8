"""A broker that hands messages out for pops, on a real socket, and remembers what was asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pocketmq.client.pop.consumer import PopConsumer
from pocketmq.net import Connection
from pocketmq.protocol import Command, decode_body
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.handles import PopQueue, TopicMark, write_message_offsets
from pocketmq.protocol.handles import write_start_offsets as write_starts
from pocketmq.protocol.header import Header
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.records import Record, encode_record
from pocketmq.protocol.requests import pop
from tests.client.servers import Directory, broker, route
from tests.net.peers import Recorder, serving

NO_MESSAGE_YET = 210
NOT_SUPPORTED = 3
POP_TIME = 1_700_000_000_000


def record(offset: int, body: bytes = b"", topic: str = "orders", **fields: Any) -> bytes:
    """A message of queue 0 as a broker stores it."""
    names: dict[str, str | None] = fields.pop("properties", {})
    return encode_record(
        Record(
            topic=topic.encode(),
            body=body or b"%d" % offset,
            queue_offset=offset,
            property_bytes=encode_properties(names),
            **fields,
        )
    )


class Shelf(Recorder):
    """Gives each message once; pops of an empty shelf are held until something comes."""

    def __init__(self, *, knows_batches: bool = True) -> None:
        super().__init__(self._answer)
        self.messages: list[bytes] = []
        self.refuses: set[int] = set()
        self.refusal = NOT_SUPPORTED
        if not knows_batches:
            self.refuses.add(Code.BATCH_ACK_MESSAGE)
        self.lost = 0
        """So many pops are not answered."""
        self._next = 0
        self._held: list[tuple[Connection, Command]] = []

    @property
    def held(self) -> int:
        """How many pops wait."""
        return len(self._held)

    def put(self, *records: bytes) -> None:
        """Put messages on the shelf and answer who waits."""
        self.messages += records
        held, self._held = self._held, []
        self._answer_all(held)

    def asked_for(self, code: int) -> list[Command]:
        return [request for request in self.requests if request.code == code]

    @property
    def acked(self) -> list[int]:
        """Offsets acknowledged one by one, and those acknowledged together."""
        alone = [int(each.ext["offset"]) for each in self.asked_for(Code.ACK_MESSAGE)]
        if Code.BATCH_ACK_MESSAGE in self.refuses:
            return alone
        together = [
            offset
            for each in self.asked_for(Code.BATCH_ACK_MESSAGE)
            for ack in decode_body(each.body, pop.BatchAcks).acks
            for offset in ack.acked_offsets()
        ]
        return alone + together

    def _answer(self, connection: Connection, requests: list[Command]) -> None:
        self._answer_all([(connection, request) for request in requests])

    def _answer_all(self, asked: list[tuple[Connection, Command]]) -> None:
        for connection, request in asked:
            if request.code in self.refuses:
                answer: Command | None = request.reply(self.refusal, "refused")
            elif request.code == Code.POP_MESSAGE:
                answer = self._pop(connection, request)
            elif request.code == Code.CHANGE_MESSAGE_INVISIBLETIME:
                hidden = int(request.ext["invisibleTime"])
                answer = _reply(
                    request,
                    pop.ChangeInvisibleTimeResponse(
                        pop_time=POP_TIME + 5, invisible_time=hidden, revive_qid=3
                    ),
                )
            else:
                answer = self.answer_other(request)
            if answer is not None and not request.is_oneway:
                connection.write(answer.encode())

    def answer_other(self, request: Command) -> Command:
        """Answer what is not about pops."""
        return request.reply(0)

    def _hold(self, connection: Connection, request: Command) -> Command | None:
        if int(request.ext["pollTime"]) == 0:
            return request.reply(NO_MESSAGE_YET, "none")
        self._held.append((connection, request))
        wait = int(request.ext["pollTime"]) / 1000
        asyncio.get_running_loop().call_later(wait, self._give_up, connection, request)
        return None

    def _give_up(self, connection: Connection, request: Command) -> None:
        if (connection, request) in self._held:
            self._held.remove((connection, request))
            connection.write(request.reply(NO_MESSAGE_YET, "none").encode())

    def _pop(self, connection: Connection, request: Command) -> Command | None:
        if not self.messages:
            return self._hold(connection, request)
        header = request.header(pop.PopRequest)
        taken = self.messages[: header.max_msg_nums]
        if self.lost:
            self.lost -= 1
            return None
        self.messages = self.messages[len(taken) :]
        first, self._next = self._next, self._next + len(taken)
        queue = PopQueue(TopicMark.NORMAL, 0)
        response = pop.PopResponse(
            pop_time=POP_TIME,
            invisible_time=header.invisible_time,
            revive_qid=2,
            rest_num=len(self.messages),
            start_offset_info=write_starts({queue: first}),
            msg_offset_info=write_message_offsets({queue: range(first, self._next)}),
        )
        return _reply(request, response, b"".join(taken))


def _reply(request: Command, header: Header, body: bytes = b"") -> Command:
    return request.reply(0, None, header, body=body)


@asynccontextmanager
async def popping(*shelves: Shelf, **settings: Any) -> AsyncIterator[PopConsumer]:
    """A consumer of `orders`, which is on all shelves."""
    async with AsyncExitStack() as stack:
        places = [(await stack.enter_async_context(serving(shelf)))[1] for shelf in shelves]
        named = [broker(f"broker-{number}", place) for number, place in enumerate(places)]
        directory = Directory({"orders": route(*named, queues=1)})
        _, address = await stack.enter_async_context(serving(directory))
        expression = settings.pop("expression", "*")
        consumer = PopConsumer(address, group="billing", **settings)
        async with consumer.subscribe("orders", expression):
            yield consumer
