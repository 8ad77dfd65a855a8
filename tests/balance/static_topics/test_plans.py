"""Plans for static topics: which broker gets which queue."""

import msgspec
import pytest

from pocketmq.balance.static_topics.checks import check_alike, led_queues
from pocketmq.balance.static_topics.plans import completed, creation_plan, moving_plan
from pocketmq.errors import MappingRefused
from pocketmq.model.topics import MappedTopicConfig, TopicMappingPlan

NOW = 1_000_000


def created(queues: int, *brokers: str) -> TopicMappingPlan:
    return creation_plan("fixed", queues, brokers, {}, NOW)


def where(plan: TopicMappingPlan) -> dict[int, str | None]:
    led = led_queues(plan.broker_config_map.values())
    return {number: parts[-1].bname for number, parts in led.items()}


def test_queues_are_spread_evenly() -> None:
    plan = created(5, "b", "a")
    assert where(plan) == {0: "a", 1: "b", 2: "a", 3: "b", 4: "a"}
    counts = {name: each.write_queue_nums for name, each in plan.broker_config_map.items()}
    assert counts == {"a": 3, "b": 2}
    assert plan.epoch == NOW + 1000


def test_more_queues_go_where_there_are_few() -> None:
    first = created(2, "a")
    plan = creation_plan("fixed", 5, {"a", "b"}, first.broker_config_map, NOW)
    assert where(plan) == {0: "a", 1: "a", 2: "b", 3: "b", 4: "a"}
    assert plan.epoch == first.epoch + 1000


@pytest.mark.parametrize(
    ("queues", "reason"), [(1, "Cannot decrease"), (2, "is equal the existed")]
)
def test_a_static_topic_never_has_fewer_queues(queues: int, reason: str) -> None:
    known = created(2, "a").broker_config_map
    with pytest.raises(MappingRefused, match=reason):
        creation_plan("fixed", queues, {"a"}, known, NOW)


def test_queues_move_to_the_brokers_that_are_named() -> None:
    known = created(4, "a", "b").broker_config_map
    plan = moving_plan("fixed", {"c"}, known, NOW)
    assert set(where(plan).values()) == {"c"}
    assert (plan.broker_to_map_in, plan.broker_to_map_out) == (["c"], ["a", "b"])
    parts = plan.broker_config_map["a"].mapping_detail
    assert parts is not None
    assert [(each.bname, each.gen, each.logic_offset) for each in parts.hosted_queues[0]] == [
        ("a", 0, 0),
        ("c", 1, -1),
    ]


def test_as_few_queues_move_as_possible() -> None:
    known = created(4, "a").broker_config_map
    plan = moving_plan("fixed", {"a", "b"}, known, NOW)
    assert where(plan) == {0: "a", 1: "a", 2: "b", 3: "b"}
    assert (plan.broker_to_map_in, plan.broker_to_map_out) == (["b"], ["a"])
    again = moving_plan("fixed", {"a", "b"}, plan.broker_config_map, NOW)
    assert not again.broker_to_map_in


def test_a_queue_that_comes_back_gets_a_new_physical_queue() -> None:
    there = moving_plan("fixed", {"b"}, created(1, "a").broker_config_map, NOW)
    decided = {name: _decided(config, 10_000) for name, config in there.broker_config_map.items()}
    back = moving_plan("fixed", {"a"}, decided, NOW)
    parts = led_queues(back.broker_config_map.values())[0]
    assert [(each.bname, each.queue_id) for each in parts] == [("a", 0), ("b", 0), ("a", 1)]


def _decided(config: MappedTopicConfig, offset: int) -> MappedTopicConfig:
    detail = config.mapping_detail
    assert detail is not None
    hosted = {
        number: [*parts[:-1], msgspec.structs.replace(parts[-1], logic_offset=offset)]
        for number, parts in detail.hosted_queues.items()
    }
    detail = msgspec.structs.replace(detail, hosted_queues=hosted)
    return msgspec.structs.replace(config, mapping_detail=detail)


def test_other_brokers_learn_of_the_topic_and_lead_nothing() -> None:
    plan = completed(created(2, "a"), ["a", "b"])
    other = plan.broker_config_map["b"]
    assert (other.read_queue_nums, other.write_queue_nums) == (0, 0)
    assert other.mapping_detail is not None
    assert other.mapping_detail.hosted_queues == {}
    assert check_alike("fixed", plan.broker_config_map) == (plan.epoch, 2)


def test_brokers_that_disagree_are_refused() -> None:
    known = completed(created(2, "a"), ["b"]).broker_config_map
    detail = known["b"].mapping_detail
    assert detail is not None
    for change, reason in (
        ({"epoch": 7}, "epoch does not match"),
        ({"total_queues": 3}, "total queue number does not match"),
        ({"bname": "x"}, "broker name is not equal"),
        ({"dirty": True}, "is dirty"),
        ({"scope": "x"}, "scope does not match"),
        ({"topic": "x"}, "topic name is not match"),
    ):
        other = msgspec.structs.replace(detail, **change)
        wrong = known | {"b": msgspec.structs.replace(known["b"], mapping_detail=other)}
        with pytest.raises(MappingRefused, match=reason):
            check_alike("fixed", wrong)
    with pytest.raises(MappingRefused, match="should not be null"):
        check_alike("fixed", {"b": MappedTopicConfig(topic_name="fixed")})
