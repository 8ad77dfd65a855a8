"""Defaults that a peer relies on when it leaves a field out: those of Java's classes."""

from pocketmq.model import GroupConfig, TopicConfig
from pocketmq.model.delay import DELAY_LEVELS, CustomizedRetry, ExponentialRetry
from pocketmq.model.topics import MappedRange, TopicMapping


def test_retries_pause_as_long_as_the_delay_levels() -> None:
    assert CustomizedRetry().next == tuple(int(seconds * 1000) for seconds in DELAY_LEVELS)


def test_exponential_retries_begin_with_five_seconds_and_end_at_two_hours() -> None:
    retry = ExponentialRetry()
    assert (retry.initial, retry.max, retry.multiplier) == (5000, 2 * 3600 * 1000, 2)


def test_a_group_retries_sixteen_times_on_one_queue() -> None:
    group = GroupConfig(group_name="G")
    assert (group.retry_max_times, group.retry_queue_nums) == (16, 1)
    assert (group.consume_enable, group.consume_broadcast_enable) == (True, True)
    assert (group.consume_message_orderly, group.consume_timeout_minute) == (False, 15)
    assert (group.broker_id, group.which_broker_when_consume_slowly) == (0, 1)


def test_a_topic_has_sixteen_queues_to_read_and_write() -> None:
    topic = TopicConfig(topic_name="T")
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (16, 16, 6)
    assert (topic.order, topic.topic_sys_flag) == (False, 0)


def test_a_stretch_of_a_static_queue_is_open_at_its_end() -> None:
    stretch = MappedRange()
    assert (stretch.start_offset, stretch.end_offset) == (0, -1)
    assert (stretch.time_of_start, stretch.time_of_end) == (-1, -1)
    assert TopicMapping().scope == "__global__"
