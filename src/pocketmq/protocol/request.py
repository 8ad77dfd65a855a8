"""A request as one value: its code, its types both ways, who serves it, and how it is treated.

The rows are in `pocketmq.protocol.requests`, by feature; `pocketmq.protocol.catalogue` has all.
"""

from enum import Enum
from typing import Any, Generic, TypedDict, TypeVar, Unpack, overload

from msgspec import Struct

from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.forms import NOTHING, Form
from pocketmq.protocol.header import Header

H = TypeVar("H", bound=Header)
B = TypeVar("B")
A = TypeVar("A", bound=Header)
R = TypeVar("R")


class Peer(Enum):
    """A kind of process that answers requests."""

    NAME_SERVER = "name server"
    BROKER = "broker"
    CLIENT = "client"
    CONTROLLER = "controller"


class RequestQueue(Enum):
    """The queue in which a Java broker keeps a request until a thread is free.

    Brokers refuse a request that waited longer than `waitTimeMillsIn...Queue` of its queue.
    """

    SEND = "send"
    PULL = "pull"
    LITE_PULL = "lite_pull"
    ACK = "ack"
    HEARTBEAT = "heartbeat"
    TRANSACTION = "transaction"
    ADMIN = "admin_broker"
    UNLIMITED = ""
    """One of the queues without a limit."""


class NoHeader(Header, frozen=True, kw_only=True):
    """No ext fields; what is said, if anything, is in the body."""


class Request(Struct, Generic[H, B, A, R], frozen=True):
    """One row of the catalogue: everything that is known about a request code."""

    code: RequestCode
    header: type[H]
    """The fields of the request."""
    body: Form[B]
    answer: type[A]
    """The fields of a successful response."""
    result: Form[R]
    """The body of a successful response."""
    served_by: frozenset[Peer]
    """Who answers it in RocketMQ 5.5 or 4.9; a container of brokers counts as a broker."""
    queue: RequestQueue = RequestQueue.ADMIN
    main_port: bool = False
    """Java sends it to a broker's own port even if the second one (VIP) is to be used."""
    announced: bool = False
    """Answered only when name servers know: who made a topic asks for its route at once."""
    foreign: bool = False
    """Known by its code alone: nothing of PocketMQ reads or writes what it carries."""


AnyRequest = Request[Any, Any, Any, Any]

BROKER = frozenset({Peer.BROKER})
NAME_SERVER = frozenset({Peer.NAME_SERVER})
CLIENT = frozenset({Peer.CLIENT})
CONTROLLER = frozenset({Peer.CONTROLLER})
NOBODY = frozenset[Peer]()
"""RocketMQ has a number for the request, and no code behind it."""


class Treatment(TypedDict, total=False):
    """How a request is treated: the fields of `Request` that have a usual value."""

    served_by: frozenset[Peer]
    queue: RequestQueue
    main_port: bool
    announced: bool


@overload
def request(
    code: RequestCode, header: type[H], answer: type[A], **treatment: Unpack[Treatment]
) -> Request[H, None, A, None]: ...
@overload
def request(
    code: RequestCode,
    header: type[H],
    answer: type[A],
    *,
    body: Form[B],
    **treatment: Unpack[Treatment],
) -> Request[H, B, A, None]: ...
@overload
def request(
    code: RequestCode,
    header: type[H],
    answer: type[A],
    *,
    result: Form[R],
    **treatment: Unpack[Treatment],
) -> Request[H, None, A, R]: ...
@overload
def request(
    code: RequestCode,
    header: type[H],
    answer: type[A],
    *,
    body: Form[B],
    result: Form[R],
    **treatment: Unpack[Treatment],
) -> Request[H, B, A, R]: ...
def request(
    code: RequestCode,
    header: type[Header],
    answer: type[Header],
    *,
    body: Form[Any] = NOTHING,
    result: Form[Any] = NOTHING,
    **treatment: Unpack[Treatment],
) -> AnyRequest:
    """Make a row. Without a body or a result there is none; a broker serves it unless told."""
    usual: Treatment = {"served_by": BROKER}
    return Request(code, header, body, answer, result, **(usual | treatment))


def foreign(code: RequestCode, *served_by: Peer) -> Request[NoHeader, None, NoHeader, None]:
    """Make the row of a request that is only refused, or not even known, by PocketMQ."""
    peers = frozenset(served_by)
    return Request(code, NoHeader, NOTHING, NoHeader, NOTHING, peers, foreign=True)
