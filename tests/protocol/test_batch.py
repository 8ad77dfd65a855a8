import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import InvalidInput, MessageMalformed
from pocketmq.model import Message
from pocketmq.protocol.batch import (
    BatchEntry,
    batch_entry,
    check_batch,
    decode_batch,
    encode_batch,
)
from pocketmq.protocol.property_text import decode_properties
from tests.protocol.golden_messages import BATCH
from tests.protocol.strategies import entries


@given(st.lists(entries, max_size=8))
def test_batches_survive_the_round_trip(many: list[BatchEntry]) -> None:
    raw = encode_batch(many)
    assert decode_batch(raw) == many
    assert len(raw) == sum(entry.encoded_size() for entry in many)


def test_a_message_becomes_an_entry_with_an_id_of_its_own() -> None:
    message = Message("T", b"body", tag="a", keys=["k1", "k2"], properties={"p": "v"}, flag=7)
    entry = batch_entry(message, "ID1")
    assert (entry.body, entry.flag) == (b"body", 7)
    assert decode_properties(entry.property_bytes) == {
        "p": "v",
        "KEYS": "k1 k2",
        "WAIT": "true",
        "TAGS": "a",
        "UNIQ_KEY": "ID1",
    }


@pytest.mark.parametrize(
    "wrong", [BatchEntry(b"x", bytes(32768)), BatchEntry(b"x", b"", 1 << 31)], ids=["text", "flag"]
)
def test_an_entry_the_format_has_no_room_for_is_refused(wrong: BatchEntry) -> None:
    with pytest.raises(InvalidInput):
        encode_batch([wrong])


def test_a_batch_cut_anywhere_is_refused() -> None:
    for end in set(range(1, len(BATCH))) - {0x24}:
        with pytest.raises(MessageMalformed) as caught:
            decode_batch(BATCH[:end])
        assert caught.value.position == (0 if end < 0x24 else 0x24)


@pytest.mark.parametrize(
    ("at", "size", "values"),
    [
        (0, 4, [0, 21, 35, 37, -1, 2**31 - 1, 0x48]),
        (16, 4, [-1, 1, 3, 15, 2**31 - 1, -(2**31)]),
        (22, 2, [-1, 11, 13, 32767, -32768]),
    ],
)
def test_lengths_that_lie_are_refused(at: int, size: int, values: list[int]) -> None:
    for value in values:
        raw = BATCH[:at] + value.to_bytes(size, "big", signed=True) + BATCH[at + size :]
        with pytest.raises(MessageMalformed):
            decode_batch(raw)


@settings(max_examples=200)
@given(st.binary(max_size=80), st.integers(0, len(BATCH)))
def test_garbage_is_refused_and_nothing_else_escapes(garbage: bytes, kept: int) -> None:
    try:
        read = decode_batch(BATCH[:kept] + garbage)
    except MessageMalformed:
        return
    assert sum(entry.encoded_size() for entry in read) == kept + len(garbage)


def test_sound_batches_are_let_through() -> None:
    check_batch([Message("T" * 127, b"1"), Message("T" * 127, b"2", tag="a")])


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "at least one"),
        ([Message("A", b"1"), Message("B", b"2")], "the same topic"),
        ([Message("%RETRY%g", b"1")], "retry"),
        ([Message("T" * 128, b"1")], "127"),
        ([Message("A", b"1"), Message("A", b"")], "no body"),
    ],
    ids=["empty", "topics", "retry", "long topic", "no body"],
)
def test_messages_that_may_not_travel_together_are_refused(
    messages: list[Message], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        check_batch(messages)


def test_a_batch_cannot_be_delayed() -> None:
    with pytest.raises(InvalidInput, match="delayed"):
        check_batch([Message("A", b"1")], delayed=True)
