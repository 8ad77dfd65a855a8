"""The core encodes a batch of messages as the pure function does, and refuses the same ones."""

import contextlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import InvalidInput
from pocketmq.model import Message
from pocketmq.protocol.batch import decode_batch, entry_sizes
from pocketmq.protocol.property_text import decode_properties
from tests.native.both import alone, same

PREFIX = "7F000001004D000000050001ABCD"
any_text = st.text(max_size=6) | st.text("ab\x01\x02 ä😀\ud800", max_size=4)
names = st.sampled_from(["region", "k", "ä", "KEYS", "WAIT", "TAGS", "UNIQ_KEY", ""]) | any_text
values = any_text | st.sampled_from(["v" * 32700, "v" * 33000])
flags = st.sampled_from([0, 0, 0, 7, -(2**31), 2**31 - 1, 2**31, True])
key_lists = st.lists(any_text, max_size=3)
keys = key_lists | key_lists.map(tuple) | st.just(())


def message(
    body: bytes, tag: str | None, keys: Sequence[str], properties: Mapping[str, str], flag: int
) -> Message:
    """Make a message, with properties laid into it afterwards that it would refuse."""
    own: dict[str, str] = {}
    with contextlib.suppress(InvalidInput):
        made = Message("T", body, tag, keys, own, flag)
        own.update(properties)
        return made
    return Message("T", body, tag, (), own, flag)


usual = st.builds(Message, st.just("T"), st.binary(max_size=20), st.none() | st.just("tag"))
others = st.builds(
    message,
    st.binary(max_size=20),
    st.none() | any_text,
    keys,
    st.dictionaries(names, values, max_size=2),
    flags,
)
batches = st.lists(usual, max_size=5) | st.lists(usual | others, max_size=3)
steps = st.integers(0, 70_000) | st.sampled_from([-1, 2**63, 2**64])


@settings(max_examples=150)
@given(batches, st.data())
def test_any_messages(batch: list[Message], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(steps, min_size=len(batch), max_size=len(batch)))
    form = data.draw(st.sampled_from([list, tuple]))
    same("encode_numbered", form(batch), PREFIX, numbers)


@given(batches, st.lists(steps, max_size=3), st.text(max_size=5) | st.just("%s"))
def test_other_numbers_of_ids_and_other_prefixes(
    batch: list[Message], numbers: list[int], prefix: str
) -> None:
    same("encode_numbered", batch, prefix, numbers)


class Louder(Message, frozen=True):
    def wire_properties(self) -> dict[str, str]:
        return super().wire_properties() | {"loud": "yes"}


def test_forms_that_the_core_leaves_to_the_pure_function() -> None:
    odd: list[Any] = [
        Louder("T", b"x", "tag"),
        Message("T", b"x", properties=MappingProxyType({"a": "b"})),
        Message("T", b"x", keys=cast("Sequence[str]", range(0))),
        "no message",
    ]
    for each in odd:
        same("encode_numbered", [Message("T", b"1"), each], PREFIX, [1, 2])
    empty = (tuple, (bytes, b""), (str, ""))
    assert same("encode_numbered", [], PREFIX, []) == ("returned", empty)


def test_properties_by_the_names_of_others_are_left_to_the_pure_function() -> None:
    for name in ("KEYS", "WAIT", "TAGS", "UNIQ_KEY"):
        odd = message(b"x", "tag", ["key"], {"a": "b", name: "v", "c": "d"}, 0)
        assert odd.properties[name] == "v"
        same("encode_numbered", [odd], PREFIX, [1])


def test_separators_are_refused_in_names_and_kept_or_refused_in_values() -> None:
    for name, value in (
        ("a\x01b", "v"),
        ("a\x02b", "v"),
        ("a", "v\x01w"),
        ("a", "v\x02w"),
        ("", "v"),
    ):
        odd = message(b"x", None, (), {name: value}, 0)
        kind, *_ = same("encode_numbered", [odd], PREFIX, [1])
        assert (kind == "returned") == (value == "v\x01w")


def test_what_is_encoded_can_be_read() -> None:
    batch = [
        Message("T", b"one"),
        Message("T", b"two", "tag", ["a", "b"], {"region": "eu", "empty": "ä"}, 5),
        Message("T", b"", keys=("c",)),
    ]
    (_, (kind, (_, body), (_, ids))) = same("encode_numbered", batch, PREFIX, [1, 0xFFFF, 0x10000])
    assert kind is tuple
    assert ids == f"{PREFIX}0001,{PREFIX}FFFF,{PREFIX}0000"
    entries = decode_batch(body)
    assert [entry.body for entry in entries] == [b"one", b"two", b""]
    assert decode_properties(entries[1].property_bytes) == {
        "region": "eu",
        "empty": "ä",
        "KEYS": "a b",
        "WAIT": "true",
        "TAGS": "tag",
        "UNIQ_KEY": f"{PREFIX}FFFF",
    }
    assert entries[1].flag == 5
    assert entry_sizes(body) == [entry.encoded_size() for entry in entries]


def test_usual_messages_need_no_help() -> None:
    batch = [
        Message("T", b"one"),
        Message("T", b"two", "ä", ["a", "b"], {"region": "eu"}, -5),
        Message("T", b"", "", ("a",)),
    ]
    for form in (list, tuple):
        alone("encode_numbered", form(batch), PREFIX, [1, 2, 3])


@settings(max_examples=150)
@given(batches, st.data())
def test_any_frames_of_batches(batch: list[Message], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(steps, min_size=len(batch), max_size=len(batch)))
    if data.draw(st.booleans()):
        last = data.draw(st.sampled_from([Message("other", b"x"), Message("T", b"x", priority=0)]))
        batch, numbers = [*batch, last], [*numbers, 1]
    if batch:
        pieces = (b'{"code":320,"a":"', b'","k":"false"},"flag":', b"UNIQ_KEY")
        same("batch_frame", *pieces, batch, PREFIX, numbers, data.draw(steps) & 2**62, 77)


def test_the_frame_of_a_usual_batch_is_written_by_the_core_itself() -> None:
    batch = [Message("T", b"one"), Message("T", b"two", tag="b")]
    frame, ids, size = alone("batch_frame", b"{", b"}", b"p", batch, PREFIX, [1, 2], 5, 7)
    body, same_ids = alone("encode_numbered", batch, PREFIX, [1, 2])
    assert (frame[-size:], ids) == (body, same_ids)
    assert frame[8:].startswith(
        b'{0","g":"5","h":"0","i":"p","j":"0}0,"language":"PYTHON","opaque":7'
    )
