"""Queues that should be there and are not: named, guessed, waited for. Without a cluster."""

import logging
from collections.abc import Iterable

import pytest

from pocketmq.errors import DataLost
from pocketmq.model import MessageQueue
from pocketmq.spark.attendance import (
    FEWER,
    LEFT,
    NO_ROUTE,
    Listing,
    TopicSelection,
    absence,
    named,
    unknown_queue,
    unknown_topic,
)
from pocketmq.spark.cluster_view import Look
from pocketmq.spark.options import STAGING
from pocketmq.spark.waiting import Waiting


def queues(topic: str, broker: str, numbers: Iterable[int]) -> list[MessageQueue]:
    return [MessageQueue(topic, broker, number) for number in numbers]


A0, A1, A2, A3 = queues("orders", "broker-a", range(4))
B0 = MessageQueue("orders", "broker-b", 0)
C0 = MessageQueue("bills", "broker-a", 0)


def test_queues_are_named_in_words() -> None:
    assert named([A1]) == "queue 1 of topic 'orders' on broker 'broker-a'"
    assert named([B0, A3, A0, A1, C0]) == (
        "queue 0 of topic 'bills' on broker 'broker-a', "
        "queues 0, 1, 3 of topic 'orders' on broker 'broker-a', "
        "queue 0 of topic 'orders' on broker 'broker-b'"
    )
    assert named([A3, A2, A1]).startswith("queues 1 to 3 of")


def test_an_absence_names_topic_broker_and_all_queues() -> None:
    lost = absence({B0: LEFT, A1: NO_ROUTE, A0: LEFT}, {A0: 17}, 30.0)
    assert (lost.topic, lost.broker, lost.queue_id, lost.first) == ("orders", "broker-a", 0, 17)
    assert str(lost) == (
        "messages of queue 0 of topic 'orders' on broker 'broker-a' cannot be read: its broker is "
        "not registered with the name server (waited 30 s); missing as well: queue 1 of topic "
        "'orders' on broker 'broker-a', queue 0 of topic 'orders' on broker 'broker-b'; "
        "set failOnDataLoss=false to continue without them"
    )
    assert "waited" not in str(absence({A0: LEFT}, {}))


def test_the_nearest_name_is_guessed() -> None:
    there = ["orders", "bills", "%RETRY%oders"]
    wrong = unknown_topic("subscribe", "oders", there)
    assert str(wrong) == (
        "option 'subscribe' is invalid: no route for topic 'oders'; did you mean 'orders'?"
    )
    assert "create it, or check the name server address" in str(unknown_topic("x", "zzz", there))
    assert (
        "which does not exist; there are queues 0 to 2 of topic 'orders' on broker 'broker-a'"
        in (str(unknown_queue(A3, [A0, A1, A2, B0])))
    )
    other = MessageQueue("orders", "brokr-a", 0)
    assert "did you mean broker 'broker-a'?" in str(unknown_queue(other, [A0]))
    strange = MessageQueue("orders", "x", 0)
    assert "brokers are broker-a, broker-b" in str(unknown_queue(strange, [B0, A0]))


def test_a_selection_has_what_its_option_names() -> None:
    by_name = TopicSelection(("orders",))
    by_pattern = TopicSelection(pattern="o.*")
    assigned = TopicSelection(assigned=(A0, C0))
    assert [each.option for each in (by_name, by_pattern, assigned)] == [
        "subscribe",
        "subscribePattern",
        "assign",
    ]
    for selection in (by_name, by_pattern):
        assert selection.among([A3, C0]) == {A3}
    assert assigned.among([C0, A1]) == {C0}
    assert by_name.among([]) == set()
    assert assigned.topics(()) == ("orders", "bills")
    assert by_pattern.topics(["orders", "%DLQ%o", "no", "others"]) == ("orders", "others")
    assert TopicSelection(pattern=".*").topics(["orders", STAGING]) == ("orders",)
    retries = MessageQueue("%RETRY%g", "broker-a", 0)
    assert TopicSelection(pattern=".*").among([retries, A0]) == {A0}


def test_a_listing_says_why_a_queue_is_not_in_it() -> None:
    listing = Listing((A0, A1), ("bills",))
    assert listing.why_not(A2) == FEWER
    assert listing.why_not(B0) == LEFT
    assert listing.why_not(C0) == NO_ROUTE
    assert listing.why_not(MessageQueue("gone", "broker-a", 0)) == NO_ROUTE


class Time:
    """Virtual time, and what is seen at which time."""

    def __init__(self, *seen: tuple[float, set[MessageQueue]]) -> None:
        self.now = 100.0
        self.seen = seen

    def look(self) -> Look[int]:
        absent = [each for since, each in self.seen if self.now >= 100.0 + since][-1]
        return Look({A0: 7}, dict.fromkeys(absent, LEFT))

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def waiting(self, *, strict: bool) -> Waiting:
        return Waiting(30.0, strict=strict, clock=lambda: self.now, sleep=self.sleep)


@pytest.mark.parametrize("strict", [True, False])
def test_what_comes_back_in_time_is_not_missed(strict: bool) -> None:
    time = Time((0.0, {A1, B0}), (4.0, {B0}), (9.0, set()))
    waiting = time.waiting(strict=strict)
    assert waiting.complete(time.look) == Look({A0: 7}, {})
    assert 109.0 <= time.now < 109.5
    assert not waiting.waived


def test_what_stays_away_is_an_error_after_the_patience() -> None:
    time = Time((0.0, {A1, B0}))
    with pytest.raises(DataLost, match=r"queue 1 of topic 'orders' .* \(waited 30 s\)") as lost:
        time.waiting(strict=True).complete(time.look, {A1: 5})
    assert lost.value.first == 5
    assert 129.5 < time.now <= 130.0


def test_where_loss_is_tolerated_each_absence_is_waited_for_once_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    time = Time((0.0, {A1}), (50.0, set()), (60.0, {A1}))
    waiting = time.waiting(strict=False)

    def told() -> list[str]:
        """What the reader says; brokers of other tests may say something meanwhile."""
        return [each.getMessage() for each in caplog.records if each.name == "pocketmq.spark"]

    with caplog.at_level(logging.WARNING, "pocketmq.spark"):
        waiting.complete(time.look)
        first = time.now
        waiting.complete(time.look)
        assert (time.now, len(told())) == (first, 1)
        time.now = 155.0
        assert waiting.complete(time.look).absent == {}
        time.now = 160.0
        waiting.complete(time.look)
    assert time.now > 189.0
    assert [text.split(" on broker")[0] for text in told()] == [
        "messages of queue 1 of topic 'orders'"
    ] * 2
