"""Bodies as people read them, whatever they are made of."""

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.dashboard.formatting import (
    LONGEST_TEXT,
    NEVER,
    as_hex,
    as_json,
    as_msgpack,
    as_text,
    leaders_text,
    moment,
)
from pocketmq.model import MessageQueue


@given(st.binary(max_size=2000))
def test_every_body_can_be_shown_somehow(body: bytes) -> None:
    text = as_text(body)
    assert text is None or text.encode() == body
    shown = "".join(line[10:58] for line in as_hex(body).splitlines())
    assert bytes.fromhex(shown) == body
    as_json(body)
    as_msgpack(body)


def test_message_pack_is_laid_out_as_json() -> None:
    body = msgspec.msgpack.encode({"a": [1, "é"], "raw": b"\xff"})
    assert json.loads(as_msgpack(body) or "") == {"a": [1, "é"], "raw": "b'\\xff'"}
    for other in (b"", b"text", b"\x01", b"\xdd\xff\xff\xff\xff", b"\x91" * 60_000, body + b"x"):
        assert as_msgpack(other) is None
    assert as_msgpack(msgspec.msgpack.encode(["x" * LONGEST_TEXT])) is None


def test_json_is_laid_out() -> None:
    assert as_json(b' {"a":[1,"\xc3\xa9"]}') == '{\n  "a": [\n    1,\n    "é"\n  ]\n}'
    assert as_json(b"42 EUR") is None
    assert as_json(b'{"a":') is None
    assert as_json(b"[" * 60_000) is None


def test_long_text_is_cut_and_says_so_also_within_a_letter() -> None:
    for body in (b"x" * 200_000, "é".encode() * 100_000, b"x" + "é".encode() * 100_000):
        text = as_text(body)
        assert text is not None
        assert text.endswith("… truncated: the body has " + f"{len(body):,} bytes")
        assert len(text) < LONGEST_TEXT + 100
    assert as_json(json.dumps(["x" * LONGEST_TEXT]).encode()) is None
    assert as_hex(b"x" * 10_000).endswith("… and 1,808 more bytes")


def test_control_characters_are_bytes_not_text() -> None:
    assert as_text(b"a\x00b") is None
    assert as_text(b"a\x1b[2Jb") is None
    assert as_text(b"a\tb\r\n") == "a\tb\r\n"


def test_times_name_their_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        for zone, shown in (("UTC", "22:13:20 +0000"), ("Asia/Kolkata", "03:43:20 +0530")):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert moment(1_700_000_000_000).endswith(shown)
        assert moment(0) == NEVER
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_static_topic_says_which_broker_leads_which_queue() -> None:
    names = ["broker-b", "broker-a", "broker-b"]
    queues = {MessageQueue("fixed", "__syslo__global__", i): name for i, name in enumerate(names)}
    assert leaders_text(queues) == (
        "Static topic; logical queues: broker-a leads 1; broker-b leads 0, 2."
    )
    assert leaders_text({}) == ""
