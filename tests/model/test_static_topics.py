"""The logical queues of static topics, as clients see them."""

import pytest

from pocketmq.errors import BodyMalformed
from pocketmq.model import BrokerData, MessageQueue, QueueData, TopicRoute
from pocketmq.model.topics import (
    MAX_STATIC_QUEUES,
    NO_LEADER,
    TopicMapping,
    is_logical,
    leaders,
    logical_broker,
)

BROKER = "__syslo__global__"


def mapping(broker: str, epoch: int, ids: dict[int, int], total: int = 3) -> TopicMapping:
    return TopicMapping(
        topic="fixed", bname=broker, epoch=epoch, total_queues=total, curr_id_map=ids
    )


def test_a_scope_has_a_broker_that_does_not_exist() -> None:
    assert logical_broker("__global__") == BROKER
    assert logical_broker("unit") == "__syslo__unit"
    assert is_logical(MessageQueue("fixed", BROKER, 0))
    assert not is_logical(MessageQueue("fixed", "broker-a", 0))


def test_the_newest_mapping_of_a_queue_names_its_leader() -> None:
    found = leaders("fixed", {"b": mapping("b", 2, {0: 0, 1: 1}), "a": mapping("a", 1, {0: 5})})
    assert list(found) == [MessageQueue("fixed", BROKER, number) for number in range(3)]
    assert list(found.values()) == ["b", "b", NO_LEADER]
    swapped = leaders("fixed", {"b": mapping("b", 1, {0: 0}), "a": mapping("a", 2, {0: 5})})
    assert swapped[MessageQueue("fixed", BROKER, 0)] == "a"


def test_a_route_with_mappings_has_logical_queues_alone() -> None:
    route = TopicRoute(
        queue_datas=[QueueData(broker_name="a", read_queue_nums=9, write_queue_nums=9, perm=6)],
        broker_datas=[BrokerData(broker_name="a", broker_addrs={0: "127.0.0.1:1"})],
        topic_queue_mapping_by_broker={"a": mapping("a", 1, {0: 0, 1: 1, 2: 2})},
    )
    logical = [MessageQueue("fixed", BROKER, number) for number in range(3)]
    assert route.publish_queues("fixed") == logical
    assert route.subscribe_queues("fixed") == set(logical)


def test_a_route_cannot_declare_more_queues_than_memory_has() -> None:
    many = {"a": mapping("a", 1, {}, total=MAX_STATIC_QUEUES + 1)}
    with pytest.raises(BodyMalformed, match="exceed the limit"):
        leaders("fixed", many)
