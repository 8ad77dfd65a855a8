"""What a message costs: to encode, to find in a pulled body, to read.

The baseline reads every field of every record at once with plain `struct`, as most clients do.
"""

import struct
from collections.abc import Callable
from functools import partial
from time import process_time
from timeit import repeat
from typing import Any

from benchmarks._paths import note
from pocketmq.protocol import DeliveryContext, ReceivedMessage
from pocketmq.protocol.hosts import decode_host, encode_host
from pocketmq.protocol.message_ids import UniqueIds, encode_offset_id
from pocketmq.protocol.property_text import decode_properties, encode_properties
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.record_scan import scan_records
from pocketmq.protocol.records import Record, pack_record

MESSAGES = 256
NOW_MS = 1_700_000_000_000
HOST = encode_host("127.0.0.1:10911")
TEXT = encode_properties(
    {"UNIQ_KEY": "7F0000010A2B18B4AAC2000000010000", "WAIT": "true", "TAGS": "TagA", "KEYS": "k1"}
)
BROKER = DeliveryContext("broker-a", added={"MIN_OFFSET": "0", "MAX_OFFSET": "1000"})


def microseconds(work: Callable[[], object], per: int = MESSAGES) -> float:
    return min(repeat(work, timer=process_time, number=20, repeat=7)) / 20 / per * 1e6


def make_records(body: bytes) -> list[Record]:
    return [
        Record(
            topic=b"BenchTopic",
            body=body,
            property_bytes=TEXT,
            queue_id=1,
            born_timestamp_ms=NOW_MS,
            born_host=HOST,
        )
        for _ in range(MESSAGES)
    ]


def pack(records: list[Record]) -> bytes:
    """Pack records back to back, as the store does."""
    pieces, position = [], 0
    for queue_offset, record in enumerate(records):
        piece = pack_record(record, queue_offset, position, NOW_MS, HOST)
        pieces.append(piece)
        position += len(piece)
    return b"".join(pieces)


_HEAD = struct.Struct(">iiiiiqqiq8sq8siqi")


def decode_eagerly(body: bytes) -> list[dict[str, Any]]:
    messages = []
    at = 0
    while at < len(body):
        fields = _HEAD.unpack_from(body, at)
        size, _, crc, queue_id, flag, queue_offset, place, sys_flag = fields[:8]
        start = at + _HEAD.size
        end = start + fields[14]
        topic_end = end + 1 + body[end]
        properties = decode_properties(body[topic_end + 2 : at + size])
        offset_id = encode_offset_id(fields[11], place)
        messages.append(
            {
                "size": size,
                "crc": crc,
                "queue_id": queue_id,
                "flag": flag,
                "queue_offset": queue_offset,
                "commit_log_offset": place,
                "sys_flag": sys_flag,
                "born_timestamp_ms": fields[8],
                "born_host": decode_host(fields[9]),
                "store_timestamp_ms": fields[10],
                "store_host": decode_host(fields[11]),
                "reconsume_times": fields[12],
                "prepared_transaction_offset": fields[13],
                "body": body[start:end],
                "topic": body[end + 1 : topic_end].decode(),
                "properties": properties,
                "message_id": properties.get("UNIQ_KEY", offset_id),
                "offset_message_id": offset_id,
            }
        )
        at += size
    return messages


def encode_plainly(body: bytes) -> bytes:
    """Write one record after another, field groups joined by hand, without checks."""
    out = bytearray()
    for queue_offset in range(MESSAGES):
        out += _HEAD.pack(
            101 + len(body) + len(TEXT),
            -626843481,
            0,
            1,
            0,
            queue_offset,
            len(out),
            0,
            NOW_MS,
            HOST,
            NOW_MS,
            HOST,
            0,
            0,
            len(body),
        )
        out += body
        out += b"\x0aBenchTopic"
        out += struct.pack(">h", len(TEXT))
        out += TEXT
    return bytes(out)


def scan(raw: bytes) -> None:
    for _ in scan_records(raw):
        pass


def read_body_and_tag(raw: bytes) -> None:
    for message in decode_pulled(raw, BROKER):
        _ = message.body, message.tag


def read_all(message: ReceivedMessage) -> tuple[object, ...]:
    return (
        message.store_size,
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
        message.body,
        message.topic,
        message.properties,
        message.message_id,
        message.offset_message_id,
    )


def read_fully(raw: bytes) -> None:
    for message in decode_pulled(raw, BROKER):
        read_all(message)


def main() -> None:
    ids = UniqueIds(bytes((10, 1, 2, 3)), 70001, 0x1B2A3C4D)
    print(f"{'body':>7}  {'step':<26}{'µs/message':>12}{'of baseline':>13}")
    for size in (100, 1024):
        body = bytes(size)
        records = make_records(body)
        raw = pack(records)
        plain = microseconds(partial(encode_plainly, body))
        eager = microseconds(partial(decode_eagerly, raw))
        rows: list[tuple[str, Callable[[], object], float]] = [
            ("make a record", partial(make_records, body), plain),
            ("pack", partial(pack, records), plain),
            ("scan (as in recovery)", partial(scan, raw), eager),
            ("decode, nothing read", partial(decode_pulled, raw, BROKER), eager),
            ("decode, body and tag", partial(read_body_and_tag, raw), eager),
            ("decode, every field", partial(read_fully, raw), eager),
        ]
        print(f"{size:>7}  {'plain struct encode':<26}{plain:>12.2f}{1:>13.2f}")
        print(f"{size:>7}  {'plain struct decode':<26}{eager:>12.2f}{1:>13.2f}")
        for step, work, baseline in rows:
            cost = microseconds(work)
            print(f"{size:>7}  {step:<26}{cost:>12.2f}{cost / baseline:>13.2f}")
            note(f"{step}, {size} bytes", cost)
    one = microseconds(lambda: [ids.next_id(NOW_MS) for _ in range(MESSAGES)])
    many = microseconds(lambda: ids.next_ids(NOW_MS, MESSAGES))
    print(f"{'':>7}  {'unique id, one by one':<26}{one:>12.2f}")
    print(f"{'':>7}  {'unique id, many at once':<26}{many:>12.2f}")
    note("unique id, one by one", one)
    note("unique id, many at once", many)


if __name__ == "__main__":
    main()
