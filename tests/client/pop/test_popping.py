"""Push consumers pop where the broker says so: acks, later tries, limits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pocketmq.client.push.consumer import PushConsumer
from pocketmq.client.push.handlers import RetryLater
from pocketmq.model import MessageQueue, MessageRequestMode, property_names
from pocketmq.protocol import Command, ReceivedMessage, encode_body
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.requests.assignment import Assignments, QueueAssignment
from tests.client.group.groups import BRISK
from tests.client.pop.shelves import Shelf, record
from tests.client.servers import Directory, broker, route
from tests.loops import leap, leaping, until
from tests.net.peers import serving

ANY = MessageQueue("orders", "broker-0", -1)


class Assigning(Shelf):
    """A shelf that tells members to pop from it, all queues as one."""

    def answer_other(self, request: Command) -> Command:
        if request.code == Code.QUERY_ASSIGNMENT:
            assigned = QueueAssignment(message_queue=ANY, mode=MessageRequestMode.POP)
            body = encode_body(Assignments(message_queue_assignments=[assigned]))
            return request.reply(0, body=body)
        return super().answer_other(request)


@asynccontextmanager
async def pushing(
    shelf: Shelf, handler: Any, expression: str = "*", **settings: Any
) -> AsyncIterator[PushConsumer]:
    async with serving(shelf) as (_, place):
        directory = Directory({"orders": route(broker("broker-0", place))})
        async with serving(directory) as (_, address):
            consumer = PushConsumer(
                address, group="billing", client_rebalance=False, profile=BRISK, **settings
            )
            consumer.subscribe("orders", expression, handler)
            async with consumer:
                yield consumer


async def test_what_is_handled_is_acknowledged_and_what_fails_is_hidden_for_longer() -> None:
    shelf = Assigning()
    shelf.put(*(record(n) for n in range(6)))
    got: list[bytes] = []

    async def handle(message: ReceivedMessage) -> None:
        got.append(message.body)
        if message.body == b"2":
            raise ZeroDivisionError
        if message.body == b"4":
            raise RetryLater(delay_level=3)

    async with pushing(shelf, handle) as consumer:
        await until(lambda: len(shelf.acked) == 4, "acks")
        await until(lambda: len(_hidden(shelf)) == 2, "what failed to be hidden")
        assert _hidden(shelf) == {"2": "10000", "4": "120000"}
        assert sorted(shelf.acked) == [0, 1, 3, 5]
        assert got == [b"%d" % n for n in range(6)]
        assert consumer.assignment() == {"orders": (ANY,)}
        assert {r.ext["queueId"] for r in shelf.asked_for(Code.POP_MESSAGE)} == {"-1"}


def _hidden(shelf: Shelf) -> dict[str, str]:
    changes = shelf.asked_for(Code.CHANGE_MESSAGE_INVISIBLETIME)
    return {request.ext["offset"]: request.ext["invisibleTime"] for request in changes}


async def test_plain_handlers_are_called_with_batches() -> None:
    shelf = Assigning()
    shelf.put(*(record(n) for n in range(10)))
    sizes: list[int] = []

    def handle(messages: list[ReceivedMessage]) -> None:
        sizes.append(len(messages))

    async with pushing(shelf, handle, handler_batch=5):
        await until(lambda: len(shelf.acked) == 10, "acks")
        assert sizes == [5, 5]


async def test_nothing_is_popped_while_too_many_messages_are_under_handlers() -> None:
    shelf = Assigning()
    shelf.put(*(record(n) for n in range(20)))
    gate = asyncio.Event()

    async def handle(_: ReceivedMessage) -> None:
        await gate.wait()

    async with pushing(shelf, handle, pop_batch=4, pop_limit=7) as consumer:
        (held,) = await _popped(consumer)
        await until(lambda: held.woken is not None, "the pops to pause")
        assert len(shelf.asked_for(Code.POP_MESSAGE)) == 2
        gate.set()
        await until(lambda: len(shelf.acked) == 20, "all acks")


async def _popped(consumer: PushConsumer) -> list[Any]:
    await until(lambda: consumer.assignment()["orders"], "the assignment")
    joined = consumer._life.member
    assert joined is not None
    return list(joined.parts.queues.popped.values())


async def test_other_tags_and_too_many_tries_are_acknowledged_without_a_handler() -> None:
    shelf = Assigning()
    tags = {property_names.TAGS: "Aa"}
    shelf.put(
        record(0, properties=tags),
        record(1, properties={property_names.TAGS: "BB"}),
        record(2, properties=tags, reconsume_times=17),
    )
    got: list[bytes] = []

    async def handle(message: ReceivedMessage) -> None:
        got.append(message.body)

    async with pushing(shelf, handle, "Aa"):
        await until(lambda: sorted(shelf.acked) == [0, 1, 2], "all acks")
        assert got == [b"0"]


@leaping
async def test_a_message_that_is_hidden_no_more_is_not_given_to_a_handler() -> None:
    """Another member has it by now."""
    shelf = Assigning()
    shelf.put(record(0), record(1))
    gate = asyncio.Event()
    got: list[bytes] = []

    async def handle(message: ReceivedMessage) -> None:
        got.append(message.body)
        await gate.wait()

    async with pushing(shelf, handle, threads=1) as consumer:
        await until(lambda: got == [b"0"], "the first call")
        (held,) = await _popped(consumer)
        await leap(61)
        gate.set()
        await until(lambda: held.popped.waiting == 0, "both to be settled")
        assert got == [b"0"]
        assert shelf.acked == []
