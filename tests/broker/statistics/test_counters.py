"""Statistics by topic and group: what the last minute, hour and day brought, as Java counts it."""

from pocketmq.broker.statistics.counters import TopicStatistics
from pocketmq.protocol.requests.stats import BrokerStats, StatsItem


def seen(stats: TopicStatistics, name: str, key: str) -> BrokerStats:
    found = stats.view(name, key)
    assert found is not None
    return found


def test_a_new_flow_began_one_period_ago_with_nothing() -> None:
    stats = TopicStatistics("C", now=0.0)
    stats.were_stored({"T": [30, 3000, 10]})
    assert seen(stats, "TOPIC_PUT_NUMS", "T").stats_minute == StatsItem()
    stats.sample(10.0)
    told = seen(stats, "TOPIC_PUT_NUMS", "T")
    assert told.stats_minute == StatsItem(sum=30, tps=3.0, avgpt=3.0)
    assert told.stats_hour == told.stats_day == StatsItem()
    assert seen(stats, "TOPIC_PUT_SIZE", "T").stats_minute == StatsItem(
        sum=3000, tps=300.0, avgpt=300.0
    )
    assert stats.stored_rate("T") == 3.0
    assert stats.stored_rate("U") == 0.0


def test_a_minute_forgets_what_is_older() -> None:
    stats = TopicStatistics("C", now=0.0)
    stats.were_given("T", "G", 60, 600)
    for step in range(1, 7):
        stats.sample(step * 10.0)
    assert stats.given_rate("T", "G") == 1.0
    stats.sample(70.0)
    assert seen(stats, "GROUP_GET_NUMS", "T@G").stats_minute == StatsItem()


def test_an_hour_and_a_day_are_sampled_more_seldom() -> None:
    stats = TopicStatistics("C", now=0.0)
    stats.were_given("T", "G", 6, 60)
    for step in range(1, 361):
        stats.sample(step * 10.0)
    told = seen(stats, "GROUP_GET_NUMS", "T@G")
    assert told.stats_hour is not None
    assert (told.stats_hour.sum, told.stats_hour.tps) == (6, 6 / 3600)
    assert told.stats_day == StatsItem(sum=6, tps=6 / 3600, avgpt=6.0)


def test_the_whole_broker_is_known_by_its_cluster() -> None:
    stats = TopicStatistics("C")
    stats.were_stored({"T": [1, 10, 1], "U": [2, 20, 2]})
    stats.were_given("T", "G", 4, 40)
    stats.sample(10.0)
    for name, count in (("BROKER_PUT_NUMS", 3), ("BROKER_GET_NUMS", 4)):
        told = seen(stats, name, "C").stats_minute
        assert told is not None
        assert told.sum == count
    assert stats.view("BROKER_PUT_NUMS", "D") is None


def test_what_is_rare_has_its_own_names() -> None:
    stats = TopicStatistics("C")
    for name, table in (
        ("SNDBCK_PUT_NUMS", stats.sent_back),
        ("DLQ_PUT_NUMS", stats.dead),
        ("GROUP_ACK_NUMS", stats.acked),
        ("GROUP_CK_NUMS", stats.popped),
    ):
        assert stats.view(name, "T@G") is None
        stats.count(table, "T", "G")
        assert stats.view(name, "T@G") is not None
    assert stats.view("NO_SUCH_NUMS", "T@G") is None
    assert stats.view("TOPIC_PUT_NUMS", "T") is None


def test_what_is_deleted_is_forgotten() -> None:
    stats = TopicStatistics("C")
    stats.were_stored({"T": [1, 1, 1], "U": [1, 1, 1]})
    for topic in ("T", "U"):
        for group in ("G", "H"):
            stats.were_given(topic, group, 1, 1)
    stats.forget_topic("T")
    stats.forget_group("G")
    assert list(stats.stored) == ["U"]
    assert list(stats.given) == [("U", "H")]
