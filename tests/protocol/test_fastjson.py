"""fastjson's dialect: what is read, what is written, and what no input can do."""

import contextlib
import json
import math
import string
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pocketmq.errors import BodyMalformed, InvalidInput
from pocketmq.protocol.fastjson import MAX_DEPTH, ObjectKey, dumps, loads
from pocketmq.protocol.fastjson.reader import MAX_CONTAINERS, MAX_UNUSUAL
from pocketmq.protocol.fastjson.writer import java_double

QUEUE = '{"brokerName":"b","queueId":0,"topic":"t"}'

# --- reading ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1,"b":[true,false,null,"x"]}', {"a": 1, "b": [True, False, None, "x"]}),
        ('{0:"x",1:"y"}', {"0": "x", "1": "y"}),
        ('{-1:1,1.5:2,true:3,null:4,name:5,%RETRY%G:6}',
         {"-1": 1, "1.5": 2, "true": 3, "null": 4, "name": 5, "%RETRY%G": 6}),
        ("{'a':'it''s'}".replace("''", "\\'"), {"a": "it's"}),
        ('{"a":1,}', {"a": 1}),
        ('{"a":1,,"b":2}', {"a": 1, "b": 2}),
        ('["a" "b",]', ["a", "b"]),
        ('\ufeff {"a":1}\n\t ', {"a": 1}),
        ('{/* one */"a":1}// two', {"a": 1}),
        ('{"a":1.0E-7,"b":1.0E10,"c":-5.0}', {"a": 1e-7, "b": 1e10, "c": -5.0}),
        ('{"a":1L,"b":2.5F,"c":.5,"d":+3,"e":007}', {"a": 1, "b": 2.5, "c": 0.5, "d": 3, "e": 7}),
        ('{"a":9223372036854775807,0:-9223372036854775808}', {"a": 2**63 - 1, "0": -(2**63)}),
        ('["\\u0041\\x41\\/\\v\\0\\7\\\'",0x]'.replace(",0x", ""), ["AA/\v\0\x07'"]),
        ('{0:"\\ud83d\\ude00\\u4e2d"}', {"0": "😀中"}),
        ('{0:"\\ud83d!"}', {"0": "\ufffd!"}),
        ('{"a":"raw\ttab\nline\x01"}', {"a": "raw\ttab\nline\x01"}),
        ('{"a":1,"a":2}', {"a": 2}),
        ("{0:1}", {"0": 1}),
        ("[]", []),
        ("{}", {}),
        ("'x'", "x"),
        ("  12 ", 12),
        ("undefined", None),
    ],
)  # fmt: skip
def test_fastjsons_liberties_are_read(text: str, value: object) -> None:
    assert loads(text) == value
    assert loads(text.encode()) == value


def test_numbers_that_are_none_are_read_as_doubles() -> None:
    nan, plus, minus = loads("[NaN,Infinity,-Infinity]")
    assert math.isnan(nan)
    assert (plus, minus) == (math.inf, -math.inf)


def test_an_object_as_a_key_reads_like_a_string_that_holds_it() -> None:
    """Q2 and Q4: both forms give the same map."""
    as_object = loads(f'{{"offsetTable":{{{QUEUE}:5}}}}')
    as_string = loads(json.dumps({"offsetTable": {QUEUE: 5}}))
    assert as_object == as_string == {"offsetTable": {QUEUE: 5}}
    (key,) = as_object["offsetTable"]
    assert type(key) is ObjectKey


def test_an_object_key_in_loose_notation_becomes_standard_json() -> None:
    assert loads("{{'queueId':0,topic:'t'}:1}") == {'{"queueId":0,"topic":"t"}': 1}


def test_an_object_key_keeps_braces_and_quotes_inside_its_strings() -> None:
    key = '{"topic":"a}{\\"b"}'
    assert loads(f"{{{key}:1}}") == {key: 1}


def test_a_pretty_printed_file_is_read() -> None:
    """Q9: tabs, and maps with integer keys whose bracket stands on the next line."""
    text = '{\n\t"offsetTable":{\n\t\t"T@G":{0:16,1:11\n\t\t},{\n\t\t"q":1\n\t\t}:16\n\t}\n}'
    assert loads(text) == {"offsetTable": {"T@G": {"0": 16, "1": 11}, '{\n\t\t"q":1\n\t\t}': 16}}


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", "[", '{"a"', '{"a":', '{"a":1', "[1", '{"a":1]', "[1}", "{]", '"abc', "'abc",
        '{"a":abc}', "{:1}", "nul", "tru", '{"a":"\\q"}', '{"a":"\\u12"}', '{"a":"\\', "/* open", "1 2", "{} {}",
        '{"a":1} x', '{"a":1}}', "{{}}", "{{1:1}}", "{{{}:1}:1}", "{[1]:2}", '{"a" 1}', "1e", "-", ".", "\x00", "9" * 5000,
    ],
)  # fmt: skip
def test_what_java_refuses_too_is_refused(text: str) -> None:
    with pytest.raises(BodyMalformed):
        loads(text)


