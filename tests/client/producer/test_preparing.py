"""From what a caller hands over to what travels."""

import zlib

import pytest

from pocketmq.client.clock import SystemClock
from pocketmq.client.producer.choices import delay_properties
from pocketmq.client.producer.preparing import Preparing
from pocketmq.client.producer.requests import Outgoing
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import InvalidInput, NameInvalid
from pocketmq.model import Message, SysFlag
from pocketmq.protocol.compression import Codec, decompress
from pocketmq.protocol.message_ids import UniqueIds, parse_unique_id
from pocketmq.protocol.property_text import decode_properties


def preparing(namespace: str = "", **options: object) -> Preparing:
    settings = ProducerOptions(group="shop", **options)  # type: ignore[arg-type]
    return Preparing(settings, namespace, UniqueIds(b"\x7f\0\0\1", 77, 5), SystemClock())


def properties(outgoing: Outgoing) -> dict[str, str]:
    return decode_properties(outgoing.properties.encode())


def test_a_plain_message_gets_an_id_and_nothing_else() -> None:
    message = Message("orders", b"x", flag=7)
    made = preparing().prepare(message)
    assert properties(made) == {"UNIQ_KEY": made.unique_id, "WAIT": "true"}
    assert made == Outgoing(
        "orders", b"x", made.properties, made.unique_id, flag=7, messages=(message,)
    )
    known = parse_unique_id(made.unique_id)
    assert (known.ip, known.pid, known.loader_hash, known.counter) == ("127.0.0.1", 77, 5, 0)


@pytest.mark.parametrize("tag", ["paid", "größe", "t" * 300])
def test_the_short_way_and_the_long_way_say_the_same(tag: str) -> None:
    """A message with a tag alone takes a short cut; one with keys does not."""
    maker = preparing()
    for _ in range(2):
        short = maker.prepare(Message("orders", b"x", tag=tag))
        assert properties(short) == {"UNIQ_KEY": short.unique_id, "WAIT": "true", "TAGS": tag}
    long = maker.prepare(
        Message("orders", b"x", tag=tag, keys=["A17", "B2"], properties={"region": "eu"})
    )
    assert properties(long) == {
        "UNIQ_KEY": long.unique_id,
        "WAIT": "true",
        "TAGS": tag,
        "KEYS": "A17 B2",
        "region": "eu",
    }


def test_no_two_messages_have_one_id() -> None:
    maker = preparing()
    ids = {maker.prepare(Message("orders", b"x")).unique_id for _ in range(5000)}
    assert len(ids) == 5000


def test_an_id_among_what_the_send_adds_stays() -> None:
    made = preparing().prepare(Message("orders", b"x"), {"UNIQ_KEY": "MINE"})
    assert (made.unique_id, properties(made)["UNIQ_KEY"]) == ("MINE", "MINE")


@pytest.mark.parametrize("keys", [[], ["A17"]])
def test_bodies_are_compressed_from_4096_bytes_on(keys: list[str]) -> None:
    maker = preparing()
    below = maker.prepare(Message("orders", b"x" * 4095, keys=keys))
    assert (below.body, below.sys_flag) == (b"x" * 4095, 0)
    above = maker.prepare(Message("orders", b"x" * 4096, keys=keys))
    assert above.sys_flag == SysFlag.COMPRESSED | SysFlag.ZLIB
    assert zlib.decompress(above.body) == b"x" * 4096


def test_other_codecs_are_named_in_the_system_flag() -> None:
    made = preparing(compression=Codec.LZ4, compress_from=1).prepare(Message("orders", b"x" * 99))
    assert made.sys_flag == SysFlag.COMPRESSED | SysFlag.LZ4
    assert decompress(made.body, Codec.LZ4) == b"x" * 99


def test_a_namespace_is_part_of_the_topic_and_told_to_the_broker() -> None:
    made = preparing("prod").prepare(Message("orders", b"x"))
    assert made.topic == "prod%orders"
    assert properties(made)["INSTANCE_ID"] == "prod"


