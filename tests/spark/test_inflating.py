"""Compressed bodies that become large: batches are cut by inflated bytes, memory has a bound."""

import logging
import subprocess
import sys
import zlib

import pytest
from pyspark.sql.types import StructType

from pocketmq.errors import BodyTooLarge, MessageMalformed
from pocketmq.model import SysFlag
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.compression import Codec, compress, mark_compressed
from pocketmq.spark.layout import QueueRecords
from pocketmq.spark.records import BATCH_BYTES, RowSelection, decode
from pocketmq.spark.schema import arrow_schema, wanted_columns
from tests.spark.test_records import QUEUE, record

MIB = 1024 * 1024
ZLIB = mark_compressed(0, Codec.ZLIB)
BODIES = StructType().add("queueOffset", "long").add("body", "binary")


def wanted(**changes: object) -> RowSelection:
    return RowSelection(wanted_columns(BODIES), arrow_schema(BODIES), **changes)  # type: ignore[arg-type]


def part(*records: bytes) -> QueueRecords:
    return QueueRecords(QUEUE, b"".join(records), 0, 2**63 - 1)


def test_a_batch_ends_where_its_bodies_become_too_many_bytes() -> None:
    packed = zlib.compress(bytes(12 * MIB))
    records = [
        record(n, body=packed if n % 2 else b"plain", sys_flag=ZLIB if n % 2 else 0)
        for n in range(12)
    ]
    batches = list(decode([part(*records)], wanted()))
    assert [batch.num_rows for batch in batches] == [5, 4, 3]
    assert [row for batch in batches for row in batch["queueOffset"].to_pylist()] == [*range(12)]
    sizes = [len(body) for batch in batches for body in batch["body"].to_pylist()]
    assert sizes == [5, 12 * MIB] * 6
    assert all(batch["body"].nbytes <= BATCH_BYTES + MIB for batch in batches)


def test_more_than_two_gibibytes_of_honest_bodies_are_read() -> None:
    """520 bodies of 4 MiB that compress well; one Arrow array could not hold them."""
    packed = compress(bytes(4 * MIB), Codec.ZSTD)
    sys_flag = mark_compressed(0, Codec.ZSTD)
    records = [record(n, body=packed, sys_flag=sys_flag) for n in range(520)]
    rows = total = 0
    for batch in decode([part(*records)], wanted()):
        rows += batch.num_rows
        total += batch["body"].nbytes
        assert batch["body"].nbytes <= BATCH_BYTES + MIB
    assert rows == 520
    assert total > 2**31


def test_a_body_over_the_limit_is_an_error_that_names_it_or_null(
    caplog: pytest.LogCaptureFixture,
) -> None:
    records = part(record(6), record(7, body=zlib.compress(bytes(2 * MIB)), sys_flag=ZLIB))
    with pytest.raises(BodyTooLarge, match=r"offset 7 of .*maxInflatedBytes") as caught:
        list(decode([records], wanted(largest=MIB)))
    assert caught.value.limit == MIB
    with caplog.at_level(logging.WARNING):
        (batch,) = decode([records], wanted(largest=MIB, strict=False))
    assert batch["body"].to_pylist() == [b"hello", None]
    assert "offset 7 of" in caplog.text
    (batch,) = decode([records], wanted(largest=2 * MIB))
    assert len(batch["body"][1].as_py()) == 2 * MIB


def test_rows_that_are_not_wanted_are_not_inflated() -> None:
    bomb = record(1, body=zlib.compress(bytes(2 * MIB)), sys_flag=ZLIB)
    limited = QueueRecords(QUEUE, record(0) + bomb, 0, 1)
    (batch,) = decode([limited], wanted(largest=MIB))
    assert batch["body"].to_pylist() == [b"hello"]


def test_inner_batches_are_unwrapped_a_limited_number_of_bytes_at_a_time() -> None:
    """Together they are over the limit, one by one they are not."""
    inner = encode_batch([BatchEntry(bytes(600_000), b"")] * 2)
    flags = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
    sys_flag = mark_compressed(flags, Codec.ZLIB)
    records = [record(2 * n, body=zlib.compress(inner), sys_flag=sys_flag) for n in range(6)]
    batches = list(decode([part(*records)], wanted(largest=2_500_000)))
    assert [batch.num_rows for batch in batches] == [4, 4, 4]
    offsets = [row for batch in batches for row in batch["queueOffset"].to_pylist()]
    assert offsets == [*range(12)]
    with pytest.raises(MessageMalformed, match=r"offset 0 of .*inner batch"):
        list(decode([part(*records)], wanted(largest=1_000_000)))


CHILD = """
import re, zlib
from pathlib import Path
from tests.spark.test_inflating import ZLIB, decode, part, record, wanted

def peak():  # of this program; getrusage also counts what the process was before it
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) >> 10

packed = zlib.compress(bytes(64 << 20))
records = part(*[record(n, body=packed, sys_flag=ZLIB) for n in range(10)])
list(decode([part(record(0))], wanted()))
before, rows = peak(), 0
for batch in decode([records], wanted()):
    rows += batch.num_rows
    del batch
print(len(records.records), rows, peak() - before)
"""


def test_a_bomb_costs_a_reader_a_few_bodies_of_memory() -> None:
    """10 messages of 640 KiB in all cost 3 GB; each inflates to the 64 MiB one may have."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=True, timeout=110
    )
    stored, rows, grown = map(int, child.stdout.split())
    assert stored < 700_000
    assert rows == 10
    assert 64 <= grown < 6 * 64  # MiB
