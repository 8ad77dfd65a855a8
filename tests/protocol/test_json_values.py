"""Typed values from JSON values and back."""

from enum import Enum, IntEnum
from typing import Any

import pytest

from pocketmq.errors import BodyMalformed
from pocketmq.model import MessageQueue, Permission, WireValue
from pocketmq.protocol import decode_body, encode_body
from pocketmq.protocol.json_values import decode_value


class Colour(Enum):
    RED = "RED"
    GREEN = "GREEN"


class Level(IntEnum):
    LOW = 0
    HIGH = 1


class Inner(WireValue, frozen=True, kw_only=True):
    some_name: str
    number: int = 7


class Outer(WireValue, frozen=True, kw_only=True):
    text: str = "unset"
    number: int = -1
    rate: float = 0.5
    flag: bool = False
    colour: Colour | None = None
    level: Level = Level.LOW
    maybe: int | None = None
    names: frozenset[str] = frozenset()
    codes: frozenset[int] = frozenset()
    inner: Inner | None = None
    many: list[Inner] = []
    pair: tuple[int, ...] = ()
    by_name: dict[str, Inner] = {}
    by_number: dict[int, str] = {}
    by_queue: dict[MessageQueue, int] = {}
    nested: dict[str, dict[MessageQueue, Inner]] = {}
    queue: MessageQueue | None = None
    anything: Any = None


def read(text: str) -> Outer:
    return decode_body(text, Outer)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"text":"x"}', Outer(text="x")),
        ('{"text":5}', Outer(text="5")),
        ('{"text":true}', Outer(text="true")),
        ('{"text":1.5}', Outer(text="1.5")),
        ('{"text":{"x":1}}', Outer(text='{"x":1}')),
        ('{"text":[1]}', Outer(text="[1]")),
        ('{"number":"12"}', Outer(number=12)),
        ('{"number":" -12 "}', Outer(number=-12)),
        ('{"number":1.0}', Outer(number=1)),
        ('{"number":"1.0"}', Outer(number=1)),
        ('{"number":true}', Outer(number=1)),
        ('{"number":""}', Outer()),
        ('{"rate":2}', Outer(rate=2.0)),
        ('{"rate":"2.5"}', Outer(rate=2.5)),
        ('{"rate":1.0E-7}', Outer(rate=1e-7)),
        ('{"rate":null}', Outer()),
        ('{"flag":"TRUE"}', Outer(flag=True)),
        ('{"flag":1}', Outer(flag=True)),
        ('{"flag":"0"}', Outer(flag=False)),
        ('{"colour":"GREEN"}', Outer(colour=Colour.GREEN)),
        ('{"colour":"green"}', Outer(colour=Colour.GREEN)),
        ('{"colour":1}', Outer(colour=Colour.GREEN)),
        ('{"colour":"BLUE"}', Outer()),
        ('{"colour":99}', Outer()),
        ('{"colour":""}', Outer()),
        ('{"level":"HIGH"}', Outer(level=Level.HIGH)),
        ('{"level":"FUTURE"}', Outer()),
        ('{"names":["b","a","a"]}', Outer(names=frozenset("ab"))),
        ('{"codes":["1",2]}', Outer(codes=frozenset({1, 2}))),
        ('{"inner":{"someName":"x"}}', Outer(inner=Inner(some_name="x"))),
        ('{"many":[{"someName":"x"},null]}', Outer(many=[Inner(some_name="x")])),
        ('{"pair":[1,2]}', Outer(pair=(1, 2))),
        ('{"byNumber":{0:"a","1":"b"}}', Outer(by_number={0: "a", 1: "b"})),
        ('{"byNumber":{0:null}}', Outer()),
        ('{"anything":[1,{"a":null}]}', Outer(anything=[1, {"a": None}])),
        ('{"text":null,"maybe":null,"unknown":null}', Outer()),
        ("{}", Outer()),
    ],
)
def test_values_are_coerced_as_fastjson_coerces_them(text: str, expected: Outer) -> None:
    """Q10, and the liberties other languages' clients take."""
    assert read(text) == expected


@pytest.mark.parametrize(
    "key",
    [
        '{"brokerName":"b","queueId":3,"topic":"t"}',
        '{ "topic" : "t",\n\t"queueId":"3", "brokerName":"b" }',
        "{topic:'t',queueId:3,brokerName:'b'}",
        r'"{\"brokerName\":\"b\",\"queueId\":3,\"topic\":\"t\"}"',
    ],
)
def test_a_queue_is_a_key_in_every_notation(key: str) -> None:
    expected = MessageQueue("t", "b", 3)
    assert read(f'{{"byQueue":{{{key}:5}}}}').by_queue == {expected: 5}
    nested = read(f'{{"nested":{{"c":{{{key}:{{"someName":"x"}}}}}}}}').nested
    assert nested == {"c": {expected: Inner(some_name="x")}}