def test_a_retry_message_has_its_counts_in_the_request() -> None:
    extra = {"RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "16", "DELAY": "6"}
    made = preparing().prepare(Message("%RETRY%billing", b"x"), extra)
    assert (made.reconsume_times, made.max_reconsume_times) == (3, 16)
    assert properties(made) == {"UNIQ_KEY": made.unique_id, "WAIT": "true", "DELAY": "6"}


def test_a_half_message_says_so_in_its_system_flag() -> None:
    made = preparing().prepare(Message("orders", b"x"), {"TRAN_MSG": "true", "PGROUP": "shop"})
    assert made.sys_flag == SysFlag.PREPARED


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Message("orders", b""), "a message needs a body"),
        (Message("orders", b"x" * 101), "a body of 101 bytes is over the limit of 100"),
        (Message("orders", b"x" * 101, keys=["k"]), "a body of 101 bytes is over the limit of 100"),
        (Message("", b"x"), "it must not be empty"),
        (Message("or ders", b"x"), "allowed are letters, digits"),
        (Message("o" * 128, b"x"), "it has 128 characters; at most 127 are allowed"),
        (Message("SCHEDULE_TOPIC_XXXX", b"x"), "no client may send to it"),
        (Message("RMQ_SYS_TRANS_HALF_TOPIC", b"x"), "no client may send to it"),
        (Message("orders", b"x", properties={"a": "b" * 32767}), "the properties take"),
        (Message("orders", b"x", tag="t" * 32767), "the properties take"),
        (Message("orders", b"x", tag="\ud800"), "half of a surrogate pair"),
        (Message("orders", b"x", tag="a\2b"), "separator character"),
        (Message("orders", b"x", flag=2**31), "32-bit number"),
        (Message("orders", b"x", flag=-(2**31) - 1, keys=["k"]), "32-bit number"),
    ],
)
def test_what_no_broker_would_take_is_refused_with_the_reason(
    message: Message, reason: str
) -> None:
    maker = preparing(max_message_size=100)
    for _ in range(2):
        with pytest.raises(InvalidInput, match=reason):
            maker.prepare(message)


@pytest.mark.parametrize("thing", [{"topic": "orders"}, None, "orders", Message(["a"], b"x")])  # type: ignore[arg-type]
def test_what_is_no_message_is_named(thing: object) -> None:
    with pytest.raises(InvalidInput, match="a message must be a Message with a topic, not"):
        preparing().prepare(thing)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="a topic must be text, not bytes"):
        preparing().prepare(Message(b"orders", b"x"))  # type: ignore[arg-type]


def test_a_topic_too_long_with_its_namespace_is_refused() -> None:
    with pytest.raises(NameInvalid, match="it has 131 characters"):
        preparing("n" * 30).prepare(Message("o" * 100, b"x"))


@pytest.mark.parametrize(
    ("delay", "level", "deliver_at", "expected"),
    [
        (None, None, None, {}),
        (None, 0, None, {}),
        (None, 3, None, {"DELAY": "3"}),
        (90.0, None, None, {"TIMER_DELAY_MS": "90000"}),
        (0.0015, None, None, {"TIMER_DELAY_MS": "2"}),
        (None, None, 1794707172.145, {"TIMER_DELIVER_MS": "1794707172145"}),
    ],
)
def test_a_delay_is_a_property_as_java_sets_it(
    delay: float | None, level: int | None, deliver_at: float | None, expected: dict[str, str]
) -> None:
    assert delay_properties(delay, level, deliver_at) == expected


@pytest.mark.parametrize(
    ("delay", "level", "deliver_at", "reason"),
    [
        (1.0, 1, None, "not several"),
        (1.0, None, 1.0, "not several"),
        (-1.0, None, None, "delay must be in seconds"),
        (float("nan"), None, None, "delay must be in seconds"),
        (None, -1, None, "a delay level must be"),
        (None, None, 1794707172145.0, "deliver_at must be in seconds"),
    ],
)
def test_a_delay_without_sense_is_refused(
    delay: float | None, level: int | None, deliver_at: float | None, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        delay_properties(delay, level, deliver_at)
