"""The topics a broker makes for itself."""

from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.topics.table import system_topics


def shown(**settings: bool) -> dict[str, tuple[int, int]]:
    config = BrokerConfig(broker_name="b", broker_cluster_name="c", **settings)  # type: ignore[arg-type]
    return {each.topic_name: (each.write_queue_nums, each.perm) for each in system_topics(config)}


def test_a_broker_begins_with_javas_topics() -> None:
    assert shown() == {
        "SELF_TEST_TOPIC": (1, 6),
        "BenchmarkTest": (1024, 6),
        "c": (16, 7),
        "b": (1, 7),
        "OFFSET_MOVED_EVENT": (1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 6),
        "c_REPLY_TOPIC": (1, 6),
        "rmq_sys_REVIVE_LOG_c": (8, 6),
        "rmq_sys_SYNC_BROKER_MEMBER_b": (1, 1),
        "RMQ_SYS_TRANS_HALF_TOPIC": (1, 6),
        "RMQ_SYS_TRANS_OP_HALF_TOPIC": (1, 6),
        "rmq_sys_wheel_timer": (1, 6),
        "TBW102": (8, 7),
    }


def test_tbw102_is_there_only_to_create_topics() -> None:
    assert "TBW102" not in shown(auto_create_topic_enable=False)


def test_templates_that_are_switched_off_can_still_be_inherited() -> None:
    topics = shown(cluster_topic_enable=False, broker_topic_enable=False)

    assert topics["c"] == (16, 1)
    assert topics["b"] == (1, 1)


def test_the_trace_topic_is_made_on_demand() -> None:
    assert shown(trace_topic_enable=True)["RMQ_SYS_TRACE_TOPIC"] == (1, 6)
