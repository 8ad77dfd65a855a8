"""Recall handles, compared with those that RocketMQ's own class made and read."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import HeaderMalformed
from pocketmq.protocol.handles import RecallHandle

VECTORS = Path(__file__).parents[1] / "vectors" / "java-handles.jsonl"
CASES = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]


def test_handles_are_written_as_java_writes_them() -> None:
    built = [case for case in CASES if case["kind"] == "recall"]
    assert len(built) == 60
    for case in built:
        topic, broker, time, message_id = case["parts"]
        handle = RecallHandle(
            topic=topic, broker_name=broker, deliver_at_ms=time, message_id=message_id
        )
        assert str(handle) == case["result"]
        assert RecallHandle.parse(case["result"]) == handle


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case["kind"] == "read recall"],
    ids=lambda case: case["parts"][0] or "empty",
)
def test_handles_are_read_or_refused_as_java_does(case: Any) -> None:
    (text,) = case["parts"]
    if "result" not in case:
        with pytest.raises(HeaderMalformed):
            RecallHandle.parse(text)
        return
    topic, broker, time, message_id = case["result"]
    assert RecallHandle.parse(text) == RecallHandle(
        topic=topic, broker_name=broker, deliver_at_ms=int(time), message_id=message_id
    )


def test_a_handle_without_a_time_is_refused() -> None:
    """Java reads it, and its broker then refuses the recall."""
    with pytest.raises(HeaderMalformed, match="has no delivery time"):
        RecallHandle.parse("djEgYSBiIHggYw==")  # v1 a b x c


NAMES = st.text(st.characters(exclude_characters=" ", exclude_categories=["Cs"]), min_size=1)


@given(NAMES, NAMES, st.integers(-(2**63), 2**63 - 1), NAMES)
def test_a_handle_survives_being_written_and_read(
    topic: str, broker: str, time: int, message_id: str
) -> None:
    handle = RecallHandle(
        topic=topic, broker_name=broker, deliver_at_ms=time, message_id=message_id
    )
    assert RecallHandle.parse(str(handle)) == handle
    assert RecallHandle.parse(str(handle).rstrip("=")) == handle


@given(st.text() | st.text(alphabet="djEgYSBiIDEgYw=-_+/"))
def test_arbitrary_text_is_read_or_refused_as_malformed(text: str) -> None:
    try:
        RecallHandle.parse(text)
    except HeaderMalformed:
        return
