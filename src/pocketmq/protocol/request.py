"""A request as one value: its code, its types both ways, who serves it, and how it is treated.

The rows are in `pocketmq.protocol.requests`, by feature; `pocketmq.protocol.catalogue` has all. A
`Form` reads and writes a body: a pair of functions between bytes and a typed value. Bodies that are
read together with something else (records with their delivery, a registration with its header) stay
bytes here.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

from msgspec import Struct

from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.header import Header
from pocketmq.protocol.json_values import decode_body, encode_body
from pocketmq.protocol.peers import BROKER, PeerKind

T = TypeVar("T")
H = TypeVar("H", bound=Header)
B = TypeVar("B")
A = TypeVar("A", bound=Header)
R = TypeVar("R")
ActionName = Literal["Create", "Update", "Delete", "Get"]
KindName = Literal["Topic", "Group"]


class Form(Struct, Generic[T], frozen=True):
    """A codec for one kind of body; `decode` raises `BodyMalformed`."""

    name: str
    """For the reference: a type's name, or a few words for what is not one JSON value."""
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]
    json: Any = None
    """The type of the JSON value, if the body is one of a fixed shape."""


def json_of(kind: type[T], *, bare_integer_keys: bool = False) -> Form[T]:
    """Return the form of a body that is one JSON value: a class, or a `list[...]` of one.

    With `bare_integer_keys` integer keys are written without quotes, as Java's own peers do.
    """

    def encode(value: T) -> bytes:
        return encode_body(value, bare_integer_keys=bare_integer_keys)

    def decode(data: bytes) -> T:
        return decode_body(data, kind)

    shown: Any = kind
    plain = isinstance(shown, type) and not hasattr(shown, "__origin__")
    return Form(shown.__name__ if plain else str(shown), encode, decode, kind)


def _no_bytes(_: None) -> bytes:
    return b""


def _no_value(_: bytes) -> None:
    return None


def _same(data: bytes) -> bytes:
    return data


NOTHING: Form[None] = Form("", _no_bytes, _no_value)
"""No body: everything is in the header's fields."""
RAW: Form[bytes] = Form("raw", _same, _same)
"""An application's bytes, perhaps compressed."""
BATCH: Form[bytes] = Form("batch", _same, _same)
"""Messages of a batch, one after the other: `batch`."""
STORED_MESSAGES: Form[bytes] = Form("stored messages", _same, _same)
"""Records as the commit log has them, one after the other: `pulled`."""
REGISTRATION: Form[bytes] = Form("registration", _same, _same)
"""`protocol.registration`: JSON, or compressed if the header says so."""


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


class RequestRight(Struct, frozen=True):
    """What access control asks of a client: an action on every topic and group that fields name.

    Java marks the same on its headers (`@RocketMQAction`, `@RocketMQResource`). Without fields the
    action is one on the whole cluster, which Java does not ask for.
    """

    action: ActionName
    fields: tuple[tuple[str, KindName], ...]
    """Header fields by their wire names, and what each of them names."""
    optional: tuple[str, ...] = ()
    """Fields that ask for nothing if they are absent: then the request is about no such thing."""

    @classmethod
    def to(
        cls, action: ActionName, *, optional: tuple[str, ...] = (), **fields: KindName
    ) -> "RequestRight":
        """Return the right to act on what fields name, as in `to("Get", topic="Topic")`.

        Raises `TypeError` without fields: that would be a right on the whole cluster.
        """
        if not fields:
            raise TypeError("name the fields, or use on_cluster")
        return cls(action, tuple(fields.items()), optional)

    @classmethod
    def on_cluster(cls, action: ActionName) -> "RequestRight":
        """Return the right to act on the cluster as a whole; to list is enough for "Get"."""
        return cls(action, ())


class NoHeader(Header, frozen=True, kw_only=True):
    """No ext fields; the content, if any, is in the body."""


class Request(Struct, Generic[H, B, A, R], frozen=True):
    """One row of the catalogue: everything about a request code."""

    code: RequestCode
    header: type[H]
    """The fields of the request."""
    body: Form[B]
    answer: type[A]
    """The fields of a successful response."""
    result: Form[R]
    """The body of a successful response."""
    served_by: frozenset[PeerKind]
    """Which peers answer it in RocketMQ 5.5 or 4.9; a container of brokers counts as a broker."""
    queue: RequestQueue = RequestQueue.ADMIN
    main_port: bool = False
    """Java sends it to a broker's own port even if the second one (VIP) is to be used."""
    announced: bool = False
    """Answered only once name servers have it: clients fetch a new topic's route at once."""
    right: RequestRight | None = None
    """What a client needs under access control, where fields alone decide it, or nothing does.

    `broker.access` has a table of the requests that are decided in another way: by their bodies, or
    as Java does for a whole cluster. A request in neither is for super users alone."""
    foreign: bool = False
    """Known by its code alone: PocketMQ does not read or write what it carries."""


AnyRequest = Request[Any, Any, Any, Any]


class Treatment(TypedDict, total=False):
    """How a request is treated: the fields of `Request` with a default."""

    served_by: frozenset[PeerKind]
    queue: RequestQueue
    main_port: bool
    announced: bool
    right: RequestRight


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
    """Return a row. By default it has no body, no result, and a broker serves it.

    Raises `TypeError` if its right names a field that the header does not have: access control
    would ask for a right on nothing.
    """
    if (right := treatment.get("right")) is not None:
        named = {*(wire for wire, _ in right.fields), *right.optional}
        if unknown := named.difference(header.__struct_encode_fields__):
            raise TypeError(f"{header.__name__} has no field {', '.join(sorted(unknown))}")
    defaults: Treatment = {"served_by": BROKER}
    return Request(code, header, body, answer, result, **(defaults | treatment))


def foreign(
    code: RequestCode, *served_by: PeerKind, right: RequestRight | None = None
) -> Request[NoHeader, None, NoHeader, None]:
    """Return the row of a request that PocketMQ neither sends nor serves."""
    peers = frozenset(served_by)
    return Request(code, NoHeader, NOTHING, NoHeader, NOTHING, peers, right=right, foreign=True)
