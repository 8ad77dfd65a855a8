"""The core makes of a half message what the pure function does."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.broker.transactions.rules import committed
from pocketmq.protocol import RecordView
from pocketmq.protocol.records import Record, encode_record, pack_record, placed
from tests.native.both import alone, damaged, same

PLACE = b"REAL_TOPIC\x01orders\x02REAL_QID\x013\x02"
HALF = Record(
    topic=b"RMQ_SYS_TRANS_HALF_TOPIC",
    body=b"body",
    property_bytes=b"UNIQ_KEY\x01K\x02TAGS\x01paid\x02TRAN_MSG\x01true\x02PGROUP\x01g\x02" + PLACE,
    flag=7,
    sys_flag=1,
    born_timestamp_ms=5,
    born_host=bytes(range(8)),
    commit_log_offset=4711,
    reconsume_times=2,
)
PIECES = st.lists(
    st.sampled_from(
        [PLACE, b"REAL_TOPIC\x01T\x02", b"REAL_TOPIC\x01\x02", b"REAL_QID\x0103\x02", b"REAL_QID\x01x",
         b"REAL_QID\x014294967299\x02", b"REAL_QID\x01\x02", b"PGROUP\x01g\x02", b"PGROUP\x01h\x02", b"\x02",
         b"CHECK_IMMUNITY_TIME_IN_SECONDS\x015\x02", b"CHECK_IMMUNITY_TIME_IN_SECONDS\x01\x02",
         "REAL_TOPIC\x01ä\x02".encode(), b"REAL_TOPIC\x01RMQ_SYS_TRANS_HALF_TOPIC\x02", b"\xff\x02",
         b"TAGS\x01a\x02", b"k\x01" + b"v" * 500 + b"\x02", b"\0",
         b"REAL_TOPIC\x01" + b"t" * 128 + b"\x02"]
    ),
    max_size=6,
)  # fmt: skip


def test_a_usual_commit_is_made_by_the_core_alone_and_is_what_the_rules_make() -> None:
    half = encode_record(HALF)
    *place, record = alone("usual_commit", half, b"g")
    view = RecordView(half, 0)
    ending = committed(view, view.property_bytes, 0)
    assert ending is not None
    assert place == ["orders", 3, view.tags_code()]
    host = bytes(range(9, 17))
    expected = pack_record(ending.record, 10, 11, 12, host)
    assert placed(record, 10, 11, 12, host) == expected


@pytest.mark.parametrize(
    "change",
    [{"born_host": bytes(20)}, {"store_host": bytes(20)}, {"body_crc": 0}, {"sys_flag": 0x80},
     {"topic": b"t" * 128}],
)  # fmt: skip
def test_others_are_left_to_the_rules(change: dict[str, Any]) -> None:
    half = encode_record(msgspec.structs.replace(HALF, **change))
    assert same("usual_commit", half, b"g") == ("returned", (type(None), None))


@settings(max_examples=500)
@given(PIECES, PIECES, st.sampled_from([PLACE, PLACE, b""]), st.sampled_from([b"g", b"h", b""]))
def test_properties_in_any_order(
    before: list[bytes], after: list[bytes], place: bytes, group: bytes
) -> None:
    text = b"".join([*before, b"PGROUP\x01g\x02", *after, place])
    half = encode_record(msgspec.structs.replace(HALF, property_bytes=text))
    same("usual_commit", half, group)


@settings(max_examples=300)
@given(st.data())
def test_damaged_records(data: Any) -> None:
    same("usual_commit", data.draw(damaged(encode_record(HALF))), b"g")
