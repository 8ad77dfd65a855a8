"""Scores are part of the protocol between members: they must never change."""

from pocketmq.balance.sticky.scores import member_key, queue_key, scores, topic_key
from pocketmq.model import MessageQueue

MEMBERS = ["10.0.0.1@1@pm1", "10.0.0.2@7@pm1", "日本@\udc80"]


def test_keys_and_scores_are_the_same_in_every_process_and_version() -> None:
    keys = [member_key(member) for member in MEMBERS]
    queue = MessageQueue("orders", "broker-a", 3)
    assert keys == [0x72F74E4081DB7D87, 0xF4065F73E75D1A73, 0xE25C45C612EDC7C5]
    assert scores(topic_key("orders"), keys) == [
        0x14F061D7D6E6A3FB,
        0x75863CC7F1024277,
        0x6565D9B9DB989B61,
    ]
    assert scores(queue_key(queue), keys) == [
        0x7EABB0914DE7F4B3,
        0x092EED0A0D1E248F,
        0xF1775E4B5593EF09,
    ]


def test_members_rank_differently_for_different_topics() -> None:
    keys = [member_key(f"member-{n}") for n in range(10)]
    firsts = [
        values.index(min(values))
        for values in (scores(topic_key(f"topic-{n}"), keys) for n in range(2000))
    ]
    assert all(150 < firsts.count(column) < 250 for column in range(10))


def test_pairs_of_members_rank_either_way_equally_often() -> None:
    keys = [member_key(f"member-{n}") for n in range(12)]
    values = [scores(topic_key(f"topic-{n}"), keys) for n in range(1000)]
    for one in range(12):
        for other in range(one):
            assert 400 < sum(row[one] < row[other] for row in values) < 600
