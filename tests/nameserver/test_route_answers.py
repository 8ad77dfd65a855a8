""""""

import msgspec
import pytest

from pocketmq.model import BrokerData, QueueData, TopicRoute
from pocketmq.nameserver.route_answers import RouteBodies, in_zone, with_acting_masters


def data(
    name: str, ids: tuple[int, ...], *, acting: bool = True, zone: str | None = None
) -> BrokerData:
    addrs = {each: f"{name}-{each}:1" for each in ids}
    return BrokerData(
        cluster="c",
        broker_name=name,
        broker_addrs=addrs,
        enable_acting_master=acting,
        zone_name=zone,
    )


def route(*brokers: BrokerData, perm: int = 4) -> TopicRoute:
    return TopicRoute(
        broker_datas=list(brokers),
        queue_datas=[QueueData(broker_name=each.broker_name, perm=perm) for each in brokers],
    )


@pytest.mark.parametrize(
    ("broker", "perm", "seen"),
    [
        (data("b", (1, 2)), 4, {0: "b-1:1", 2: "b-2:1"}),
        (data("b", (1, 2)), 6, {1: "b-1:1", 2: "b-2:1"}),
        (data("b", (1, 2), acting=False), 4, {1: "b-1:1", 2: "b-2:1"}),
        (data("b", (0, 1)), 4, {0: "b-0:1", 1: "b-1:1"}),
    ],
    ids=["stands in", "still writable", "does not agree", "has a master"],
)
def test_a_slave_stands_in_for_a_lost_master(
    broker: BrokerData, perm: int, seen: dict[int, str]
) -> None:
    (shown,) = with_acting_masters("t", route(broker, perm=perm)).broker_datas
    assert shown == msgspec.structs.replace(broker, broker_addrs=seen)


def test_brokers_see_the_true_ids_of_their_own_group() -> None:
    found = route(data("b", (1, 2)))
    assert with_acting_masters("rmq_sys_SYNC_BROKER_MEMBER_b", found) is found


def test_brokers_of_other_zones_are_left_out_with_all_that_is_theirs() -> None:
    near, far, nowhere = data("b", (0,), zone="Z"), data("d", (0,), zone="y"), data("e", (0,))
    found = msgspec.structs.replace(
        route(near, far, nowhere), filter_server_table={"b-0:1": ["f:1"], "d-0:1": ["f:2"]}
    )
    seen = in_zone("z", found)
    assert seen.broker_datas == [near]
    assert [each.broker_name for each in seen.queue_datas] == ["b"]
    assert seen.filter_server_table == {"b-0:1": ["f:1"]}


def test_a_far_broker_without_master_stays_in_the_route() -> None:
    found = route(data("b", (0,), zone="z"), data("d", (1,), zone="y"))
    assert in_zone("z", found) is found


def whole_route() -> TopicRoute:
    return TopicRoute(
        broker_datas=[
            BrokerData(
                cluster="é", broker_name="b", broker_addrs={0: "x:1"}, enable_acting_master=False
            )
        ],
        queue_datas=[QueueData(broker_name="b", read_queue_nums=4, write_queue_nums=4, perm=6)],
    )


STANDARD = (
    rb'{"brokerDatas":[{"brokerAddrs":{"0":"x:1"},"brokerName":"b","cluster":"\u00E9",'
    rb'"enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"b",'
    rb'"perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
)


def test_new_clients_get_standard_json_and_old_ones_bare_keys() -> None:
    bodies, found = RouteBodies(), whole_route()
    assert bodies.get("t", found, None, standard=True) == STANDARD
    legacy = STANDARD.replace(b'{"0":', b"{0:").replace(rb"\u00E9", "é".encode())
    assert bodies.get("t", found, None, standard=False) == legacy


def test_a_body_is_written_once_for_all_who_ask() -> None:
    bodies, found = RouteBodies(), whole_route()
    first = bodies.get("t", found, None, standard=True)
    assert bodies.get("t", found, None, standard=True) is first
    assert bodies.get("t", whole_route(), None, standard=True) is not first
    bodies.forget("t")
    assert bodies.get("t", found, None, standard=True) is not first


def test_an_order_configuration_comes_and_goes_with_the_route() -> None:
    bodies, found = RouteBodies(), whole_route()
    plain = bodies.get("t", found, None, standard=True)
    ordered = bodies.get("t", found, "b:4", standard=True)
    assert b'"orderTopicConf":"b:4"' in ordered
    assert bodies.get("t", found, None, standard=True) == plain
