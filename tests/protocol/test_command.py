from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import FrameTooLarge, HeaderMalformed
from pocketmq.protocol import Command
from pocketmq.protocol.command import OpaqueCounter, read_command
from pocketmq.protocol.frame import Frame, FrameReader, SerializeType
from pocketmq.protocol.header import Header, Int32, Int64
from pocketmq.protocol.peers import CURRENT_VERSION, Language
from pocketmq.protocol.requests.sending import SendRequestV2
from tests.protocol.golden_frames import GOLDEN, read_one

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


class Sample(Header, frozen=True, kw_only=True):
    name: str
    count: Int32 = 0
    offset: Int64 | None = None
    is_force: bool = False
    is_order: bool | None = None


class OneBoolean(Header, frozen=True, kw_only=True):
    on: bool = True


class NoBoolean(Header, frozen=True, kw_only=True):
    name: str | None = None


def from_json(ext: str) -> Command:
    return read_command(Frame(0, f'{{"code":1,"extFields":{ext}}}'.encode(), b""))


commands = st.builds(
    Command,
    code=INT16,
    opaque=INT32,
    flag=INT32,
    language=st.sampled_from(Language),
    version=INT16,
    remark=st.none() | TEXT,
    ext_fields=st.none() | st.dictionaries(TEXT, TEXT, max_size=5),
    body=st.binary(max_size=50),
    serialize=st.sampled_from(SerializeType),
)


@given(commands)
def test_what_is_encoded_is_read_back(command: Command) -> None:
    data = command.encode()
    assert read_one(data) == command
    assert read_one(data).encode() == data


@given(commands, st.lists(st.binary(max_size=20), max_size=3))
def test_pieces_join_to_the_frame_with_the_tail_behind_the_body(
    command: Command, tail: list[bytes]
) -> None:
    whole = msgspec.structs.replace(command, body=command.body + b"".join(tail))
    assert b"".join(command.encode_pieces(tail)) == whole.encode()


def test_a_request_is_ours() -> None:
    command = Command.request(105, 7, {"topic": "TopicA"}, b"x")
    assert (command.code, command.opaque, command.flag) == (105, 7, 0)
    assert (command.language, command.version) == (Language.PYTHON, CURRENT_VERSION)
    assert (command.ext, command.body) == ({"topic": "TopicA"}, b"x")
    assert command.serialize == SerializeType.JSON
    assert not command.is_oneway
    assert not command.is_response


def test_a_oneway_request_says_so() -> None:
    command = Command.request(40, 1, oneway=True)
    assert command.is_oneway
    assert command.flag == 2


@pytest.mark.parametrize(
    "ext", [{"name": "n", "count": "3"}, MappingProxyType({"name": "n", "count": "3"})]
)
def test_fields_are_copied(ext: Mapping[str, str]) -> None:
    command = Command.request(1, 1, ext)
    assert command.ext == {"name": "n", "count": "3"}
    assert command.ext is not ext


def test_a_typed_header_becomes_fields_and_back() -> None:
    header = Sample(name="n", count=3, is_force=True)
    command = Command.request(1, 1, header)
    assert command.ext == {"name": "n", "count": "3", "isForce": "true"}
    assert command.header(Sample) == header
    assert read_one(command.encode()).header(Sample) == header


@pytest.mark.parametrize("serialize", SerializeType)
@pytest.mark.parametrize("opaque", [0, -1, -(2**31), 2**31 - 1])
def test_a_reply_echoes_opaque_and_serialisation(serialize: SerializeType, opaque: int) -> None:
    request = Command.request(310, opaque, {"a": "b"}, b"x", serialize=serialize)
    reply = read_one(read_one(request.encode()).reply(17, "none", {"c": "d"}, b"y").encode())
    assert reply == Command(
        17,
        opaque,
        1,
        Language.PYTHON,
        CURRENT_VERSION,
        "none",
        {"c": "d"},
        b"y",
        serialize,
    )
    assert reply.is_response
    assert not reply.is_oneway


