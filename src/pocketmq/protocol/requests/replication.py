"""Between brokers of one set: who is master, how far replicas are."""

from pocketmq.protocol.bodies.replication import HAStatus
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import json_of
from pocketmq.protocol.header import Header, Int64
from pocketmq.protocol.request import NoHeader, request


class NotifyMinBrokerIdChangeRequest(Header, frozen=True, kw_only=True):
    """Tells brokers which of them now stands in for the master."""

    min_broker_id: Int64 | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


NOTIFY_MIN_BROKER_ID_CHANGE = request(
    Code.NOTIFY_MIN_BROKER_ID_CHANGE, NotifyMinBrokerIdChangeRequest, NoHeader
)
GET_BROKER_HA_STATUS = request(
    Code.GET_BROKER_HA_STATUS, NoHeader, NoHeader, result=json_of(HAStatus)
)
