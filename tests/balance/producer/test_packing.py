"""Compression, batches and retry counts."""

import pytest

from pocketmq.balance.producer import packing
from pocketmq.errors import InvalidInput
from pocketmq.model import Message


@pytest.mark.parametrize(
    ("size", "batch", "expected"),
    [(4095, False, False), (4096, False, True), (4097, False, True), (100_000, True, False)],
)
def test_bodies_from_four_kib_on_are_compressed_but_never_batches(
    size: int, batch: bool, expected: bool
) -> None:
    assert packing.compresses(size, batch=batch) is expected


def test_the_threshold_can_be_moved() -> None:
    assert packing.compresses(10, threshold=10)
    assert not packing.compresses(9, threshold=10)


def test_a_batch_has_one_topic() -> None:
    assert packing.check_batch([Message("T", b"1"), Message("T", b"2")]) == "T"
    with pytest.raises(InvalidInput, match="need the same topic, not 'T' and 'U'"):
        packing.check_batch([Message("T", b"1"), Message("U", b"2")])
    with pytest.raises(InvalidInput, match="at least one message"):
        packing.check_batch([])
    with pytest.raises(InvalidInput, match="cannot be sent as a batch"):
        packing.check_batch([Message("%RETRY%g", b"1")])


COUNTED = {"KEYS": "k", "RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "16"}


@pytest.mark.parametrize(
    ("topic", "properties", "expected"),
    [
        ("%RETRY%g", COUNTED, packing.RetryCounts({"KEYS": "k"}, 3, 16)),
        ("%RETRY%g", {"KEYS": "k"}, packing.RetryCounts({"KEYS": "k"}, 0, None)),
        ("T", COUNTED, packing.RetryCounts(COUNTED, 0, None)),
    ],
)
def test_only_retry_topics_move_their_counts_into_the_header(
    topic: str, properties: dict[str, str], expected: packing.RetryCounts
) -> None:
    assert packing.retry_counts(topic, properties) == expected


def test_a_count_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidInput, match="RECONSUME_TIME must be a number, not 'x'"):
        packing.retry_counts("%RETRY%g", {"RECONSUME_TIME": "x"})


STORED = {
    **packing.request_properties("number-1", "192.0.2.1@asker", 3000),
    "CLUSTER": "DefaultCluster",
    "UNIQ_KEY": "AB",
    "colour": "red",
}


def test_a_request_says_who_waits_for_what_and_how_long() -> None:
    assert packing.request_properties("number-1", "192.0.2.1@asker", 3000) == {
        "CORRELATION_ID": "number-1",
        "REPLY_TO_CLIENT": "192.0.2.1@asker",
        "TTL": "3000",
    }


def test_a_reply_repeats_what_leads_it_back_and_nothing_else() -> None:
    assert packing.reply_topic(STORED) == "DefaultCluster_REPLY_TOPIC"
    assert packing.reply_properties(STORED) == {
        "MSG_TYPE": "reply",
        "CORRELATION_ID": "number-1",
        "REPLY_TO_CLIENT": "192.0.2.1@asker",
        "TTL": "3000",
    }


def test_a_request_without_a_time_gets_a_reply_without_one() -> None:
    timeless = {name: value for name, value in STORED.items() if name != "TTL"}
    assert "TTL" not in packing.reply_properties(timeless)


@pytest.mark.parametrize("missing", ["CORRELATION_ID", "REPLY_TO_CLIENT", "CLUSTER"])
def test_a_message_that_is_no_request_has_no_reply(missing: str) -> None:
    plain = {name: value for name, value in STORED.items() if name != missing}
    with pytest.raises(
        InvalidInput, match=f"not a request: the message has no property '{missing}'"
    ):
        packing.reply_topic(plain)
