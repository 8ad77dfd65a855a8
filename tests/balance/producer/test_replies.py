import pytest

from pocketmq.balance.producer.replies import reply_properties, reply_topic, request_properties
from pocketmq.errors import InvalidInput

STORED = {
    **request_properties("number-1", "192.0.2.1@asker", 3000),
    "CLUSTER": "DefaultCluster",
    "UNIQ_KEY": "AB",
    "colour": "red",
}


def test_a_request_says_who_waits_for_what_and_how_long() -> None:
    assert request_properties("number-1", "192.0.2.1@asker", 3000) == {
        "CORRELATION_ID": "number-1",
        "REPLY_TO_CLIENT": "192.0.2.1@asker",
        "TTL": "3000",
    }


def test_a_reply_repeats_what_leads_it_back_and_nothing_else() -> None:
    assert reply_topic(STORED) == "DefaultCluster_REPLY_TOPIC"
    assert reply_properties(STORED) == {
        "MSG_TYPE": "reply",
        "CORRELATION_ID": "number-1",
        "REPLY_TO_CLIENT": "192.0.2.1@asker",
        "TTL": "3000",
    }


def test_a_request_without_a_time_gets_a_reply_without_one() -> None:
    timeless = {name: value for name, value in STORED.items() if name != "TTL"}
    assert "TTL" not in reply_properties(timeless)


@pytest.mark.parametrize("missing", ["CORRELATION_ID", "REPLY_TO_CLIENT", "CLUSTER"])
def test_a_message_that_is_no_request_has_no_reply(missing: str) -> None:
    plain = {name: value for name, value in STORED.items() if name != missing}
    with pytest.raises(InvalidInput, match=f"waits for no reply: it has no property '{missing}'"):
        reply_topic(plain)
