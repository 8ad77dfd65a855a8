"""How far groups are, as tools ask for it."""

from typing import Any

from pocketmq.errors import ResponseCode
from pocketmq.model import MessageQueue
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol import decode_body
from pocketmq.protocol.requests import groups, topics
from pocketmq.protocol.requests import stats as rows
from tests.broker.members.test_requests import beat, consumer
from tests.broker.tables import Desk
from tests.broker.wire import Wire


def group_at(offset: int | None = 1, **settings: Any) -> Desk:
    """A topic of two queues, two messages a minute apart in the first, and a group between them."""
    desk = Desk(broker_name="b", **settings)
    desk.make_topic("T", readQueueNums="2", writeQueueNums="2")
    desk.store_message("T", 0)
    desk.clock.time += 60
    desk.store_message("T", 0)
    desk.state.groups.find("G", auto_create=True, now_ms=0)
    if offset is not None:
        desk.state.offsets.commit("G", "T", 0, offset)
    return desk


def progress(desk: Desk, **ext: str) -> rows.ConsumeStatsBody:
    answer = desk.ask(Code.GET_CONSUME_STATS, {"consumerGroup": "G"} | ext)
    assert answer.code == ResponseCode.SUCCESS
    return decode_body(answer.body, rows.ConsumeStatsBody)


def test_a_group_is_as_far_as_it_has_committed_and_pulled() -> None:
    """Queues in which it has committed nothing count as read up to 0."""
    desk = group_at()
    desk.state.offsets.record_pull("G", "T", 0, 2)
    first = desk.clock.now_ms() - 60_000
    assert progress(desk).offset_table == {
        MessageQueue("T", "b", 0): rows.QueueProgress(
            broker_offset=2, consumer_offset=1, pull_offset=2, last_timestamp=first
        ),
        MessageQueue("T", "b", 1): rows.QueueProgress(),
    }


def test_topics_that_a_group_has_left_are_not_counted() -> None:
    """But those the caller lists are, whatever the group subscribes."""
    desk = group_at()
    desk.make_topic("U")
    beat(desk, Wire("a"), consumer("G", "U"))
    assert progress(desk).offset_table == {}
    assert progress(desk, topic="T").offset_table == {}
    assert len(progress(desk, topic="U").offset_table) == 4
    assert len(progress(desk, topicList="T;gone;U;").offset_table) == 6


def test_there_is_no_progress_of_a_group_that_never_committed() -> None:
    assert progress(group_at(None)).offset_table == {}
    assert progress(group_at(None), topic="gone").offset_table == {}


def test_the_progress_of_all_groups_is_summed() -> None:
    desk = group_at()
    desk.state.offsets.record_pull("G", "T", 0, 2)
    answer = desk.ask(Code.GET_BROKER_CONSUME_STATS, {"isOrder": "false"})
    told = decode_body(answer.body, rows.BrokerConsumeStats)
    by_group = {name: stats for each in told.consume_stats_list for name, stats in each.items()}
    assert set(by_group) == set(desk.state.groups.entries)
    assert [len(stats.offset_table) for stats in by_group["G"]] == [2]
    assert (told.total_diff, told.total_inflight_diff) == (1, 1)
    assert told.broker_addr == desk.state.address

    answer = desk.ask(Code.GET_BROKER_CONSUME_STATS, {"isOrder": "true"})
    told = decode_body(answer.body, rows.BrokerConsumeStats)
    assert all(stats == [] for each in told.consume_stats_list for stats in each.values())


def spans(desk: Desk) -> rows.TimeSpans:
    answer = desk.ask(Code.QUERY_CONSUME_TIME_SPAN, {"topic": "T", "group": "G"})
    return decode_body(answer.body, rows.TimeSpans)


def test_the_span_of_a_queue_and_how_late_a_group_is() -> None:
    desk = group_at()
    desk.clock.time += 5
    told, empty = spans(desk).consume_time_span_set
    first, last = desk.clock.now_ms() - 65_000, desk.clock.now_ms() - 5000
    assert (told.min_time_stamp, told.max_time_stamp) == (first, last)
    assert (told.consume_time_stamp, told.delay_time) == (first, 5000)
    assert (empty.min_time_stamp, empty.max_time_stamp, empty.delay_time) == (-1, -1, 0)


def test_a_group_without_offsets_is_as_late_as_the_oldest_message() -> None:
    told, _ = spans(group_at(None)).consume_time_span_set
    assert told.delay_time == 60_000


def test_a_group_that_has_read_everything_is_not_late() -> None:
    told, _ = spans(group_at(2)).consume_time_span_set
    assert (told.consume_time_stamp, told.delay_time) == (told.max_time_stamp, 0)


def test_the_span_of_no_topic() -> None:
    answer = Desk().ask(Code.QUERY_CONSUME_TIME_SPAN, {"topic": "gone", "group": "G"})
    assert (answer.code, answer.remark) == (
        ResponseCode.TOPIC_NOT_EXIST,
        "topic[gone] not exist",
    )


def test_who_reads_a_topic_and_what_a_group_reads() -> None:
    """Groups that subscribe it now, and those that ever committed something of it."""
    desk = group_at()
    beat(desk, Wire("a"), consumer("H", "T"))
    answer = desk.ask(Code.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": "T"})
    assert sorted(decode_body(answer.body, topics.GroupNames).group_list) == ["G", "H"]

    answer = desk.ask(Code.QUERY_TOPICS_BY_CONSUMER, {"group": "G"})
    assert decode_body(answer.body, topics.TopicNames).topic_list == ["T"]

    for group, expression in (("H", "*"), ("G", None)):
        answer = desk.ask(Code.QUERY_SUBSCRIPTION_BY_CONSUMER, {"group": group, "topic": "T"})
        told = decode_body(answer.body, groups.GroupSubscription)
        found = told.subscription_data
        assert (told.group, told.topic) == (group, "T")
        assert (None if found is None else found.sub_string) == expression
