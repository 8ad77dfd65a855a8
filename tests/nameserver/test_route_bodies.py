from pocketmq.nameserver.route_answers import RouteBodies

from pocketmq.model.route import BrokerData, QueueData, TopicRoute


def route() -> TopicRoute:
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
    bodies, found = RouteBodies(), route()
    assert bodies.get("t", found, None, standard=True) == STANDARD
    legacy = STANDARD.replace(b'{"0":', b"{0:").replace(rb"\u00E9", "é".encode())
    assert bodies.get("t", found, None, standard=False) == legacy


def test_a_body_is_written_once_for_all_who_ask() -> None:
    bodies, found = RouteBodies(), route()
    first = bodies.get("t", found, None, standard=True)
    assert bodies.get("t", found, None, standard=True) is first
    assert bodies.get("t", route(), None, standard=True) is not first
    bodies.forget("t")
    assert bodies.get("t", found, None, standard=True) is not first


def test_an_order_configuration_comes_and_goes_with_the_route() -> None:
    bodies, found = RouteBodies(), route()
    plain = bodies.get("t", found, None, standard=True)
    ordered = bodies.get("t", found, "b:4", standard=True)
    assert b'"orderTopicConf":"b:4"' in ordered
    assert bodies.get("t", found, None, standard=True) == plain