def test_unknown_fields_are_kept_at_every_level_and_written_back() -> None:
    text = (
        b'{"added":[1,{"x":"y"}],"byName":{"k":{"number":1,"someName":"n","soon":true}},'
        b'"inner":{"later":{"a":1},"number":7,"someName":"x"}}'
    )
    value = decode_body(text, Outer)
    assert value.extra == {"added": [1, {"x": "y"}]}
    assert value.by_name["k"].extra == {"soon": True}
    assert value.inner is not None
    assert value.inner.extra == {"later": {"a": 1}}
    written = decode_body(encode_body(value), dict[str, Any])
    assert written["added"] == [1, {"x": "y"}]
    assert written["byName"] == {"k": {"number": 1, "someName": "n", "soon": True}}
    assert list(written) == sorted(written)


def test_an_unknown_field_never_overrides_a_known_one() -> None:
    value = Inner(some_name="x", number=1, extra={"number": 2})
    assert encode_body(value) == b'{"number":1,"someName":"x"}'


def test_what_is_written_has_sorted_names_and_no_nulls() -> None:
    value = Outer(
        colour=Colour.RED,
        level=Level.HIGH,
        names=frozenset({"b", "a"}),
        codes=frozenset({10, 9}),
        by_number={1: "x"},
        by_queue={MessageQueue("t", "b", 3): 5},
        queue=MessageQueue('"', "é", 0),
    )
    assert encode_body(value).decode() == (
        '{"byName":{},"byNumber":{"1":"x"},"byQueue":{{"brokerName":"b","queueId":3,"topic":"t"}:5},'
        '"codes":[9,10],"colour":"RED","flag":false,"level":"HIGH","many":[],"names":["a","b"],"nested":{},'
        '"number":-1,"pair":[],"queue":{"brokerName":"é","queueId":0,"topic":"\\""},"rate":0.5,"text":"unset"}'
    )


def test_flags_are_written_as_numbers() -> None:
    assert encode_body(Inner(some_name="x", number=Permission.READ | Permission.WRITE)) == (
        b'{"number":6,"someName":"x"}'
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "the body is an array, not an object"),
        ("null", "the body is null"),
        ('{"number":"x"}', "number is a string, not a number"),
        ('{"number":1.5}', "number is a number, not an integer"),
        ('{"number":[]}', "number is an array, not an integer"),
        ('{"number":9223372036854775808}', "number does not fit 64 bits"),
        ('{"number":"' + "9" * 500 + '"}', "number is a string, not a number"),
        ('{"rate":{}}', "rate is an object, not a number"),
        ('{"rate":1' + "0" * 400 + "}", "rate is too large a number"),
        ('{"flag":"maybe"}', "flag is a string, not a boolean"),
        ('{"flag":2}', "flag is a number, not a boolean"),
        ('{"colour":{}}', "colour is an object, not a name"),
        ('{"names":{}}', "names is an object, not an array"),
        ('{"names":"a"}', "names is a string, not an array"),
        ('{"byName":[]}', "byName is an array, not a map"),
        ('{"byName":{"k":{}}}', "byName['k'] lacks someName"),
        ('{"byName":{"k":{"someName":null}}}', "byName['k'] lacks someName"),
        ('{"many":[{"someName":"x"},{"someName":"y","number":[]}]}', "many[1].number is an array, not an integer"),
        ('{"byNumber":{"x":"y"}}', "byNumber['x'] is a string, not a number"),
        ('{"byQueue":{"x":1}}', "byQueue['x'] is a key that is not a queue: unexpected word; expected a JSON value at character 0"),
        ('{"byQueue":{{"topic":"t"}:1}}', "byQueue['{\"topic\":\"t\"}'] lacks brokerName"),
        ('{"unknown":' + "[" * 40 + "]" * 40 + "}", "unknown nests deeper than 32 levels"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_path(text: str, reason: str) -> None:
    with pytest.raises(BodyMalformed) as caught:
        read(text)
    assert (caught.value.expected, caught.value.reason) == ("Outer", reason)


def test_a_queue_id_beyond_javas_int_is_refused() -> None:
    with pytest.raises(BodyMalformed, match="32 bits"):
        read('{"byQueue":{{"brokerName":"b","queueId":4294967296,"topic":"t"}:1}}')


def test_lists_and_maps_may_be_bodies_themselves() -> None:
    assert decode_body(b'["a",1]', list[str]) == ["a", "1"]
    assert decode_body(b'[{"someName":"x"}]', list[Inner]) == [Inner(some_name="x")]
    assert decode_value({"1": 2}, dict[int, int]) == {1: 2}
    assert encode_body([Inner(some_name="x")]) == b'[{"number":7,"someName":"x"}]'
    with pytest.raises(BodyMalformed, match=r"list\[str\]"):
        decode_body(b"{}", list[str])


def test_errors_never_show_values() -> None:
    with pytest.raises(BodyMalformed) as caught:
        read('{"number":"hunter2"}')
    assert "hunter2" not in str(caught.value)
