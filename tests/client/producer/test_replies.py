"""Requests and replies, with a broker that hands replies on when a test wants it to."""

import asyncio
import uuid

import pytest

from pocketmq.balance.profile import V4
from pocketmq.errors import ClientClosed, InvalidInput, RequestTimedOut, SendFailed
from pocketmq.model import Message
from pocketmq.protocol import Command, DeliveryContext, ReceivedMessage, RequestCode
from pocketmq.protocol.property_text import decode_properties, encode_properties
from pocketmq.protocol.received import revive
from pocketmq.protocol.records import Record, encode_record
from pocketmq.protocol.requests.client_calls import PushReplyRequest
from tests.client.producer.stage import Stage, refuses, silent, stage, stores
from tests.loops import leap, leaping, until

QUESTION = Message("orders", b"how much?", tag="asked")
REPLY = int(RequestCode.SEND_REPLY_MESSAGE_V2)


async def asked(on: Stage) -> dict[str, str]:
    """The properties of the request, once it has come."""
    await until(lambda: on.brokers["broker-a"].sends, "a request")
    return decode_properties(on.brokers["broker-a"].sends[-1].ext["i"].encode())


async def push(on: Stage, number: str, body: bytes = b"42 EUR") -> Command:
    """Make the broker pass a reply on, and return the client's response."""
    header = PushReplyRequest(
        producer_group="repliers",
        topic="c_REPLY_TOPIC",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=1,
        flag=0,
        properties=f"CORRELATION_ID\x01{number}\x02",
        born_host="192.0.2.1:50000",
        store_host="192.0.2.2:10911",
        store_timestamp=2,
    )
    code = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
    (connection,) = on.brokers["broker-a"].open
    return await connection.request(Command.request(code, 0, header, body), 10.0)


async def test_the_reply_with_the_requests_number_is_the_answer() -> None:
    async with stage({"broker-a": stores}) as on:
        waiting = asyncio.create_task(on.producer.request(QUESTION, 10.0))
        properties = await asked(on)
        assert uuid.UUID(properties["CORRELATION_ID"]).version == 4
        assert properties["REPLY_TO_CLIENT"] == on.producer.session.client_id
        assert properties["TTL"] == "10000"
        assert (await push(on, "another's")).code == 0
        assert (await push(on, properties["CORRELATION_ID"])).code == 0
        reply = await waiting
        assert (reply.body, reply.topic) == (b"42 EUR", "c_REPLY_TOPIC")


@pytest.mark.parametrize("topic", ["orders", "new"])
async def test_brokers_know_the_client_before_it_asks(topic: str) -> None:
    """Replies come over any broker, and only to clients that have said who they are."""
    async with stage({"broker-a": stores}, profile=V4) as on:
        waiting = asyncio.create_task(on.producer.request(Message(topic, b"how much?"), 10.0))
        properties = await asked(on)
        codes = [request.code for request in on.brokers["broker-a"].requests]
        assert RequestCode.HEART_BEAT in codes[: codes.index(RequestCode.SEND_MESSAGE_V2)]
        await push(on, properties["CORRELATION_ID"])
        await waiting


async def test_a_reply_may_be_quicker_than_the_receipt() -> None:
    async with stage({"broker-a": silent}) as on:
        waiting = asyncio.create_task(on.producer.request(QUESTION, 1.0))
        properties = await asked(on)
        await push(on, properties["CORRELATION_ID"])
        assert (await waiting).body == b"42 EUR"


@leaping
async def test_no_reply_in_time() -> None:
    """One that comes later is taken off the broker's hands and dropped."""
    async with stage({"broker-a": stores}) as on:
        waiting = asyncio.create_task(on.producer.request(QUESTION, 9.5))
        properties = await asked(on)
        await on.producer.send(QUESTION)  # the receipt of the request came before this one
        await leap(9.5)
        with pytest.raises(RequestTimedOut) as caught:
            await waiting
        error = caught.value
        assert (error.timeout, error.outcome_unknown) == (9.5, True)
        assert str(error) == "broker-a: no response to the request to topic 'orders' within 9.5 s"
        assert (await push(on, properties["CORRELATION_ID"])).code == 0


async def test_a_request_that_cannot_be_sent_does_not_wait() -> None:
    async with stage({"broker-a": refuses(13)}) as on:
        with pytest.raises(SendFailed):
            await asyncio.wait_for(on.producer.request(QUESTION, 60.0), 10.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), 3_000_000.0])
async def test_how_long_to_wait_must_make_sense(seconds: float) -> None:
    async with stage({"broker-a": stores}) as on:
        with pytest.raises(InvalidInput, match="timeout must be in seconds"):
            await on.producer.request(QUESTION, seconds)


async def test_close_ends_the_waiting() -> None:
    async with stage({"broker-a": stores}) as on:
        waiting = asyncio.create_task(on.producer.request(QUESTION, 60.0))
        await asked(on)
        await on.producer.close()
        with pytest.raises(ClientClosed):
            await waiting


async def test_whoever_gives_up_leaves_nothing_behind() -> None:
    async with stage({"broker-a": silent}) as on:
        waiting = asyncio.create_task(on.producer.request(QUESTION, 60.0))
        await asked(on)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()
        await asyncio.wait_for(on.producer.close(), 10.0)


def request_message(**properties: str) -> ReceivedMessage:
    text = encode_properties(properties)
    return revive(
        encode_record(Record(topic=b"orders", body=b"how much?", property_bytes=text)),
        0,
        DeliveryContext("broker-a"),
    )


FULL = request_message(
    CORRELATION_ID="n-1", REPLY_TO_CLIENT="192.0.2.1@asker", TTL="3000", CLUSTER="c", colour="red"
)


@pytest.mark.parametrize("namespace", ["", "ns"])
async def test_a_reply_goes_to_the_clusters_own_topic(namespace: str) -> None:
    async with stage({"broker-a": stores}, namespace=namespace) as on:
        on.brokers["broker-a"].script[REPLY] = stores
        on.directory.routes["c_REPLY_TOPIC"] = on.directory.routes["orders"]
        receipt = await on.producer.reply(FULL, b"42 EUR", properties={"mood": "good"})
        assert receipt.ok
        (sent,) = on.brokers["broker-a"].asked_for(REPLY)
        assert (sent.ext["b"], sent.body) == ("c_REPLY_TOPIC", b"42 EUR")
        properties = decode_properties(sent.ext["i"].encode())
        assert {name: properties[name] for name in sorted(properties.keys() - {"UNIQ_KEY"})} == {
            **({"INSTANCE_ID": "ns"} if namespace else {}),
            "CORRELATION_ID": "n-1",
            "MSG_TYPE": "reply",
            "REPLY_TO_CLIENT": "192.0.2.1@asker",
            "TTL": "3000",
            "WAIT": "true",
            "mood": "good",
        }


async def test_a_message_that_asked_for_nothing_gets_no_reply() -> None:
    async with stage({"broker-a": stores}) as on:
        with pytest.raises(InvalidInput, match="no client waits for a reply"):
            await on.producer.reply(request_message(CLUSTER="c"), b"42 EUR")


async def test_a_reply_is_tried_at_every_broker() -> None:
    """Only the brokers that the waiting client has greeted can hand it on."""
    async with stage() as on:
        on.directory.routes["c_REPLY_TOPIC"] = on.directory.routes["orders"]
        on.brokers["broker-a"].script[REPLY] = refuses(1, "channel not found")
        on.brokers["broker-b"].script[REPLY] = stores
        for _ in range(4):
            assert (await on.producer.reply(FULL, b"42 EUR")).queue.broker_name == "broker-b"
