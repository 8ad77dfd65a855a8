"""The marks of client ids, and the text by which a member reports the stages of its queues."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.model import MessageQueue, group_balance

names = st.text("abcXYZ09_-%", min_size=1, max_size=8)
brokers = st.text("abc09_-@:. ", min_size=1, max_size=8)
queues = st.builds(MessageQueue, names, brokers, st.integers(0, 2**31 - 1))


@given(st.dictionaries(queues, st.sampled_from(group_balance.QueueStage)))
def test_stages_survive_the_way_whatever_brokers_are_called(
    stages: dict[MessageQueue, group_balance.QueueStage],
) -> None:
    assert group_balance.stages_read(group_balance.stages_text(stages)) == stages


def test_the_form_is_the_one_that_other_tools_read() -> None:
    text = group_balance.stages_text(
        {MessageQueue("orders", "broker-a", 3): group_balance.QueueStage.BEHIND_BARRIER}
    )
    assert json.loads(text) == {"orders@broker-a:3": "behind barrier"}


def test_a_stage_of_a_later_version_is_left_out() -> None:
    text = '{"orders@a:0": "teleporting", "orders@a:1": "fenced"}'
    assert group_balance.stages_read(text) == {
        MessageQueue("orders", "a", 1): group_balance.QueueStage.FENCED
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"orders@a:0": 1}',
        '{"orders@a": "running"}',
        '{"orders@a:-1": "running"}',
        '{"orders@a:99999999999": "running"}',
        '{"@a:0": "running"}',
        '{"orders": "running"}',
        '{"orders@a:0": "\ud800"}',
        "[" * 100_000,
    ],
)
def test_malformed_stages_are_unknown(text: str) -> None:
    assert group_balance.stages_read(text) is None


def test_stages_that_are_too_long_are_not_even_parsed() -> None:
    assert group_balance.stages_read(" " * (group_balance.LONGEST_STAGES - 2) + "{}") == {}
    assert group_balance.stages_read(" " * (group_balance.LONGEST_STAGES - 1) + "{}") is None


@pytest.mark.parametrize(
    ("client_id", "version"),
    [
        ("10.0.0.1@7#99@pm1", 1),
        ("10.0.0.1@web@pm12", 12),
        ("@pm1", 1),
        ("10.0.0.1@7#99", None),
        ("10.0.0.1@pm1#99", None),
        ("10.0.0.1@pm", None),
        ("10.0.0.1@pm-1", None),
        ("10.0.0.1@pm٣", None),
        ("10.0.0.1@pm1@pmx", None),
        ("10.0.0.1@pm" + "1" * 30, None),
    ],
)
def test_only_marked_ids_belong_to_members_that_hand_over(
    client_id: str, version: int | None
) -> None:
    assert group_balance.handover_version(client_id) == version
