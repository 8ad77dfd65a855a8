"""Filter servers, which 4.9 still names though it no longer runs them."""

from msgspec import field

from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header, Int32, Int64
from pocketmq.protocol.request import NOBODY, RAW, NoHeader, request


class RegisterFilterServerRequest(Header, frozen=True, kw_only=True):
    """Registers a filter server with its broker."""

    filter_server_addr: str


class RegisterFilterServerResponse(Header, frozen=True, kw_only=True):
    """The broker a filter server belongs to."""

    broker_name: str
    broker_id: Int64


class RegisterMessageFilterClassRequest(Header, frozen=True, kw_only=True):
    """Sends a filter class to a filter server; its source is the body."""

    consumer_group: str
    topic: str
    class_name: str
    class_crc: Int32 = field(name="classCRC")


REGISTER_FILTER_SERVER = request(
    Code.REGISTER_FILTER_SERVER,
    RegisterFilterServerRequest,
    RegisterFilterServerResponse,
    served_by=NOBODY,
)
REGISTER_MESSAGE_FILTER_CLASS = request(
    Code.REGISTER_MESSAGE_FILTER_CLASS,
    RegisterMessageFilterClassRequest,
    NoHeader,
    body=RAW,
    served_by=NOBODY,
)
