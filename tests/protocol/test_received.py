import copy
import pickle
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from pocketmq.errors import BodyTooLarge, MessageMalformed
from pocketmq.model import SysFlag
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.compression import Codec, compress, mark_compressed
from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.records import Record, encode_record
from tests.protocol.golden_messages import V1, V1_RECORD

RECEIVED = DeliveryContext("broker-a", added={"MIN_OFFSET": "0", "MAX_OFFSET": "43"})


def received(record: Record = V1_RECORD, delivery: DeliveryContext = RECEIVED) -> ReceivedMessage:
    (message,) = decode_pulled(encode_record(record), delivery)
    return message


def compressed_record(body: bytes, sys_flag: int = int(SysFlag.COMPRESSED)) -> Record:
    return Record(topic=b"T", body=body, sys_flag=sys_flag)


def with_properties(**properties: str) -> ReceivedMessage:
    raw = encode_properties(properties)
    return received(msgspec.structs.replace(V1_RECORD, property_bytes=raw))


def test_added_properties_lie_over_the_messages_own() -> None:
    message = received(delivery=DeliveryContext(added={"MIN_OFFSET": "0", "TAGS": "other"}))
    assert message.get_property("MIN_OFFSET") == "0"
    assert message.tag == "other"
    assert message.properties == {"TAGS": "other", "KEYS": "k1", "MIN_OFFSET": "0"}
    assert message.tags_code() == 2598919  # the record itself is untouched


def test_one_property_reads_the_same_before_and_after_all_were_read() -> None:
    message = received()
    names = ("TAGS", "KEYS", "MIN_OFFSET", "none", "ü", "\ud800")
    before = [message.get_property(name) for name in names]
    assert before == [message.properties.get(name) for name in names]
    assert before == [message.get_property(name) for name in names]
    assert before == ["TagA", "k1", "0", None, None, None]


def test_each_message_of_a_body_reads_its_own_properties() -> None:
    """A search for one property must stop where its record ends."""
    texts = [b"TAGS\x01a\x02", b"", b"KEYS\x01k\x02TAGS\x01b", b"KEYS\x01l", b"TAGS\x01c\x02"]
    body = b"".join(encode_record(Record(topic=b"T", body=b"", property_bytes=t)) for t in texts)
    messages = decode_pulled(body, DeliveryContext())
    assert [message.tag for message in messages] == ["a", None, "b", None, "c"]
    assert [message.keys for message in messages] == [[], [], ["k"], ["l"], []]


def test_properties_cannot_be_changed() -> None:
    message = received()
    with pytest.raises(TypeError):
        message.properties["x"] = "y"  # type: ignore[index]
    with pytest.raises(AttributeError):
        message.queue_offset = 1  # type: ignore[misc]


def test_user_properties_leave_out_rocketmqs_own() -> None:
    message = with_properties(TAGS="a", UNIQ_KEY="ID", WAIT="true", region="eu")
    assert message.user_properties == {"region": "eu"}


def test_the_senders_id_comes_before_the_offset_id() -> None:
    message = with_properties(UNIQ_KEY="ID")
    assert message.message_id == "ID"
    assert message.offset_message_id == "7F00000100002A9F0000000000001000"


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"UNIQ_KEY": "ID"}, None),
        ({"UNIQ_KEY": "ID", "TRAN_MSG": "true"}, "ID"),
        ({"UNIQ_KEY": "ID", "TRAN_MSG": "TRUE"}, "ID"),
        ({"UNIQ_KEY": "ID", "TRAN_MSG": "yes"}, None),
        ({"UNIQ_KEY": "ID", "__transactionId__": "TX"}, "TX"),
    ],
)
def test_a_transactions_id(properties: dict[str, str], expected: str | None) -> None:
    assert with_properties(**properties).transaction_id == expected


@pytest.mark.parametrize(
    ("text", "level"),
    [("3", 3), ("18", 18), ("-1", 0), ("x", 0), ("٣", 0), ("1_0", 0), (" 3", 0), ("9" * 5000, 0)],
)
def test_a_delay_level_is_a_plain_number(text: str, level: int) -> None:
    assert with_properties(DELAY=text).delay_level == level
    assert received().delay_level == 0


def test_keys_are_split_at_blanks() -> None:
    assert with_properties(KEYS=" a  b c ").keys == ["a", "b", "c"]
    assert with_properties(TAGS="x").keys == []


