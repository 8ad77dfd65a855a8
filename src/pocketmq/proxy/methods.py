"""What a gRPC port serves: a function for each method, between bytes, and what a call offers to it.

Two shells carry calls out: `native_link` on the native core, and `grpc_port` on grpcio.
"""

import enum
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from pocketmq.proxy.translation.caller import Caller


class GrpcCode(enum.IntEnum):
    """The codes of gRPC that calls end with; all others end with a response."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class CallFailed(Exception):
    """A call that ends with a code of gRPC in the place of a response."""

    def __init__(self, code: GrpcCode, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class Call(Protocol):
    """One call, as its function sees it."""

    def caller(self) -> Caller:
        """Return the client; raises `CallRefused` if it does not name itself."""

    def time_left(self) -> float | None:
        """Return the seconds until the client's deadline; None if it has none."""


class PendingCall(Call, Protocol):
    """A call whose response comes later."""

    release: Callable[[], None] | None
    """What is called if the client ends the call before that."""

    def is_over(self) -> bool:
        """Return whether the client has ended it."""

    def reply(self, response: bytes) -> None:
        """Send the response."""

    def continue_with(self, begin: Callable[[], Awaitable[bytes]]) -> None:
        """Make the response in a task, which calls `begin` if the client is still there."""


class BegunStream(PendingCall, Protocol):
    """A call whose responses come later, many of them."""

    def reply_all(self, responses: bytes) -> bool:
        """Send all responses, framed as gRPC does; False if the client does not take them now."""

    def continue_stream(self, responses: AsyncGenerator[bytes, None]) -> None:
        """Send responses that take their time."""


class Exchange(Call, Protocol):
    """A call with many messages in both directions."""

    def messages(self) -> AsyncIterator[bytes]:
        """Yield the client's messages until it ends them."""

    async def write(self, message: bytes) -> None:
        """Send a message, and wait while the client reads too slowly."""


Unary: TypeAlias = Callable[[bytes, Call], Awaitable[bytes]]
Streaming: TypeAlias = Callable[[bytes, Call], AsyncGenerator[bytes, None]]
Exchanging: TypeAlias = Callable[[Exchange], Awaitable[None]]


class ShortWay(Protocol):
    """How plain calls of a method are served without a task."""

    def begin(self, raw: bytes, call: PendingCall) -> bool:
        """Begin a call, and reply later; False if it must be served."""

    def resume(self, raw: bytes, call: PendingCall, place: Any, outcome: Any) -> None:
        """Reply to a call that the core has begun: a response that is unusual, or an error."""


class MethodKind(enum.Enum):
    """How many messages a method has."""

    ONE = "one request, one response"
    MANY = "one request, many responses"
    BOTH = "many in both directions"


class Method(msgspec.Struct, frozen=True):
    """A method: an `Unary`, a `Streaming` or an `Exchanging`, by its kind; raises `CallFailed`."""

    kind: MethodKind
    serve: Callable[..., Any]
    short: ShortWay | None = None
    """Of a method with one response."""
    begin: Callable[[bytes, BegunStream], bool] | None = None
    """Of a method with many responses: how plain calls begin without a task, as in `short`."""


Methods: TypeAlias = Mapping[str, Method]
"""By the path of a call, `/service/method`."""
