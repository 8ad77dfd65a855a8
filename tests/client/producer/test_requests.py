"""Requests as bytes, and answers as receipts."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.client.calls import Fields
from pocketmq.client.producer.requests import Outgoing, RequestWriter, read_receipt
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import HeaderMalformed, NoPermission, TopicNotFound
from pocketmq.model import MessageQueue, SendReceipt, SendStatus
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader, SerializeType
from pocketmq.protocol.requests.sending import SendRequestV2

QUEUE = MessageQueue("orders", "broker-a", 3)
OPTIONS = ProducerOptions(group="shop")
PLAIN = Outgoing("orders", b"42 EUR", "UNIQ_KEY\1A\2WAIT\1true\2", "A")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
int32 = st.integers(-(2**31), 2**31 - 1)
outgoing = st.builds(
    Outgoing,
    st.just("orders"),
    st.binary(min_size=1, max_size=50),
    texts,
    st.text("0123456789ABCDEF", min_size=1, max_size=32),
    int32,
    int32,
    st.sampled_from([310, 320, 325]),
    st.just(()),
    st.none() | st.just("B"),
    st.integers(0, 20),
    st.none() | st.integers(0, 20),
)
queues = st.builds(MessageQueue, st.just("orders"), texts, st.integers(0, 100))


def one_command(frame: bytes) -> Command:
    (found,) = FrameReader().feed(frame)
    return read_command(found)


@given(outgoing, queues, int32, st.integers(0, 2**53), st.booleans())
def test_a_template_writes_what_the_header_would(
    message: Outgoing, queue: MessageQueue, opaque: int, born_ms: int, oneway: bool
) -> None:
    writer = RequestWriter("shop", OPTIONS)
    expected = Command.request(
        message.code,
        opaque,
        SendRequestV2(
            producer_group="shop",
            topic="orders",
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue.queue_id,
            sys_flag=message.sys_flag,
            born_timestamp=born_ms,
            flag=message.flag,
            properties=message.properties,
            reconsume_times=message.reconsume_times,
            unit_mode=False,
            max_reconsume_times=message.max_reconsume_times,
            batch=message.batch_id is not None,
            bname=queue.broker_name,
        ),
        message.body,
        oneway=oneway,
    )
    for _ in range(2):  # made, then remembered
        frame = writer.frame(message, queue, opaque, born_ms, oneway=oneway)
        assert one_command(frame) == expected


def test_a_header_reads_as_the_one_of_a_java_producer() -> None:
    java = (
        b'{"code":310,"extFields":{"a":"shop","b":"orders","c":"TBW102","d":"4","e":"3","f":"0",'
        b'"g":"1794707172145","h":"0","i":"UNIQ_KEY\\u0001A\\u0002WAIT\\u0001true\\u0002",'
        b'"j":"0","k":"false","m":"false","n":"broker-a"},"flag":0,"language":"PYTHON",'
        b'"opaque":2,"serializeTypeCurrentRPC":"JSON","version":479}'
    )
    frame = RequestWriter("shop", OPTIONS).frame(PLAIN, QUEUE, 2, 1794707172145)
    assert frame[8:] == java + b"42 EUR"


def test_queues_that_are_equal_but_not_the_same_have_one_header() -> None:
    writer = RequestWriter("shop", OPTIONS)
    again = MessageQueue("orders", "broker-a", 3)
    assert writer.frame(PLAIN, QUEUE, 1, 5) == writer.frame(PLAIN, again, 1, 5)
    batch = msgspec.structs.replace(PLAIN, code=320, batch_id="B")
    assert one_command(writer.frame(batch, QUEUE, 1, 5)).ext["m"] == "true"
    assert one_command(writer.frame(PLAIN, QUEUE, 1, 5)).ext["m"] == "false"


def test_hooks_complete_the_request_and_see_its_body() -> None:
    seen: list[tuple[int, bytes]] = []

    def as_command(code: int, fields: Fields, body: bytes) -> Command:
        seen.append((code, body))
        assert isinstance(fields, SendRequestV2)
        return Command.request(code, 0, fields.to_ext() | {"Signature": "s"}, body)

    writer = RequestWriter("shop", OPTIONS, as_command)
    command = one_command(writer.frame(PLAIN, QUEUE, 9, 5, oneway=True))
    assert seen == [(310, b"42 EUR")]
    assert command.ext["Signature"] == "s"
    assert (command.opaque, command.is_oneway) == (9, True)


STORED = {"msgId": "7F0000010000", "queueId": "3", "queueOffset": "12"}
RECEIPT = SendReceipt(
    status=SendStatus.SEND_OK,
    message_id="A",
    offset_message_id="7F0000010000",
    queue=QUEUE,
    queue_offset=12,
)


def answered(code: int, ext: dict[str, str], serialize: int = SerializeType.JSON) -> Command:
    """An answer as it arrives."""
    request = Command.request(310, 1, serialize=serialize)
    return one_command(request.reply(code, None, ext).encode())


@pytest.mark.parametrize("serialize", SerializeType)
@pytest.mark.parametrize(
    ("ext", "changes"),
    [
        ({}, {}),
        (
            {"transactionId": "T", "recallHandle": "H"},
            {"transaction_id": "T", "recall_handle": "H"},
        ),
        ({"MSG_REGION": "eu", "TRACE_ON": "false"}, {"region_id": "eu", "trace_on": False}),
        ({"MSG_REGION": "", "TRACE_ON": "FALSE"}, {}),
        ({"unknown": "x"}, {}),
    ],
)
def test_an_answer_becomes_a_receipt(
    ext: dict[str, str], changes: dict[str, object], serialize: SerializeType
) -> None:
    answer = answered(0, STORED | ext, serialize)
    receipt = read_receipt(answer, PLAIN, QUEUE, "a:1")
    assert receipt == msgspec.structs.replace(RECEIPT, **changes)


def test_the_broker_says_which_queue_it_was_and_the_namespace_is_left_out() -> None:
    answer = answered(0, STORED | {"queueId": "5"})
    asked = MessageQueue("ours%mine", "broker-a", 3)
    receipt = read_receipt(answer, PLAIN, asked, "a:1", "ours")
    assert receipt.queue == MessageQueue("mine", "broker-a", 5)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (10, SendStatus.FLUSH_DISK_TIMEOUT),
        (12, SendStatus.FLUSH_SLAVE_TIMEOUT),
        (11, SendStatus.SLAVE_NOT_AVAILABLE),
    ],
)
def test_less_safely_stored_is_stored(code: int, status: SendStatus) -> None:
    receipt = read_receipt(answered(code, STORED), PLAIN, QUEUE, "a:1")
    assert receipt == msgspec.structs.replace(RECEIPT, status=status)


def test_a_batch_stored_as_one_has_one_id_and_else_that_of_each() -> None:
    batch = Outgoing("orders", b"..", "", "A,B", code=320, batch_id="C")
    apart = read_receipt(answered(0, STORED), batch, QUEUE, "a:1")
    inner = read_receipt(answered(0, STORED | {"batchUniqId": "C"}), batch, QUEUE, "a:1")
    assert (apart.message_id, inner.message_id) == ("A,B", "C")


def test_a_refusal_is_the_error_of_its_code() -> None:
    with pytest.raises(NoPermission, match=r"a:1 refused SEND_MESSAGE_V2: NO_PERMISSION"):
        read_receipt(answered(16, {}), PLAIN, QUEUE, "a:1")
    with pytest.raises(TopicNotFound, match="create the topic"):
        read_receipt(answered(17, {}), PLAIN, QUEUE, "a:1")


@pytest.mark.parametrize("ext", [{}, STORED | {"queueId": "x"}, {"msgId": "1", "queueId": "1"}])
def test_an_answer_without_sense_is_malformed(ext: dict[str, str]) -> None:
    with pytest.raises(HeaderMalformed):
        read_receipt(answered(0, ext), PLAIN, QUEUE, "a:1")
