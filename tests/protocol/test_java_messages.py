"""What RocketMQ 5.5.0 and 4.9.7 encoded themselves: same values read, same bytes written.

The lines come from tests/vectors/java/MessageVectors.java.
"""

import ipaddress
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pocketmq.errors import MessageMalformed, MessagesCutShort
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.batch import decode_batch, encode_batch
from pocketmq.protocol.compression import Codec, decompress
from pocketmq.protocol.message_ids import encode_offset_id, parse_offset_id, parse_unique_id
from pocketmq.protocol.property_text import decode_properties, encode_properties, find_property
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.records import decode_record, encode_record

VECTORS = Path(__file__).parent.parent / "vectors"
COMPRESSED_BIT = 1


@cache
def all_lines() -> dict[str, list[dict[str, Any]]]:
    kinds: dict[str, list[dict[str, Any]]] = {}
    with (VECTORS / "java-messages.jsonl").open() as file:
        for line in file:
            value = json.loads(line)
            kinds.setdefault(value["kind"], []).append(value)
    return kinds


def lines(kind: str) -> list[Any]:
    return [
        pytest.param(line, id=f"{line['version']} {line['name'][:60]}")
        for line in all_lines()[kind]
    ]


def host_bytes(host: list[Any]) -> bytes:
    return bytes.fromhex(host[0]) + int(host[1]).to_bytes(4, "big")


def java_values(fields: dict[str, Any]) -> dict[str, Any]:
    values = dict(fields)
    values["body"] = bytes.fromhex(fields["body"])
    values["born_host"] = host_bytes(fields["born_host"])
    values["store_host"] = host_bytes(fields["store_host"])
    # 5.x clears the bit once the body is inflated, 4.9 does not: no difference in the message.
    values["sys_flag"] = fields["sys_flag"] & ~COMPRESSED_BIT
    values["keys"] = [key for key in (fields["keys"] or "").split(" ") if key]
    return values


def our_values(message: ReceivedMessage) -> dict[str, Any]:
    assert message.born_host
    assert message.store_host
    return {
        "store_size": message.store_size,
        "body_crc": message.body_crc,
        "queue_id": message.queue_id,
        "flag": message.flag,
        "queue_offset": message.queue_offset,
        "commit_log_offset": message.commit_log_offset,
        "sys_flag": message.sys_flag & ~COMPRESSED_BIT,
        "born_timestamp_ms": message.born_timestamp_ms,
        "born_host": message.born_host_bytes,
        "store_timestamp_ms": message.store_timestamp_ms,
        "store_host": message.store_host_bytes,
        "reconsume_times": message.reconsume_times,
        "prepared_transaction_offset": message.prepared_transaction_offset,
        "body": message.body,
        "topic": message.topic,
        "properties": dict(message.properties),
        "tag": message.tag,
        "keys": message.keys,
        "message_id": message.message_id,
        "offset_message_id": message.offset_message_id,
    }


@pytest.mark.parametrize("line", lines("message"))
def test_a_message_java_encoded_is_read_and_written_as_java_does(line: dict[str, Any]) -> None:
    raw = bytes.fromhex(line["hex"])
    (message,) = decode_pulled(raw, DeliveryContext())
    assert our_values(message) == java_values(line["fields"])
    assert message.crc_matches()
    assert encode_record(decode_record(raw)) == raw


def test_a_body_of_all_java_messages_is_read_in_order() -> None:
    found = all_lines()["message"]
    body = b"".join(bytes.fromhex(line["hex"]) for line in found)
    messages = decode_pulled(body, DeliveryContext())
    assert [our_values(message) for message in messages] == [
        java_values(line["fields"]) for line in found
    ]


@pytest.mark.parametrize("line", lines("inner"))
def test_an_inner_batch_is_unwrapped_as_java_does(line: dict[str, Any]) -> None:
    messages = decode_pulled(bytes.fromhex(line["hex"]), DeliveryContext())
    assert len(messages) == len(line["messages"])
    for message, fields in zip(messages, line["messages"], strict=True):
        ours, javas = our_values(message), java_values(fields)
        # Java leaves these unset in unwrapped messages; ours are those of a record of its own.
        for unset in ("store_size", "body_crc", "offset_message_id"):
            assert javas.pop(unset) in (0, None)
            del ours[unset]
        assert ours == javas


@pytest.mark.parametrize("version", ["5.5.0", "4.9.7"])
def test_a_broken_message_is_never_read_differently_than_java_reads_it(version: str) -> None:
    """Java refuses it: so do we. Java reads it: we read the same, or refuse what does not add up."""
    refused_with_java = refused_alone = wrong_body = same = 0
    for line in all_lines()["broken"]:
        if line["version"] != version:
            continue
        raw = bytes.fromhex(line["hex"])
        try:
            (message,) = decode_pulled(raw, DeliveryContext())
            ours = our_values(message)
        except MessageMalformed as error:
            if line["consumed"] < 0:
                refused_with_java += 1
            elif isinstance(error, MessagesCutShort) and error.damaged is not None:
                wrong_body += 1  # Java's clients do not verify the checksum
            else:
                # Java overlooks a wrong size, and 4.9 a wrong magic.
                at = int(line["name"].split()[1])
                assert at < 8 or line["consumed"] != len(raw)
                refused_alone += 1
            continue
        assert line["fields"], line["name"]
        assert ours == java_values(line["fields"]), line["name"]
        same += 1
    assert same > 150
    assert wrong_body > 10
    assert refused_with_java >= 20
    assert 8 <= refused_alone <= 20


