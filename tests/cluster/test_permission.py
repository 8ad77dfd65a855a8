"""A broker that may no longer write is out of what producers may use, and back again."""

from functools import partial

from pocketmq.embedded import Cluster
from pocketmq.model import TopicRoute
from pocketmq.protocol import RequestCode, decode_body
from pocketmq.protocol.requests.nameserver import GetRouteRequest
from tests.interop.jvm import wait_until
from tests.wire_client import WireClient

PATIENCE = 20.0


def shows(name_server: str, permission: int) -> bool:
    """Return whether that is what a client of the topic may do."""
    with WireClient(name_server) as client:
        answer = client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic="T"))
    if answer.code != 0:
        return False
    return {each.perm for each in decode_body(answer.body, TopicRoute).queue_datas} == {permission}


def test_a_change_of_the_permission_reaches_the_routes_at_once() -> None:
    """Within seconds, that is: brokers register anew every 30 s otherwise."""
    with Cluster(brokers=1) as cluster:
        (info,) = cluster.brokers.values()
        with WireClient(info.address) as client:
            client.send("T", b"x")
            wait_until(partial(shows, cluster.address, 6), "the topic", PATIENCE)
            for permission in (4, 6):
                body = f"brokerPermission={permission}\n".encode()
                answer = client.ask(RequestCode.UPDATE_BROKER_CONFIG, None, body)
                assert answer.code == 0, answer.remark
                wait_until(partial(shows, cluster.address, permission), "the route", PATIENCE)