def test_a_reply_without_fields_has_none_and_one_with_an_empty_header_has_an_empty_object() -> None:
    request = Command.request(35, 1)
    assert b"extFields" not in request.reply(0).encode()
    assert b'"extFields":{}' in request.reply(0, ext={}).encode()
    assert b'"extFields":{}' in request.reply(0, ext=NoBoolean()).encode()


def test_unknown_fields_survive_in_order() -> None:
    ext = '{"z":"1","a":"2","name":"n","m":"3"}'
    command = from_json(ext)
    assert command.header(Sample).name == "n"
    assert list(command.ext) == ["z", "a", "name", "m"]
    assert f'"extFields":{ext}'.encode() in command.encode()


def test_a_typed_read_leaves_the_fields_unread() -> None:
    command = from_json('{"name":"n","count":"3","offset":"-9223372036854775808"}')
    assert command.header(Sample) == Sample(name="n", count=3, offset=-(2**63))
    assert isinstance(command.ext_fields, msgspec.Raw)


@pytest.mark.parametrize(
    ("ext", "expected"),
    [
        ('{"name":"n","count":3,"isForce":true}', Sample(name="n", count=3, is_force=True)),
        ('{"name":5,"count":"3"}', Sample(name="5", count=3)),
        ('{"name":"n","count":null,"offset":null}', Sample(name="n")),
        ('{"name":"n","isForce":"TRUE"}', Sample(name="n", is_force=True)),
        ('{"name":"n","isForce":"1"}', Sample(name="n")),
        ('{"name":"n","isForce":1,"isOrder":"true"}', Sample(name="n", is_order=True)),
        ('{"name":"n","isForce":"yes"}', Sample(name="n")),
        ('{"name":"n","isOrder":"1"}', Sample(name="n", is_order=False)),
        ('{"name":"n","count":"+3"}', Sample(name="n", count=3)),
        ('{"name":"a\\u0001\\ud83d"}', Sample(name="a\x01?")),
    ],
)
def test_a_typed_read_is_as_tolerant_as_java(ext: str, expected: Sample) -> None:
    assert from_json(ext).header(Sample) == expected


def test_a_true_default_is_kept_where_the_field_is_missing() -> None:
    assert from_json("{}").header(OneBoolean) == OneBoolean(on=True)
    assert from_json('{"on":"1"}').header(OneBoolean) == OneBoolean(on=False)
    assert from_json('{"name":"x"}').header(NoBoolean) == NoBoolean(name="x")


@pytest.mark.parametrize(
    ("ext", "field"),
    [
        ("{}", "name"),
        ("null", "name"),
        ('{"name":null}', "name"),
        ('{"name":"n","count":"x"}', "count"),
        ('{"name":"n","count":"2147483648"}', "count"),
        ('{"name":"n","count":"-2147483649"}', "count"),
        ('{"name":"n","count":true}', "count"),
        ('{"name":"n","offset":"9223372036854775808"}', "offset"),
        ('{"name":"n","offset":"-9223372036854775809"}', "offset"),
    ],
)
def test_a_wrong_field_is_named(ext: str, field: str) -> None:
    with pytest.raises(HeaderMalformed, match=field):
        from_json(ext).header(Sample)


def test_fields_that_are_no_object_are_malformed_when_read() -> None:
    command = from_json("[1]")
    with pytest.raises(HeaderMalformed):
        command.header(Sample)
    with pytest.raises(HeaderMalformed):
        command.ext  # noqa: B018 - reading is the test
    with pytest.raises(HeaderMalformed):
        command.encode()


@given(
    st.fixed_dictionaries(
        {"name": TEXT},
        optional={
            "count": INT32.map(str) | TEXT.filter(lambda text: not looks_like_a_number(text)),
            "offset": st.integers(-(2**63), 2**63 - 1).map(str),
            "isForce": st.sampled_from(["true", "false", "True", "1", "0", "", "yes", "TRUE"]),
            "isOrder": st.sampled_from(["true", "false", "1", "0", "no"]),
            "other": TEXT,
        },
    )
)
def test_the_quick_way_and_the_slow_way_agree(ext: dict[str, str]) -> None:
    command = Command.request(1, 1, ext)
    assert outcome(read_one(command.encode())) == outcome(command)


