"""The quick way through maps with object keys: it reads as the tolerant reader does, or not at all."""

import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import BodyMalformed
from pocketmq.model import MessageQueue, WireValue
from pocketmq.protocol import decode_body, encode_body
from pocketmq.protocol.fastjson import ObjectKey, loads
from pocketmq.protocol.fastjson.quirks import read_with_object_keys
from pocketmq.protocol.fastjson.reader import _read

KEY = '{"brokerName":"a","queueId":0,"topic":"t"}'


def test_object_keys_are_read_with_all_that_is_around_them() -> None:
    text = f'{{"n":1,"table":{{{KEY}:{{"x":[1,{{"y":2}}]}},"plain" : null}},"s":"}}:"}}'
    value = read_with_object_keys(text.encode())
    assert value == {"n": 1, "table": {KEY: {"x": [1, {"y": 2}]}, "plain": None}, "s": "}:"}
    assert [type(key) for key in value["table"]] == [ObjectKey, str]


@pytest.mark.parametrize(
    "text",
    [
        '{"x":"a {b","c":"}:"}',
        '{"x":",{\\"queueId\\":1}:","t":{{"q":1}:2}}',
        '{"x":"{","t":{{"q":"}"}:1},"y":"}:1"}',
        '{{"a":"b"}:1,{"a":"b"}:2}',
        '[{{"q":1}:{{"q":2}:{{"q":3}:[]}}}]',
        '{ {"q":1} \n:\t1 }',
    ],
)
def test_braces_in_strings_mislead_nobody(text: str) -> None:
    assert loads(text.encode()) == _read(text, "JSON")


@pytest.mark.parametrize(
    "text",
    ["{{q:1}:2}", "{{'q':1}:2}", '{{"q":1,}:2}', '{{"\\u0000":1}:2}'],
)
def test_loose_notation_is_left_to_the_tolerant_reader(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_with_object_keys(text.encode())
    assert loads(text.encode()) == _read(text, "JSON")


@given(st.text(alphabet="{}[]\":,\\ q1'u0\n", max_size=40))
@settings(max_examples=1500)
def test_what_it_reads_at_all_it_reads_as_the_tolerant_reader(text: str) -> None:
    try:
        value = read_with_object_keys(text.encode())
    except (msgspec.DecodeError, UnicodeError):
        return
    assert value == _read(text, "JSON")


class Figures(WireValue, frozen=True, kw_only=True):
    """What a queue has: numbers and switches alone."""

    offset: int = 0
    at_ms: int = 0
    locked: bool = False


class Table(WireValue, frozen=True, kw_only=True):
    """Figures of many queues."""

    table: dict[MessageQueue, Figures] = {}


awkward = st.text(alphabet='{}":,\\ aé\u2028', max_size=8)
queues = st.builds(MessageQueue, awkward, awkward, st.integers(-(2**31), 2**31 - 1))
integers = st.integers(-(2**63), 2**63 - 1)


@given(
    st.dictionaries(
        queues,
        st.builds(Figures, offset=integers, at_ms=integers, locked=st.booleans()),
        max_size=4,
    )
)
def test_tables_of_queues_come_back_whatever_the_names(table: dict[MessageQueue, Figures]) -> None:
    assert decode_body(encode_body(Table(table=table)), Table) == Table(table=table)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", Figures()),
        ('{"offset":7,"locked":true}', Figures(offset=7, locked=True)),
        ('{"offset":null,"atMs":"5"}', Figures(at_ms=5)),
        ('{"offset":true,"locked":1}', Figures(offset=1, locked=True)),
        ('{"offset":3.0}', Figures(offset=3)),
        ('{"offset":1,"later":2}', Figures(offset=1, extra={"later": 2})),
        ('{"offset":1,"extra":2}', Figures(offset=1, extra={"extra": 2})),
    ],
)
def test_figures_are_coerced_as_ever(text: str, expected: Figures) -> None:
    assert decode_body(text.encode(), Figures) == expected


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64])
def test_figures_beyond_64_bits_are_refused(number: int) -> None:
    with pytest.raises(BodyMalformed, match=r"offset does not fit 64 bits|offset is"):
        decode_body(b'{"offset":%d}' % number, Figures)


@pytest.mark.parametrize(
    "text",
    ["{" * 400_000, '{"' * 200_000, '{"a"' * 100_000, "{}" * 200_000, '{"a":1}' * 60_000],
)
def test_hostile_text_is_refused_in_linear_time(text: str) -> None:
    began = time.process_time()
    with pytest.raises((msgspec.DecodeError, RecursionError)):
        read_with_object_keys(text.encode())
    assert time.process_time() - began < 2
