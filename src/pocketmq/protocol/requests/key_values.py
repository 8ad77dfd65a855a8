"""The name server's small key-value store; it holds the order of ordered topics."""

from pocketmq.model import WireValue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header
from pocketmq.protocol.peers import NAME_SERVER
from pocketmq.protocol.request import NoHeader, json_of, request

DEPARTED_NAMESPACE = "POCKETMQ_DEPARTED"
"""Shows, by topic, the readable queues of brokers that have left: `broker-a:4;broker-b:4`."""


class KVTable(WireValue, frozen=True, kw_only=True):
    """Names and values: configuration of a name server, or a broker's runtime figures."""

    table: dict[str, str] = {}


class PutKVConfigRequest(Header, frozen=True, kw_only=True):
    """Stores a value."""

    namespace: str
    key: str
    value: str


class GetKVConfigRequest(Header, frozen=True, kw_only=True):
    """Asks for a value."""

    namespace: str
    key: str


class GetKVConfigResponse(Header, frozen=True, kw_only=True):
    """The value, if there is one."""

    value: str | None = None


class DeleteKVConfigRequest(Header, frozen=True, kw_only=True):
    """Deletes a value."""

    namespace: str
    key: str


class GetKVListRequest(Header, frozen=True, kw_only=True):
    """Asks for all values of a namespace."""

    namespace: str


PUT_KV_CONFIG = request(Code.PUT_KV_CONFIG, PutKVConfigRequest, NoHeader, served_by=NAME_SERVER)
GET_KV_CONFIG = request(
    Code.GET_KV_CONFIG, GetKVConfigRequest, GetKVConfigResponse, served_by=NAME_SERVER
)
DELETE_KV_CONFIG = request(
    Code.DELETE_KV_CONFIG, DeleteKVConfigRequest, NoHeader, served_by=NAME_SERVER
)
GET_KVLIST_BY_NAMESPACE = request(
    Code.GET_KVLIST_BY_NAMESPACE,
    GetKVListRequest,
    NoHeader,
    result=json_of(KVTable),
    served_by=NAME_SERVER,
)
