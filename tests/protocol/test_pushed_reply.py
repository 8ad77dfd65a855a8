import msgspec
import pytest

from pocketmq.errors import MessageMalformed
from pocketmq.protocol.compression import Codec, compress, mark_compressed
from pocketmq.protocol.pushed_reply import correlation_of, pushed_reply
from pocketmq.protocol.requests.client_calls import PushReplyRequest

PUSHED = PushReplyRequest(
    producer_group="repliers",
    topic="DefaultCluster_REPLY_TOPIC",
    default_topic="TBW102",
    default_topic_queue_nums=4,
    queue_id=3,
    sys_flag=0,
    born_timestamp=1794707172145,
    flag=7,
    properties="CORRELATION_ID\x01n-1\x02UNIQ_KEY\x01ABC\x02mood\x01good\x02",
    born_host="192.0.2.1:50000",
    store_host="[::1]:10911",
    store_timestamp=1794707172150,
)


def changed(**fields: object) -> PushReplyRequest:
    return msgspec.structs.replace(PUSHED, **fields)


def test_a_reply_reads_like_any_message() -> None:
    reply = pushed_reply(PUSHED, b"hello", 1794707172151)
    assert (reply.topic, reply.queue_id, reply.flag) == ("DefaultCluster_REPLY_TOPIC", 3, 7)
    assert (reply.body, reply.message_id) == (b"hello", "ABC")
    assert (reply.born_host, reply.store_host) == ("192.0.2.1:50000", "[::1]:10911")
    assert (reply.born_timestamp_ms, reply.store_timestamp_ms) == (1794707172145, 1794707172150)
    assert (reply.reconsume_times, reply.user_properties) == (0, {"mood": "good"})
    assert reply.get_property("ARRIVE_TIME") == "1794707172151"


def test_its_number_is_found_without_reading_the_rest() -> None:
    assert correlation_of(PUSHED) == "n-1"
    assert correlation_of(changed(properties=None)) == ""


def test_a_compressed_reply_is_inflated() -> None:
    text = b"again and " * 500
    header = changed(sys_flag=mark_compressed(0, Codec.ZLIB))
    assert pushed_reply(header, compress(text), 0).body == text


def test_a_flag_that_speaks_of_a_batch_opens_nothing() -> None:
    reply = pushed_reply(changed(sys_flag=0xC0), b"not a batch", 0)
    assert reply.body == b"not a batch"


@pytest.mark.parametrize(
    "fields",
    [
        {"born_host": "nowhere"},
        {"store_host": "192.0.2.1:99999"},
        {"properties": "x\x01" + "y" * 32767 + "\x02"},
        {"topic": "t" * 40000},
    ],
)
def test_what_no_message_can_have_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(MessageMalformed, match="the reply is not a valid message"):
        pushed_reply(changed(**fields), b"hello", 0)