def test_the_receiver_may_know_queue_and_offset_better() -> None:
    message = received(delivery=DeliveryContext("logical", queue_id=9, offset_delta=1000))
    assert (message.queue_id, message.queue_offset) == (9, 1042)
    assert pickle.loads(pickle.dumps(message)) == message


def test_the_topic_may_be_called_otherwise() -> None:
    message = received()
    renamed = message.with_topic("orders")
    assert (renamed.topic, message.topic) == ("orders", "TopicA")
    assert renamed.topic_bytes == b"TopicA"
    assert (renamed.body, renamed.properties) == (message.body, message.properties)
    assert renamed != message
    assert pickle.loads(pickle.dumps(renamed)).topic == "orders"
    assert renamed.with_topic("TopicA") == message


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compressed_body_is_inflated_when_read(codec: Codec) -> None:
    body = b"text " * 1000
    packed = compress(body, codec)
    record = Record(topic=b"T", body=packed, sys_flag=mark_compressed(0, codec))
    message = received(record)
    assert message.body_size == len(packed)
    assert message.stored_body == packed
    assert message.body == body
    assert message.body is message.body
    assert message.crc_matches()


def test_a_broken_body_is_an_error_when_it_is_read_and_only_then() -> None:
    compressed = int(SysFlag.COMPRESSED)
    first = encode_record(Record(topic=b"T", body=b"no zlib", sys_flag=compressed))
    unknown = encode_record(Record(topic=b"T", body=b"x", sys_flag=compressed | 0x500))
    broken, odd, sound = decode_pulled(first + unknown + V1, RECEIVED)
    assert sound.body == b"hello"
    for message in (broken, odd):
        assert message.topic == "T"
        with pytest.raises(MessageMalformed):
            _ = message.body
        assert "bytes" in repr(message)


def test_a_body_is_inflated_to_the_limit_and_no_further() -> None:
    record = Record(topic=b"T", body=compress(bytes(1000)), sys_flag=mark_compressed(0, Codec.ZLIB))
    assert received(record, DeliveryContext(inflate_limit=1000)).body == bytes(1000)
    with pytest.raises(MessageMalformed, match="more than the limit of 999 bytes"):
        _ = received(record, DeliveryContext(inflate_limit=999)).body


def test_an_impossible_port_is_an_error_when_the_host_is_read() -> None:
    record = msgspec.structs.replace(V1_RECORD, born_host=bytes.fromhex("0a01020300010000"))
    message = received(record)
    assert message.store_host == "127.0.0.1:10911"
    with pytest.raises(MessageMalformed, match="65536"):
        _ = message.born_host


def test_names_that_are_not_utf8_are_replaced() -> None:
    message = received(Record(topic=b"T\xff", body=b"", property_bytes=b"TAGS\x01\xff\x02"))
    assert (message.topic, message.tag) == ("T\ufffd", "\ufffd")


def same(one: object, other: object) -> bool:
    """Compare both ways round and by both operators, which must agree."""
    answers = {one == other, other == one, not one != other, not other != one}  # noqa: SIM202
    (answer,) = answers
    return answer


def test_equality_is_record_and_place() -> None:
    message = received()
    assert same(message, message)
    assert same(message, received())
    assert hash(message) == hash(received())
    assert same(message, received(delivery=DeliveryContext("broker-a", added={"MAX_OFFSET": "99"})))
    assert not same(message, received(delivery=DeliveryContext("broker-b")))
    assert not same(message, received(delivery=DeliveryContext("broker-a", queue_id=4)))
    assert not same(message, received(delivery=DeliveryContext("broker-a", topic="other")))
    assert not same(message, received(delivery=DeliveryContext("broker-a", offset_delta=1)))
    assert not same(message, received(msgspec.structs.replace(V1_RECORD, queue_offset=43)))
    assert not same(message, received(msgspec.structs.replace(V1_RECORD, body=b"HELLO")))
    assert not same(message, "a message")
    assert len({message, received(), received(delivery=DeliveryContext("broker-b"))}) == 2


