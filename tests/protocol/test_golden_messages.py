"""Bytes known from RocketMQ, both ways."""

import contextlib
import zlib

import pytest

from pocketmq.errors import MessageMalformed, MessagesCutShort
from pocketmq.model.java_strings import java_hash
from pocketmq.protocol import DeliveryContext, ReceivedMessage, message_ids
from pocketmq.protocol.batch import BatchEntry, decode_batch, encode_batch
from pocketmq.protocol.compression import Codec, compress, decompress
from pocketmq.protocol.property_text import decode_properties, encode_properties
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.record_scan import checksum, tags_code
from pocketmq.protocol.records import decode_record, encode_record
from tests.protocol import golden_messages


def only(raw: bytes) -> ReceivedMessage:
    (message,) = decode_pulled(raw, DeliveryContext("broker-a"))
    return message


def test_the_v1_message_is_written_byte_for_byte() -> None:
    assert encode_record(golden_messages.V1_RECORD) == golden_messages.V1
    assert encode_record(decode_record(golden_messages.V1)) == golden_messages.V1


def test_the_v1_message_is_read_field_by_field() -> None:
    message = only(golden_messages.V1)
    assert message.store_size == 120
    assert message.body_crc == 907060870
    assert (message.queue_id, message.flag, message.sys_flag) == (3, 0, 0)
    assert (message.queue_offset, message.commit_log_offset) == (42, 4096)
    assert (message.born_timestamp_ms, message.store_timestamp_ms) == (1700000000000, 1700000000001)
    assert (message.born_timestamp, message.store_timestamp) == (1700000000.0, 1700000000.001)
    assert (message.born_host, message.store_host) == ("10.1.2.3:50000", "127.0.0.1:10911")
    assert (message.reconsume_times, message.prepared_transaction_offset) == (0, 0)
    assert (message.body, message.body_size, message.crc_matches()) == (b"hello", 5, True)
    assert (message.topic, message.tag, message.keys) == ("TopicA", "TagA", ["k1"])
    assert message.properties == {"TAGS": "TagA", "KEYS": "k1"}
    assert message.message_id == message.offset_message_id == "7F00000100002A9F0000000000001000"
    assert message.tags_code() == 2598919
    assert message.broker_name == "broker-a"


def test_the_message_with_ipv6_hosts_goes_both_ways() -> None:
    assert encode_record(golden_messages.V6_RECORD) == golden_messages.V6_HOSTS
    assert decode_record(golden_messages.V6_HOSTS) == golden_messages.V6_RECORD
    message = only(golden_messages.V6_HOSTS)
    assert (message.born_host, message.store_host) == ("[::1]:1", "[::1]:2")
    assert message.message_id == "00000000000000000000000000000001000000020000000000000005"
    assert (message.topic, message.body, message.body_size) == ("T", b"x", 1)
    assert not message.crc_matches()


def test_a_message_stored_by_a_java_broker_goes_both_ways() -> None:
    message = only(golden_messages.STORED_BY_JAVA)
    assert message.properties == {
        "KEYS": "k1",
        "UNIQ_KEY": "FD00000000000000000000000000000230CE5FFD2B274874AFA30000",
        "CLUSTER": "DefaultCluster",
        "TAGS": "TagA",
    }
    assert message.message_id == "FD00000000000000000000000000000230CE5FFD2B274874AFA30000"
    assert message.offset_message_id == "7F000001000051AF0000000000000000"
    assert (message.body, message.crc_matches()) == (b"hello", True)
    assert message.tags_code() == 0x27A807
    assert message.store_size == 0xD0
    assert (
        encode_record(decode_record(golden_messages.STORED_BY_JAVA))
        == golden_messages.STORED_BY_JAVA
    )


def fields(raw: bytes) -> list[object]:
    message = only(raw)
    return [
        message.crc_matches(),
        message.body_crc,
        message.queue_id,
        message.flag,
        message.queue_offset,
        message.commit_log_offset,
        message.sys_flag,
        message.born_timestamp_ms,
        message.born_host,
        message.store_timestamp_ms,
        message.store_host,
        message.reconsume_times,
        message.prepared_transaction_offset,
        message.stored_body,
        message.topic,
        message.property_bytes,
    ]


@pytest.mark.parametrize(
    "raw",
    [golden_messages.V1, golden_messages.V6_HOSTS, golden_messages.STORED_BY_JAVA],
    ids=["v1", "v6", "java"],
)
def test_no_flipped_byte_goes_unnoticed(raw: bytes) -> None:
    """Whatever happens to one byte: another value is read, or the message is refused."""
    sound = fields(raw)
    for at in range(len(raw)):
        for flip in (0x01, 0x10, 0x80, 0xFF):
            changed = bytearray(raw)
            changed[at] ^= flip
            with contextlib.suppress(MessageMalformed):
                assert fields(bytes(changed)) != sound


