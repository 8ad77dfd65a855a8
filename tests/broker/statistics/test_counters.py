"""Statistics by topic and group: what the last minute, hour and day brought, as Java counts it."""

from pocketmq.broker.statistics.counters import TopicStatistics
from pocketmq.errors import ResponseCode
from pocketmq.model import MessageQueue
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol import decode_body
from pocketmq.protocol.requests.stats import BrokerStats, OffsetRange, StatsItem, TopicStatsBody
from tests.broker.tables import Desk


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


def test_every_queue_of_a_topic_tells_what_it_holds() -> None:
    """Queues that can be read or written, whichever are more; those without messages hold none."""
    desk = Desk(broker_name="b")
    desk.make_topic("T", readQueueNums="1", writeQueueNums="3")
    desk.store_message("T", 1)
    desk.clock.time += 60
    desk.store_message("T", 1)
    answer = desk.ask(Code.GET_TOPIC_STATS_INFO, {"topic": "T"})

    held = OffsetRange(min_offset=0, max_offset=2, last_update_timestamp=desk.clock.now_ms())
    assert answer.code == ResponseCode.SUCCESS
    assert decode_body(answer.body, TopicStatsBody).offset_table == {
        MessageQueue("T", "b", 0): OffsetRange(),
        MessageQueue("T", "b", 1): held,
        MessageQueue("T", "b", 2): OffsetRange(),
    }


def test_there_are_no_statistics_of_an_unknown_topic() -> None:
    answer = Desk().ask(Code.GET_TOPIC_STATS_INFO, {"topic": "nobodys"})

    assert (answer.code, answer.remark) == (
        ResponseCode.TOPIC_NOT_EXIST,
        "topic[nobodys] not exist",
    )
