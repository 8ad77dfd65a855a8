"""What brokers ask of a client, over a real connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pocketmq.client.inbound import MOST_AT_ONCE
from pocketmq.client.session import Session
from pocketmq.errors import ConsumerOffline, InvalidInput
from pocketmq.model import MessageQueue
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, decode_body, encode_body
from pocketmq.protocol.header import Header
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.records import Record, encode_record
from pocketmq.protocol.requests import client_calls, offsets, sending
from tests.client.members import Consuming, Producing
from tests.client.servers import Directory, Scripted, broker, route, serving, session_on
from tests.loops import until

RUNNING_INFO = client_calls.GetConsumerRunningInfoRequest(consumer_group="billing", client_id="c")


class Asked:
    """A session with its members, and the broker's end of their connection."""

    def __init__(self, session: Session, connection: Connection) -> None:
        self.session = session
        self.connection = connection
        self.producer = Producing("shop", waits_for="replies")
        self.consumer = Consuming("billing")
        session.add_producer(self.producer)
        session.add_consumer(self.consumer)

    async def ask(self, code: int, header: Header | None = None, body: bytes = b"") -> Command:
        return await self.connection.request(Command.request(code, 0, header, body), 10.0)

    def tell(self, code: int, header: Header | None = None, body: bytes = b"") -> None:
        self.connection.send_oneway(Command.request(code, 0, header, body))


@asynccontextmanager
async def asked() -> AsyncIterator[Asked]:
    server = Scripted({1: lambda request: request.reply(0), 34: lambda request: request.reply(0)})
    async with serving(server) as (_, address):
        directory = Directory({"orders": route(broker("a", address))})
        async with serving(directory) as (_, names), session_on(names) as session:
            await session.fetch_routes(["orders"])
            await session.brokers.call("a", 1)
            yield Asked(session, server.opened[0])


def half_message(**properties: str) -> bytes:
    return encode_record(
        Record(topic=b"orders", body=b"hello", property_bytes=encode_properties(properties))
    )


async def test_changed_members_reach_the_group_they_concern() -> None:
    async with asked() as here:
        other = Consuming("audit")
        here.session.add_consumer(other)
        here.connection.send_oneway(Command.request(40, 0, {"consumerGroup": "nobody"}))
        here.connection.send_oneway(Command.request(40, 0, {"consumerGroup": "billing"}))
        await until(lambda: here.consumer.ids_changed == 1, "the notice")
        assert other.ids_changed == 0


async def test_a_transaction_is_checked_with_the_producer_that_began_it() -> None:
    header = sending.CheckTransactionStateRequest(tran_state_table_offset=1, commit_log_offset=42)
    async with asked() as here:
        here.tell(39, header, half_message(PGROUP="nobody"))
        here.tell(39, header, half_message())
        here.tell(39, header, half_message(PGROUP="shop"))
        await until(lambda: here.producer.checks, "the check")
        address = here.session.addresses.master("a")
        assert here.producer.checks == [("orders", 42, address)]


async def test_a_reply_goes_to_the_producer_that_waits_for_it() -> None:
    def header(topic: str) -> client_calls.PushReplyRequest:
        return client_calls.PushReplyRequest(
            producer_group="who replies",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=0,
            sys_flag=0,
            born_timestamp=0,
            flag=0,
            born_host="127.0.0.1:1",
            store_host="127.0.0.1:2",
            store_timestamp=0,
        )

    async with asked() as here:
        assert (await here.ask(326, header("replies"), b"yes")).code == 0
        assert (await here.ask(326, header("others"), b"no")).code == 0
        assert here.producer.replies == [b"yes"]


async def test_offsets_can_be_reset_and_asked_for() -> None:
    queue = MessageQueue("orders", "broker-0", 1)
    reset = offsets.ResetOffsetRequest(group="billing", topic="orders", timestamp=-1, is_force=True)
    async with asked() as here:
        here.tell(220, reset, encode_body(offsets.ResetOffset(offset_table={queue: 7})))
        await until(lambda: here.consumer.resets, "the reset")
        assert here.consumer.resets == [("orders", {queue: 7})]
        answer = await here.ask(
            221, client_calls.GetConsumerStatusRequest(topic="orders", group="billing")
        )
        status = decode_body(answer.body, offsets.ConsumerStatus)
        assert status.message_queue_table == {MessageQueue("orders", "broker-0", 3): 41}


async def test_a_consumer_gives_an_account_of_itself() -> None:
    async with asked() as here:
        answer = await here.ask(307, RUNNING_INFO)
        assert decode_body(answer.body, client_calls.RunningInfo) == here.consumer.info
        missing = client_calls.GetConsumerRunningInfoRequest(consumer_group="nobody", client_id="c")
        answer = await here.ask(307, missing)
        assert (answer.code, answer.remark) == (
            1,
            "The Consumer Group <nobody> not exist in this consumer",
        )


async def test_a_message_is_consumed_on_demand() -> None:
    header = client_calls.ConsumeDirectlyRequest(consumer_group="billing", broker_name="broker-0")
    async with asked() as here:
        answer = await here.ask(309, header, half_message())
        result = decode_body(answer.body, client_calls.DirectConsumeResult)
        assert result.remark == "broker-0 hello"
        broken = await here.ask(309, header, half_message()[:20])
        assert broken.code == 1
        none = await here.ask(309, header)
        assert none.code == 1
        assert "0 messages where one was expected" in str(none.remark)


async def test_an_unknown_request_is_answered_and_costs_nothing() -> None:
    async with asked() as here:
        answer = await here.ask(4711)
        assert (answer.code, answer.remark) == (3, "request code 4711 is not supported by clients")
        assert (await here.ask(307, RUNNING_INFO)).code == 0


@pytest.mark.parametrize(
    ("failure", "code", "remark"),
    [
        (ValueError("oh"), 1, "ValueError: oh"),
        (InvalidInput("not so"), 1, "not so"),
        (ConsumerOffline(206, "asleep"), 206, "asleep"),
    ],
    ids=["a bug", "an error of ours", "a chosen answer"],
)
async def test_a_member_that_fails_costs_its_answer_only(
    failure: Exception, code: int, remark: str
) -> None:
    async with asked() as here:
        here.consumer.failure = failure
        answer = await here.ask(307, RUNNING_INFO)
        assert (answer.code, answer.remark) == (code, remark)
        here.consumer.failure = None
        assert (await here.ask(307, RUNNING_INFO)).code == 0


async def test_a_header_that_makes_no_sense_is_answered() -> None:
    async with asked() as here:
        answer = await here.ask(307)
        assert answer.code == 1
        assert "consumerGroup" in str(answer.remark)


async def test_too_many_calls_at_once_are_turned_away() -> None:
    gate = asyncio.Event()

    class Slow(Consuming):
        async def running_info(self, *, with_stacks: bool) -> client_calls.RunningInfo:
            await gate.wait()
            return self.info

    async with asked() as here:
        here.session.add_consumer(Slow("slow"))
        header = client_calls.GetConsumerRunningInfoRequest(consumer_group="slow", client_id="c")
        calls = [asyncio.create_task(here.ask(307, header)) for _ in range(MOST_AT_ONCE)]
        await until(lambda: len(here.session.tasks) >= MOST_AT_ONCE, "all calls to be under way")
        assert (await here.ask(307, RUNNING_INFO)).code == 2
        gate.set()
        assert {answer.code for answer in await asyncio.gather(*calls)} == {0}
        assert (await here.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, RUNNING_INFO)).code == 0
