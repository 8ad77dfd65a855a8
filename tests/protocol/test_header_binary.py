import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import HeaderMalformed
from pocketmq.protocol.header_binary import read_binary_header, write_binary_header
from pocketmq.protocol.header_json import FIELDS_LIMIT
from pocketmq.protocol.peers import Language

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def header(
    fields: bytes = b"",
    *,
    remark: bytes = b"",
    language: int = 0,
    remark_size: int | None = None,
    fields_size: int | None = None,
) -> bytes:
    first = struct.pack(
        ">hbhiii", 1, language, 2, 3, 4, len(remark) if remark_size is None else remark_size
    )
    size = len(fields) if fields_size is None else fields_size
    return first + remark + struct.pack(">i", size) + fields


def entry(key: bytes, value: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key + struct.pack(">i", len(value)) + value


@given(
    st.tuples(INT16, INT32, INT32, st.sampled_from(Language), INT16),
    st.none() | TEXT,
    st.none() | st.dictionaries(TEXT, TEXT, min_size=1, max_size=5),
)
def test_what_is_written_is_read_back(
    numbers: tuple[int, int, int, Language, int],
    remark: str | None,
    ext: dict[str, str] | None,
) -> None:
    read = read_binary_header(write_binary_header(*numbers, remark, ext))
    assert read == (*numbers, remark, ext)
    assert list(read[-1] or ()) == list(ext or ())


def test_what_has_no_length_is_null() -> None:
    assert read_binary_header(header()) == (1, 3, 4, Language.JAVA, 2, None, None)
    fields = entry(b"a", b"") + entry(b"", b"x") + entry(b"b", b"1")
    assert read_binary_header(header(fields))[-1] == {"b": "1"}


def test_the_empty_is_written_as_no_length() -> None:
    assert write_binary_header(1, 3, 4, Language.JAVA, 2, "", {}) == header()
    assert write_binary_header(1, 3, 4, Language.JAVA, 2, None, {"a": ""}) == header(
        entry(b"a", b"")
    )


def test_a_later_field_replaces_an_earlier_one() -> None:
    fields = entry(b"a", b"1") + entry(b"a", b"2")
    assert read_binary_header(header(fields))[-1] == {"a": "2"}


def test_an_unknown_language_is_none_and_written_as_other() -> None:
    assert read_binary_header(header(language=99))[3] is None
    assert read_binary_header(header(language=-1))[3] is None
    assert write_binary_header(1, 3, 4, None, 2, None, None) == header(language=Language.OTHER)


def test_broken_utf8_is_replaced_as_java_does() -> None:
    data = header(entry(b"k\xff", b"a\xe4\xb8"), remark=b"\x80")
    assert read_binary_header(data)[-2:] == ("\ufffd", {"k\ufffd": "a\ufffd"})


def test_lone_surrogates_are_written_as_question_marks() -> None:
    data = write_binary_header(1, 3, 4, Language.JAVA, 2, "\ud800", {"\udc00": "a\udfff"})
    assert data == header(entry(b"?", b"a?"), remark=b"?")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        header()[:-1],
        header(remark_size=1),
        header(remark=b"abc", remark_size=7),
        header(remark_size=-1),
        header(remark_size=2**31 - 1),
        header(fields_size=1),
        header(fields_size=-1),
        header(fields_size=2**31 - 1),
        header() + b"\0",
        header(entry(b"a", b"1"), fields_size=3),
        header(b"\0"),
        header(struct.pack(">h", 5) + b"ab"),
        header(struct.pack(">h", -1) + b"abcdefgh"),
        header(struct.pack(">h", -30000) + b"abcdefgh"),
        header(b"\0\1a" + struct.pack(">i", 2) + b"1"),
        header(b"\0\1a" + struct.pack(">i", -1)),
        header(b"\0\1a" + struct.pack(">i", -7)),
        header(b"\0\1a" + struct.pack(">i", 2**31 - 1) + b"1"),
    ],
    ids=lambda data: data[:40].hex() or "empty",
)
def test_lengths_must_lie_within_what_encloses_them(data: bytes) -> None:
    with pytest.raises(HeaderMalformed):
        read_binary_header(data)


@pytest.mark.parametrize("form", ["%d", "", "same"])
def test_fields_are_limited_even_if_they_say_nothing(form: str) -> None:
    names = [(form % number if "%" in form else form).encode() for number in range(FIELDS_LIMIT)]
    many = [entry(name, b"1") for name in names]
    assert read_binary_header(header(b"".join(many)))
    with pytest.raises(HeaderMalformed, match="more than 4096 fields"):
        read_binary_header(header(b"".join([*many, entry(b"x", b"1")])))


@given(st.binary(max_size=60) | st.binary(max_size=30).map(header))
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    try:
        read = read_binary_header(data)
    except HeaderMalformed:
        return
    assert read_binary_header(write_binary_header(*read))[-2:] == read[-2:] or read[-1] == {}


@pytest.mark.parametrize(
    ("code", "opaque", "flag", "version"),
    [
        (200050, 0, 0, 0),
        (32768, 0, 0, 0),
        (0, 2**31, 0, 0),
        (0, 0, -(2**31) - 1, 0),
        (0, 0, 0, 32768),
    ],
)
def test_numbers_without_room_are_refused_with_advice(
    code: int, opaque: int, flag: int, version: int
) -> None:
    """Java cuts POP_MESSAGE's 200050 down to 16 bits and sends another request."""
    with pytest.raises(HeaderMalformed, match="use the JSON serialisation"):
        write_binary_header(code, opaque, flag, Language.JAVA, version, None, None)


def test_a_key_without_room_is_refused_with_advice() -> None:
    with pytest.raises(HeaderMalformed, match="use the JSON serialisation"):
        write_binary_header(1, 0, 0, Language.JAVA, 0, None, {"中" * 11000: "x"})
    with pytest.raises(HeaderMalformed, match="a key of 32768 bytes"):
        write_binary_header(1, 0, 0, Language.JAVA, 0, None, {"k" * 32768: "x"})
    assert write_binary_header(1, 0, 0, Language.JAVA, 0, None, {"k" * 32767: "x"})