def looks_like_a_number(text: str) -> bool:
    """Whether msgspec might take for a whole number what Java does not."""
    return text == "null" or set(text) <= set("+-.0123456789eE")


def outcome(command: Command) -> Any:
    try:
        return command.header(Sample)
    except HeaderMalformed as error:
        return str(error)


def test_the_golden_send_reads_the_same_from_both_serialisations() -> None:
    json, _ = GOLDEN["G7 send, JSON"]
    binary, _ = GOLDEN["G7 send, binary"]
    header = read_one(json).header(SendRequestV2)
    assert header == read_one(binary).header(SendRequestV2)
    assert header.topic == "TopicA"
    assert header.queue_id == 2


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ('"JAVA"', Language.JAVA),
        ('"go"', Language.GO),
        ('"KLINGON"', None),
        ("null", None),
        ("3", Language.PYTHON),
    ],
)
def test_a_language_is_read_as_java_reads_it(name: str, language: Language | None) -> None:
    command = read_command(Frame(0, f'{{"language":{name}}}'.encode(), b""))
    assert command.language is language


def test_a_missing_language_is_java() -> None:
    assert read_command(Frame(0, b"{}", b"")).language is Language.JAVA


def test_no_body_and_an_empty_body_are_the_same() -> None:
    assert Command.request(1, 1).body == b""
    (frame,) = FrameReader().feed(Command.request(1, 1, body=b"").encode())
    assert read_command(frame).body == b""


def test_commands_compare_by_meaning() -> None:
    command = Command.request(1, 1, {})
    assert read_one(command.encode()) == command == Command.request(1, 1)
    assert command != Command.request(1, 2)
    assert command != Command.request(1, 1, {"a": "b"})
    assert command != Command.request(1, 1, serialize=SerializeType.ROCKETMQ)
    assert command != "command"


def test_equal_commands_are_never_also_unequal() -> None:
    """Of two that say the same, one may have its fields read already, the other not yet."""
    sent = Command.request(1, 1, {"a": "b"})
    read, unread = read_one(sent.encode()), read_one(sent.encode())
    assert read.ext == {"a": "b"}
    assert not read != unread  # noqa: SIM202
    assert not unread != sent  # noqa: SIM202


def test_a_command_shows_what_matters_and_not_its_body() -> None:
    assert repr(Command.request(310, 7, body=bytes(5000))) == "<request 310, opaque 7, 5000 bytes>"
    assert repr(Command.request(40, 7, oneway=True)) == "<oneway 40, opaque 7, 0 bytes>"
    reply = Command.request(1, 7).reply(17, "no topic")
    assert repr(reply) == "<response 17, opaque 7, 'no topic', 0 bytes>"


def test_a_code_without_room_cannot_be_sent_in_the_binary_layout() -> None:
    with pytest.raises(HeaderMalformed, match="JSON"):
        Command.request(200050, 1, serialize=SerializeType.ROCKETMQ).encode()
    assert read_one(Command.request(200050, 1).encode()).code == 200050


def test_a_header_too_long_for_its_prefix_is_not_sent() -> None:
    with pytest.raises(FrameTooLarge):
        Command.request(1, 1, {"a": "x" * 2**24}).encode()


def test_opaques_count_up_and_wrap_as_java_ints() -> None:
    counter = OpaqueCounter()
    assert [counter.take() for _ in range(3)] == [0, 1, 2]
    counter = OpaqueCounter(2**31 - 2)
    assert [counter.take() for _ in range(4)] == [2**31 - 2, 2**31 - 1, -(2**31), -(2**31) + 1]
    counter = OpaqueCounter(-2)
    assert [counter.take() for _ in range(3)] == [-2, -1, 0]