def test_the_repr_names_the_message_and_shows_the_beginning_of_its_body() -> None:
    start = (
        "ReceivedMessage(topic='TopicA', broker_name='broker-a', queue_id=3, queue_offset=42, "
        "message_id='7F00000100002A9F0000000000001000', tag='TagA', body="
    )
    for size in (0, 1, 64):
        short = received(msgspec.structs.replace(V1_RECORD, body=b"x" * size))
        assert repr(short) == str(short) == f"{start}{b'x' * size!r})"
    big = received(msgspec.structs.replace(V1_RECORD, body=b"body" * 10_000))
    assert repr(big) == f"{start}{b'body' * 16!r}... <40000 bytes>)"


def test_the_repr_inflates_no_more_than_it_shows() -> None:
    packed = compress(b"body" * 1_000_000, Codec.ZLIB)
    tracemalloc.start()
    message = received(compressed_record(packed))
    shown = repr(message)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert shown.endswith(f"body={b'body' * 16!r}... <{len(packed)} bytes packed>)")
    assert peak < 200_000
    broken = received(compressed_record(b"no zlib"))
    assert repr(broken).endswith("body=<7 bytes>)")


def test_a_count_of_failures_that_a_consumer_keeps_leaves_the_stored_one() -> None:
    message = received(msgspec.structs.replace(V1_RECORD, reconsume_times=3))
    retried = message.with_reconsume_times(5)
    assert (message.reconsume_times, message.stored_reconsume_times) == (3, 3)
    assert (retried.reconsume_times, retried.stored_reconsume_times) == (5, 3)


def test_a_pickled_message_takes_its_own_record_along_and_no_other() -> None:
    messages = decode_pulled(V1 * 1000, RECEIVED)
    pickled = pickle.dumps(messages[500])
    assert len(pickled) < 600
    revived = pickle.loads(pickled)
    assert revived == messages[500]
    assert revived.properties == messages[500].properties
    assert (revived.body, revived.record()) == (b"hello", V1)


def test_a_read_message_is_copied_and_pickled_like_an_unread_one() -> None:
    message = received()
    assert (message.body, message.topic, message.tag) == (b"hello", "TopicA", "TagA")
    assert message.properties
    for twin in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert twin == message
        assert twin.properties == message.properties


def test_threads_may_read_one_message_at_once() -> None:
    body = b"text " * 1000
    record = Record(topic=b"T", body=compress(body), sys_flag=mark_compressed(0, Codec.ZLIB))
    messages = decode_pulled(encode_record(record) * 300, RECEIVED)

    def read(_: int) -> list[tuple[bytes, str, int]]:
        return [(each.body, each.topic, len(each.properties)) for each in messages]

    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(read, range(8)):
            assert result == [(body, "T", 2)] * 300


def test_hosts_are_given_as_text() -> None:
    message = received(msgspec.structs.replace(V1_RECORD, born_host=encode_host("[fe80::1]:9")))
    assert (message.born_host, message.store_host) == ("[fe80::1]:9", "127.0.0.1:10911")


def test_a_body_over_the_limit_names_its_place_and_can_be_read_with_another_limit() -> None:
    packed = zlib.compress(bytes(5000))
    found = received(
        compressed_record(packed), DeliveryContext(broker_name="b", inflate_limit=4999)
    )
    with pytest.raises(BodyTooLarge) as caught:
        _ = found.body
    error = caught.value
    assert (error.stored, error.limit) == (len(packed), 4999)
    place = f"topic={found.topic} queue=b:{found.queue_id} offset={found.queue_offset}"
    assert str(error).startswith(place)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert found.inflated_body(5000) == bytes(5000)


def test_a_large_inflated_body_is_not_kept_and_its_start_costs_no_more() -> None:
    """A hundred messages that wait would hold a hundred times 64 MiB."""
    found = received(compressed_record(zlib.compress(bytes(8 << 20))), DeliveryContext())
    tracemalloc.start()
    try:
        assert found.body_start(100) == bytes(100)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        assert len(found.body) == 8 << 20
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", Codec)
def test_the_start_of_a_body_is_the_same_with_every_codec(codec: Codec) -> None:
    body = bytes(range(256)) * 4096
    record = compressed_record(compress(body, codec), mark_compressed(0, codec))
    found = received(record, DeliveryContext())
    assert found.body_start(1000) == body[:1000]
    assert found.body_start(1 << 21) == body[: len(found.body_start(1 << 21))]
    broken = compressed_record(b"no codec wrote this", mark_compressed(0, codec))
    with pytest.raises(MessageMalformed):
        received(broken, DeliveryContext()).body_start(9)
