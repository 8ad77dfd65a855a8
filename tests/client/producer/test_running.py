"""Transactions, replies and traces on a cluster of ours, with consumers on the other side."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pocketmq.client.producer.producer import Producer
from pocketmq.embedded.aio import Cluster
from pocketmq.embedded.settings import Setting
from pocketmq.model import Message, TransactionState
from pocketmq.protocol import ReceivedMessage, trace_text
from tests.client.group.groups import Member, cluster
from tests.loops import until

COMMIT, ROLLBACK = TransactionState.COMMIT, TransactionState.ROLLBACK
UNKNOWN = TransactionState.UNKNOWN
ASKS_SOON: dict[str, Setting] = {"transactionTimeOut": 300, "transactionCheckInterval": 200}


@asynccontextmanager
async def reading(running: Cluster, topic: str, group: str = "billing") -> AsyncIterator[Member]:
    """A consumer that keeps what it gets."""
    member = Member(running.address, "reader", group)
    member.consumer.subscribe(topic, handler=member.handle)
    async with member.consumer:
        yield member


async def test_consumers_see_what_is_committed_and_nothing_else() -> None:
    states = {b"rolled back": ROLLBACK, b"undecided": UNKNOWN, b"committed": COMMIT}

    async def local(message: Message, _: str) -> TransactionState:
        return states[message.body]

    async with cluster() as running, Producer(running.address, group="shop") as producer:
        receipts = [
            await producer.send_in_transaction(Message("orders", body), local) for body in states
        ]
        assert [receipt.state for receipt in receipts] == list(states.values())
        async with reading(running, "orders") as reader:
            await until(lambda: reader.got, "a message")
            (message,) = reader.got
        assert (message.body, message.message_id) == (b"committed", receipts[2].message_id)


async def test_an_end_that_nobody_knew_is_asked_for() -> None:
    asked: list[tuple[bytes, str | None]] = []

    async def check(message: ReceivedMessage) -> TransactionState:
        asked.append((message.body, message.transaction_id))
        if len(asked) == 1:
            raise LookupError("the database is away")
        return COMMIT

    async def local(_: Message, __: str) -> TransactionState:
        raise RuntimeError("crashed in the middle")

    async with (
        cluster(config=ASKS_SOON) as running,
        Producer(running.address, group="shop", check=check) as producer,
        reading(running, "orders") as reader,
    ):
        receipt = await producer.send_in_transaction(Message("orders", b"42 EUR"), local)
        await until(lambda: reader.got, "a message")
        assert [message.message_id for message in reader.got] == [receipt.message_id]
    assert asked == [(b"42 EUR", receipt.message_id)] * 2


HALF_SENDER = """
import asyncio, sys
from pocketmq.client.producer.producer import Producer
from pocketmq.model.message import Message

async def undecided(message, transaction_id):
    print(transaction_id, flush=True)
    await asyncio.Event().wait()

async def main():
    patient = {"send_timeout": 30.0, "request_timeout": 30.0}
    async with Producer(sys.argv[1], group="shop", **patient) as producer:
        await producer.send_in_transaction(Message("orders", b"42 EUR"), undecided)

asyncio.run(main())
"""


async def test_another_producer_answers_for_one_that_was_killed() -> None:
    asked: list[str | None] = []

    def check(message: ReceivedMessage) -> TransactionState:
        asked.append(message.transaction_id)
        return COMMIT

    async with (
        cluster(config=ASKS_SOON) as running,
        Producer(running.address, group="shop", check=check),
        reading(running, "orders") as reader,
    ):
        dying = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HALF_SENDER, running.address, stdout=asyncio.subprocess.PIPE
        )
        assert dying.stdout is not None
        transaction_id = (await dying.stdout.readline()).decode().strip()
        dying.kill()
        await dying.wait()
        await until(lambda: reader.got, "a message")
        assert [message.message_id for message in reader.got] == [transaction_id]
    assert asked == [transaction_id]


async def test_a_handler_replies_to_the_client_that_waits() -> None:
    async with (
        cluster(2, 2, "questions") as running,
        Producer(running.address, group="askers") as asking,
        Producer(running.address, group="repliers") as replying,
    ):
        member = Member(running.address, "replier")

        async def reply(message: ReceivedMessage) -> None:
            receipt = await replying.reply(
                message, b"you said " + message.body, properties={"mood": "good"}
            )
            assert receipt.ok

        member.consumer.subscribe("questions", handler=reply)
        long = b"so much " * 1000
        async with member.consumer:
            replies = await asyncio.gather(
                *(asking.request(Message("questions", body), 20.0) for body in (b"hello", long))
            )
    assert [each.body for each in replies] == [b"you said hello", b"you said " + long]
    assert [each.user_properties["mood"] for each in replies] == ["good", "good"]


KINDS = (trace_text.TracedSend, trace_text.TracedDelivery, trace_text.TracedHandling)


def events_of(watcher: Member) -> list[trace_text.Traced]:
    """All that came, in however many messages it was sent."""
    texts = [found.body.decode() for found in watcher.got]
    return [each for text in texts for each in trace_text.decode_traced(text)]


def traced(watcher: Member, kind: type[trace_text.Traced]) -> set[str]:
    """The ids of messages that such an event tells of."""
    return {each.message_id for each in events_of(watcher) if isinstance(each, kind)}


async def test_a_message_is_traced_from_its_producer_to_its_handler() -> None:
    """Handlers that fail are told apart, in threads and on the loop."""
    tries: list[str] = []

    def handle(message: ReceivedMessage) -> None:
        tries.append(message.message_id)
        if message.body == b"bad":
            raise LookupError("no such order")

    async with (
        cluster(config={"traceTopicEnable": True}) as running,
        reading(running, "RMQ_SYS_TRACE_TOPIC", group="watchers") as watcher,
    ):
        async with Producer(running.address, group="shop", trace=True) as producer:
            good, bad = [
                (await producer.send(Message("orders", body, keys=["A17"]))).message_id
                for body in (b"good", b"bad")
            ]
        member = Member(running.address, "handler", trace=True)
        member.consumer.subscribe("orders", handler=handle)
        async with member.consumer:
            await until(lambda: {good, bad} <= set(tries), "both messages")
        await until(lambda: all(traced(watcher, kind) == {good, bad} for kind in KINDS), "traces")
    events = events_of(watcher)
    sent = [each for each in events if isinstance(each, trace_text.TracedSend)]
    assert {each.message_id for each in sent} == {good, bad}
    begun = {
        each.message_id: each for each in events if isinstance(each, trace_text.TracedDelivery)
    }
    ended = {
        each.message_id: each for each in events if isinstance(each, trace_text.TracedHandling)
    }
    assert begun.keys() == ended.keys() == {good, bad}
    assert (ended[good].ok, ended[good].handled_as) == (True, trace_text.HandledAs.SUCCESS)
    assert (ended[bad].ok, ended[bad].handled_as) == (False, trace_text.HandledAs.RAISED)
    for message_id in (good, bad):
        assert begun[message_id].request_id == ended[message_id].request_id
        assert (begun[message_id].group, begun[message_id].keys) == ("billing", "A17")
