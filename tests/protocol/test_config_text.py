"""Configuration as Java's properties text (Q13)."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import BodyMalformed
from pocketmq.protocol.config_text import read_properties, write_properties
from tests.protocol.java_bodies import LINES

TEXTS = [line for line in LINES if line["name"] == "Properties"]


@pytest.mark.parametrize("line", TEXTS, ids=lambda line: f"{line['release']}-{line['text']!r}")
def test_text_is_read_as_java_reads_it(line: dict[str, Any]) -> None:
    assert read_properties(line["text"].encode()) == line["read"]


def test_java_was_asked_about_sixteen_texts_in_each_release() -> None:
    assert len(TEXTS) == 32


def test_ordinary_configuration_is_written_as_java_writes_it() -> None:
    configuration = {
        "namesrvAddr": "127.0.0.1:9876;10.0.0.1:9876",
        "brokerId": "0",
        "deleteWhen": "04",
    }
    text = b"namesrvAddr=127.0.0.1:9876;10.0.0.1:9876\nbrokerId=0\ndeleteWhen=04\n"
    assert write_properties(configuration) == text
    assert read_properties(text) == configuration


def test_what_readers_would_change_is_escaped() -> None:
    tricky = {"a b": " C:\\x\n", "é": "中😀", "#k": "v=1:2#", "=": "  "}
    assert write_properties(tricky) == (
        b"a\\ b=\\ C:\\\\x\\n\n\\u00E9=\\u4E2D\\uD83D\\uDE00\n\\#k=v=1:2#\n\\==\\  \n"
    )


def test_raw_utf_8_from_java_servers_is_understood() -> None:
    assert read_properties("stadt=Zürich\n".encode()) == {"stadt": "Zürich"}


@pytest.mark.parametrize("data", [b"a=\xff", b"a=\\u12", b"a=\\uxyzw", b"\\u=1"])
def test_broken_text_is_refused(data: bytes) -> None:
    with pytest.raises(BodyMalformed):
        read_properties(data)


@given(st.dictionaries(st.text(), st.text()))
def test_properties_read_back_what_was_written(properties: dict[str, str]) -> None:
    assert read_properties(write_properties(properties)) == properties


@given(st.binary() | st.text("ab=: \\#!\n\r\t\fu0").map(str.encode))
def test_no_bytes_raise_anything_but_body_malformed(data: bytes) -> None:
    with contextlib.suppress(BodyMalformed):
        read_properties(data)