@pytest.mark.parametrize("line", lines("batch"))
def test_a_batch_java_encoded_goes_both_ways(line: dict[str, Any]) -> None:
    raw = bytes.fromhex(line["hex"])
    entries = decode_batch(raw)
    assert [
        {
            "flag": entry.flag,
            "body": entry.body.hex(),
            "properties": decode_properties(entry.property_bytes),
        }
        for entry in entries
    ] == line["entries"]
    assert encode_batch(entries) == raw


@pytest.mark.parametrize("line", lines("offset id"))
def test_an_offset_id_of_java_goes_both_ways(line: dict[str, Any]) -> None:
    host = host_bytes(line["host"])
    assert encode_offset_id(host, line["offset"]) == line["id"]
    parsed = parse_offset_id(line["id"])
    ip, _, port = parsed.host.rpartition(":")
    assert ipaddress.ip_address(ip.strip("[]")).packed + int(port).to_bytes(4, "big") == host
    assert parsed.commit_log_offset == line["offset"]


@pytest.mark.parametrize("line", lines("unique id"))
def test_a_unique_id_is_read_as_java_reads_it(line: dict[str, Any]) -> None:
    parsed = parse_unique_id(line["name"])
    assert ipaddress.ip_address(parsed.ip).packed.hex() == line["ip"]
    assert parsed.pid == line["pid"]


@pytest.mark.parametrize("line", lines("written properties"))
def test_properties_are_written_as_java_writes_them(line: dict[str, Any]) -> None:
    """4.9 leaves out the last separator; we write it, as 5.x does."""
    written = encode_properties(dict(line["pairs"]))
    raw = bytes.fromhex(line["hex"])
    assert written == raw or (line["version"] == "4.9.7" and written == raw + b"\x02")


@pytest.mark.parametrize("version", ["5.5.0", "4.9.7"])
def test_properties_are_read_as_java_reads_them(version: str) -> None:
    read = [line for line in all_lines()["read properties"] if line["version"] == version]
    assert len(read) > 400
    for line in read:
        raw = bytes.fromhex(line["hex"])
        assert decode_properties(raw) == line["properties"], line["hex"]
        assert dict(singly(raw)) == decode_properties(raw)


def singly(raw: bytes) -> Iterator[tuple[str, str]]:
    for piece in raw.split(b"\x02"):
        name = piece.partition(b"\x01")[0]
        value = find_property(raw, name)
        if name and value is not None:
            yield name.decode("utf-8", "replace"), value.decode("utf-8", "replace")


@pytest.mark.parametrize("line", lines("compressed"))
def test_what_java_compressed_is_inflated(line: dict[str, Any]) -> None:
    body = b"a" * line["size"] if line["body"] is None else bytes.fromhex(line["body"])
    packed = bytes.fromhex(line["packed"])
    assert decompress(packed, Codec[line["name"]]) == body
    assert decompress(packed, Codec[line["name"]], limit=max(len(body), 1)) == body
    if len(body) > 1:
        with pytest.raises(MessageMalformed):
            decompress(packed, Codec[line["name"]], limit=len(body) - 1)


def captured_bodies(code: int, kind: str) -> list[tuple[bytes, bool]]:
    with (VECTORS / "java-frames.jsonl").open() as file:
        frames = [json.loads(line) for line in file]
    return [
        (bytes.fromhex(frame["bodyHex"]), frame["bodyComplete"])
        for frame in frames
        if frame["reqcode"] == code and frame["kind"] == kind and frame.get("bodyHex")
    ]


@pytest.mark.parametrize(
    ("code", "kind", "complete"), [(11, "resp", 1), (12, "resp", 1), (39, "req", 2)]
)
def test_bodies_captured_from_java_brokers_are_read_whole(
    code: int, kind: str, complete: int
) -> None:
    whole = [body for body, is_whole in captured_bodies(code, kind) if is_whole]
    assert len(whole) == complete
    for body in whole:
        messages = decode_pulled(body, DeliveryContext("broker-a"))
        assert b"".join(message.record() for message in messages) == body
        for message in messages:
            assert message.crc_matches()
            assert message.body
            assert len(message.message_id) == 56
            assert encode_record(decode_record(message.record())) == message.record()


def test_bodies_cut_short_in_the_capture_give_what_came_before() -> None:
    """The capture kept only the beginning of long bodies."""
    cut = [body for code in (11, 12) for body, whole in captured_bodies(code, "resp") if not whole]
    assert len(cut) == 3
    for body in cut:
        with pytest.raises(MessagesCutShort) as caught:
            decode_pulled(body, DeliveryContext())
        decoded = caught.value.decoded
        assert decoded
        assert caught.value.position == sum(message.store_size for message in decoded)
        assert all(message.crc_matches() for message in decoded)


def test_batches_captured_from_java_clients_are_read_and_written() -> None:
    bodies = captured_bodies(320, "req")
    assert len(bodies) == 3
    for body, _ in bodies:
        entries = decode_batch(body)
        assert entries
        assert encode_batch(entries) == body
        keys = [find_property(entry.property_bytes, b"UNIQ_KEY") for entry in entries]
        assert len(set(keys)) == len(entries)