def test_an_error_names_the_body_and_the_place() -> None:
    with pytest.raises(BodyMalformed, match=r"malformed Heartbeat: .* at character 5"):
        loads('{"a":abc}', "Heartbeat")


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(BodyMalformed, match="not UTF-8 at byte 2"):
        loads(b'["\xff"]')


# --- references ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"x":{"a":1},"y":{"$ref":"$.x"}}', {"x": {"a": 1}, "y": {"a": 1}}),
        ('{"x":[{"a":1}],"y":{"$ref":"$.x[0]"}}', {"x": [{"a": 1}], "y": {"a": 1}}),
        ('{"x.y[z":{"a":1},"b":{"$ref":"$.x\\\\.y\\\\[z"}}', {"x.y[z": {"a": 1}, "b": {"a": 1}}),
        ('{"x y":[1],"b":{"$ref":"$[\\"x y\\"]"}}', {"x y": [1], "b": [1]}),
        ('[{"a":1},{"$ref":"$[0]"}]', [{"a": 1}, {"a": 1}]),
        ('{"a":{},"b":{"c":{"$ref":"$.a"}},"d":{"$ref":"$.b"}}', {"a": {}, "b": {"c": {}}, "d": {"c": {}}}),
        ('{0:{"a":1},"y":{"$ref":"$.0"}}', {"0": {"a": 1}, "y": {"a": 1}}),
        ('{"y":{"$ref":"$.nowhere[7].x"}}', {"y": None}),
        ('{"y":{"$ref":"elsewhere"}}', {"y": None}),
        ('{"y":{"$ref":1}}', {"y": {"$ref": 1}}),
        ('{"$ref":"$","more":1}', {"$ref": "$", "more": 1}),
    ],
)  # fmt: skip
def test_references_give_what_they_refer_to(text: str, value: object) -> None:
    """Q5."""
    assert loads(text) == value


@pytest.mark.parametrize("path", ["$", "..", "@", "$.x", "$.x.y"])
def test_a_reference_to_a_value_around_it_is_refused(path: str) -> None:
    with pytest.raises(BodyMalformed, match="circle"):
        loads(f'{{"x":{{"y":{{"$ref":"{path}"}}}}}}')


def test_a_body_that_is_a_reference_is_refused() -> None:
    with pytest.raises(BodyMalformed, match="reference"):
        loads('{"$ref":"$"}')


def test_references_cannot_blow_a_small_body_up() -> None:
    levels = ['"a0":[1,2,3,4,5,6,7,8,9,0]']
    levels += [
        f'"a{n}":[{",".join([json.dumps({"$ref": f"$.a{n - 1}"})] * 10)}]' for n in range(1, 12)
    ]
    with pytest.raises(BodyMalformed, match="stand for more than"):
        loads("{" + ",".join(levels) + "}")


def test_references_cannot_nest_deeper_than_text_may() -> None:
    half = MAX_DEPTH // 2 + 2
    deep = "[" * half + "]" * half
    chained = "[" * half + '{"$ref":"$.a"}' + "]" * half
    with pytest.raises(BodyMalformed, match="deeper"):
        loads(f'{{"a":{deep},"b":{chained}}}')


# --- limits ---


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ("{0:", "}")])
def test_nesting_is_allowed_to_a_limit_and_no_further(opening: str, closing: str) -> None:
    def nested(levels: int) -> str:
        return opening * levels + "1" + closing * levels

    loads(nested(MAX_DEPTH))
    for levels in (MAX_DEPTH + 1, 500, 100_000):
        with pytest.raises(BodyMalformed):
            loads(nested(levels))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        '{"a":' * 200_000,
        "{" * 500_000,
        '{"' + "\\\\" * 500_000,
        '"' + "a" * 1_000_000,
        "{{" + '"a":1,' * 100_000,
        "/*" + "*" * 1_000_000,
        "{0:" + "9" * 1_000_000 + "}",
        "[" + "," * 1_000_000,
        "{" + '{"a":1}' * 100_000,
        '{0:"' + "\\ud800" * 100_000 + '"}x',
        "{a" + " " * 1_000_000,
        '{"$ref":"$' + "[0]" * 300_000 + '"}',
        '{"a":{"$ref":"$' + ".a\\\\" * 200_000 + '"}}',
    ],
)  # fmt: skip
def test_hostile_text_is_refused_in_linear_time(text: str) -> None:
    """Each is about a megabyte; anything worse than linear would take minutes."""
    start = time.process_time()
    with contextlib.suppress(BodyMalformed):
        loads(text)
    assert time.process_time() - start < 3


def test_a_text_with_a_million_containers_is_read_and_one_more_refused() -> None:
    """Plain JSON or not: memory is taken for every one of them."""
    plain = "[" + "{}," * (MAX_CONTAINERS - 2) + "{}]"
    assert len(loads(plain)) == MAX_CONTAINERS - 1
    with pytest.raises(BodyMalformed, match="1000001 objects and arrays; at most 1000000"):
        loads("[" + "{}," * MAX_CONTAINERS + "]")