@pytest.mark.parametrize(
    "raw", [golden_messages.V1, golden_messages.STORED_BY_JAVA], ids=["v1", "java"]
)
def test_a_flipped_byte_of_the_body_fails_the_checksum(raw: bytes) -> None:
    message = only(raw)
    start = raw.index(message.body)
    for at in range(start, start + message.body_size):
        changed = bytearray(raw)
        changed[at] ^= 0x40
        with pytest.raises(MessagesCutShort, match="does not match its checksum") as caught:
            decode_pulled(raw + bytes(changed) + raw, DeliveryContext())
        error = caught.value
        assert [each.record() for each in error.decoded] == [raw]
        assert (error.position, error.end) == (len(raw), 2 * len(raw))
        assert error.damaged.crc_matches() is False


def test_a_record_without_a_checksum_is_not_checked() -> None:
    changed = bytearray(golden_messages.V6_HOSTS)
    changed[8:12] = bytes(4)
    changed[golden_messages.V6_HOSTS.index(only(golden_messages.V6_HOSTS).body)] ^= 0x40
    assert only(bytes(changed)).crc_matches() is False


def test_the_checksum_loses_its_highest_bit() -> None:
    assert checksum(b"hello") == 0x3610A686
    assert zlib.crc32(b"x") == 0x8CDC1683
    assert checksum(b"x") == 0x0CDC1683


def test_the_batch_goes_both_ways() -> None:
    entries = [BatchEntry(b"m1", b"UNIQ_KEY\x01AA\x02"), BatchEntry(b"m2", b"UNIQ_KEY\x01BB\x02")]
    assert encode_batch(entries) == golden_messages.BATCH
    assert decode_batch(golden_messages.BATCH) == entries


def test_no_flipped_byte_of_a_batch_goes_unnoticed_but_in_what_java_ignores() -> None:
    """Magic and checksum of an entry are written as 0 and read by nobody."""
    sound = decode_batch(golden_messages.BATCH)
    ignored = {*range(4, 12), *range(0x24 + 4, 0x24 + 12)}
    for at in range(len(golden_messages.BATCH)):
        changed = bytearray(golden_messages.BATCH)
        changed[at] ^= 0x11
        try:
            assert (decode_batch(bytes(changed)) == sound) is (at in ignored)
        except MessageMalformed:
            assert at not in ignored


def test_properties_are_written_as_java_writes_them() -> None:
    written = encode_properties({"KEYS": "k1 k2", "TAGS": "TagA", "N": None, "E": ""})
    assert written == bytes.fromhex("4b455953016b31206b32025441475301546167410245 0102")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("A\x011\x02B\x012\x02", {"A": "1", "B": "2"}),
        ("A\x011\x02B\x012", {"A": "1", "B": "2"}),
        ("A\x01\x02B\x012", {"B": "2"}),
        ("\x011\x02B\x012", {"B": "2"}),
        ("A\x02B\x012", {"B": "2"}),
        ("A\x011\x012\x02", {"A": "1\x012"}),
        ("AB", {}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, read: dict[str, str]) -> None:
    assert decode_properties(text.encode()) == read


def test_a_unique_id_is_made_of_address_process_time_and_counter() -> None:
    ids = message_ids.UniqueIds(bytes((10, 1, 2, 3)), 70001, 0x1B2A3C4D, first=65541)
    june = 1_717_200_000_000  # 2024-06-01T00:00:00Z
    assert ids.next_id(june + 0x00ABCDEF) == "0A01020311711B2A3C4D00ABCDEF0005"
    assert message_ids.parse_unique_id("0A01020311711B2A3C4D00ABCDEF0005") == message_ids.UniqueId(
        "10.1.2.3", 4465, 0x1B2A3C4D, 0x00ABCDEF, 5
    )


def test_offset_ids_of_the_golden_messages_are_read() -> None:
    assert message_ids.parse_offset_id(
        only(golden_messages.V1).offset_message_id
    ) == message_ids.OffsetId("127.0.0.1:10911", 4096)
    assert message_ids.parse_offset_id(
        only(golden_messages.V6_HOSTS).offset_message_id
    ) == message_ids.OffsetId("[::1]:2", 5)


@pytest.mark.parametrize("codec", list(Codec))
def test_what_java_compressed_is_inflated(codec: Codec) -> None:
    assert decompress(golden_messages.COMPRESSED_A64[codec.name], codec) == b"a" * 64
    assert decompress(compress(b"a" * 64, codec), codec) == b"a" * 64


def test_zlib_compresses_as_java_does() -> None:
    assert compress(b"a" * 64) == golden_messages.COMPRESSED_A64["ZLIB"]


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("*", 42),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", -2147483648),
        ("中文", 646394),
        ("😀", 1772899),
    ],
)
def test_a_tags_code_is_javas_hash_of_the_tag(tag: str, code: int) -> None:
    assert java_hash(tag) == code
    assert tags_code(f"KEYS\x01k\x02TAGS\x01{tag}\x02".encode()) == code


def test_a_message_without_a_tag_has_the_code_0() -> None:
    assert tags_code(b"") == tags_code(b"KEYS\x01TAGS\x02") == tags_code(b"TAGS\x01\x02") == 0
