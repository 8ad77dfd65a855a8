"""Which right each request to a name server needs. A request that is not listed needs `CHANGE`."""

from enum import Enum

from pocketmq.nameserver.key_values import ORDER_NAMESPACE
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command


class Right(Enum):
    """What a peer has to be allowed."""

    READ = "read routes and lists"
    REGISTER = "register brokers"
    CHANGE = "change the name server, or read what may be secret"


RIGHTS: dict[int, Right] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: Right.READ,
    RequestCode.GET_BROKER_CLUSTER_INFO: Right.READ,
    RequestCode.GET_BROKER_MEMBER_GROUP: Right.READ,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: Right.READ,
    RequestCode.GET_TOPICS_BY_CLUSTER: Right.READ,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: Right.READ,
    RequestCode.GET_UNIT_TOPIC_LIST: Right.READ,
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: Right.READ,
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: Right.READ,
    RequestCode.REGISTER_BROKER: Right.REGISTER,
    RequestCode.UNREGISTER_BROKER: Right.REGISTER,
    RequestCode.BROKER_HEARTBEAT: Right.REGISTER,
    RequestCode.QUERY_DATA_VERSION: Right.REGISTER,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: Right.REGISTER,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: Right.CHANGE,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: Right.CHANGE,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: Right.CHANGE,
    RequestCode.PUT_KV_CONFIG: Right.CHANGE,
    RequestCode.DELETE_KV_CONFIG: Right.CHANGE,
    RequestCode.GET_KV_CONFIG: Right.CHANGE,
    RequestCode.GET_KVLIST_BY_NAMESPACE: Right.CHANGE,
    RequestCode.UPDATE_NAMESRV_CONFIG: Right.CHANGE,
    RequestCode.GET_NAMESRV_CONFIG: Right.CHANGE,
}
_VALUES = frozenset({RequestCode.GET_KV_CONFIG, RequestCode.GET_KVLIST_BY_NAMESPACE})


def right_for(request: Command) -> Right:
    """Return the right a request needs; the order of topics is no secret, routes show it."""
    if request.code in _VALUES and request.ext.get("namespace") == ORDER_NAMESPACE:
        return Right.READ
    return RIGHTS.get(request.code, Right.CHANGE)