def test_reading_what_is_not_plain_json_ends_after_a_million_values() -> None:
    with pytest.raises(BodyMalformed, match="more than 1000000 values that are not plain JSON"):
        loads("[" + "1 " * (MAX_UNUSUAL + 1) + "]")


@settings(max_examples=400)
@given(st.binary(max_size=60))
@example(b'{"$ref":"$"}')
@example(b"{{{}:1}:1}")
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with contextlib.suppress(BodyMalformed):
        loads(data)


@settings(max_examples=400)
@given(st.text(alphabet="{}[]:,\"'\\/*$ref.01eE-+tfnuNa \n@", max_size=60))
def test_no_text_of_the_dialects_own_characters_raises_anything_else(text: str) -> None:
    with contextlib.suppress(BodyMalformed):
        loads(text)


# --- writing ---


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": None, "c": [None, True, False]}, '{"b":1,"c":[null,true,false]}'),
        ({ObjectKey(QUEUE): 5}, f"{{{QUEUE}:5}}"),
        ({"cid": {ObjectKey(QUEUE): 3}}, f'{{"cid":{{{QUEUE}:3}}}}'),
        ({0: "a", -1: "b"}, '{"0":"a","-1":"b"}'),
        ({"a": ()}, '{"a":[]}'),
        ({}, "{}"),
        ({"a": None}, "{}"),
        (2**63 - 1, "9223372036854775807"),
        ('é中😀\u2028"\\/\n\x01\x0b\x7f\x80', '"é中😀\\u2028\\"\\\\/\\n\\u0001\\u000B\\u007F\\u0080"'),
        ("half \ud83d", '"half ?"'),
    ],
)  # fmt: skip
def test_values_are_written_as_fastjson_writes_them(value: object, text: str) -> None:
    assert dumps(value) == text.encode()


def test_integer_keys_can_be_bare() -> None:
    """Q1, as name servers write to clients before 4.9.4."""
    assert dumps({"brokerAddrs": {0: "a", 1: "b"}}, bare_integer_keys=True) == (
        b'{"brokerAddrs":{0:"a",1:"b"}}'
    )


def test_text_can_be_ascii_only() -> None:
    """Q12: non-ASCII as escapes, in upper case, in keys too."""
    value = {"é": "中😀\x7f", ObjectKey('{"topic":"ü"}'): 1}
    text = dumps(value, ascii_only=True)
    assert text == b'{"\\u00E9":"\\u4E2D\\uD83D\\uDE00\\u007F",{"topic":"\\u00FC"}:1}'
    assert list(loads(text).values()) == list(value.values())


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (0.1, "0.1"), (0.001, "0.001"), (0.0009, "9.0E-4"), (1e7, "1.0E7"),
        (9999999.0, "9999999.0"), (12345678.9, "1.23456789E7"), (1e-7, "1.0E-7"), (1.5e300, "1.5E300"), (1e22, "1.0E22"),
        (123456.789, "123456.789"), (-0.00012, "-1.2E-4"), (-1e10, "-1.0E10"), (1 / 3, "0.3333333333333333"),
        (math.nan, "null"), (math.inf, "null"), (-math.inf, "null"),
    ],
)  # fmt: skip
def test_doubles_have_javas_notation(number: float, text: str) -> None:
    """Q6 and Q7; the texts are what both of Java's fastjson releases write."""
    assert java_double(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_doubles_notation_keeps_its_value(number: float) -> None:
    assert float(java_double(number)) == number
    mantissa = java_double(number).partition("E")[0]
    assert "." in mantissa


@pytest.mark.parametrize("value", [b"x", {b"x": 1}, {1.5: 1}, object(), {"a": {1, 2}}])
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        dumps(value)


def test_writing_refuses_what_reading_would() -> None:
    value: object = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert loads(dumps(value)) == value
    with pytest.raises(InvalidInput, match="deeper"):
        dumps([value])


JSON_VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
).filter(lambda value: "$ref" not in repr(value))


@settings(max_examples=200)
@given(JSON_VALUES, st.booleans())
def test_what_is_written_reads_back(value: object, ascii_only: bool) -> None:
    text = dumps(value, ascii_only=ascii_only)
    assert loads(text) == value
    assert json.loads(text) == value
    assert not ascii_only or text.isascii()


@settings(max_examples=200)
@given(JSON_VALUES)
def test_the_tolerant_reader_agrees_with_the_strict_one(value: object) -> None:
    """The comment sends the text past msgspec, to the reader for fastjson's dialect."""
    assert loads(b"/**/" + dumps(value)) == value


@given(st.dictionaries(st.text(string.ascii_letters), st.integers(), min_size=1))
def test_maps_with_object_keys_keep_their_form(key: dict[str, int]) -> None:
    text = b"{" + dumps(key) + b":1}"
    assert dumps(loads(text)) == text
