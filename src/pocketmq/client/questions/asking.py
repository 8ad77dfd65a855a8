"""Questions as generators: they yield what to ask and return a typed result.

A question does no input or output and has no addresses. A driver asks the server that each
`Ask` means, and sends the answer, or the error, back into the generator. The drivers are here,
and the one question that any name server answers: where a topic lives.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from pocketmq.client.calls import SUCCESS
from pocketmq.errors import MQError, ResponseCode, RouteNotFound
from pocketmq.model import MessageQueue, TopicRoute
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.header import Header
from pocketmq.protocol.request import A, B, H, R, Request
from pocketmq.protocol.requests.nameserver import GET_ROUTEINFO_BY_TOPIC, GetRouteRequest

T = TypeVar("T")


class Ask(Struct, frozen=True):
    """One request of a question, for the broker of a queue, or any name server without one."""

    queue: MessageQueue | None
    code: RequestCode
    header: Header
    body: bytes = b""
    accept: frozenset[int] = SUCCESS
    """Response codes that are answers; for others drivers raise the `ServerError`."""
    timeout: float | None = None
    """Seconds to wait at least; None is for the driver's own limit."""
    newest: bool = False
    """Whether a replica that lags behind is no help."""


class TypedAnswer(Generic[A, R]):
    """A response with the types of its request's catalogue row."""

    __slots__ = ("_command", "_request")

    def __init__(self, request: Request[Any, Any, A, R], command: Command) -> None:
        self._request = request
        self._command = command

    @property
    def code(self) -> int:
        """The response code, one of those that were accepted."""
        return self._command.code

    @property
    def version(self) -> int:
        """The version of the server."""
        return self._command.version

    @property
    def is_empty(self) -> bool:
        """Whether there is no body."""
        return not self._command.body

    def header(self) -> A:
        """Return the fields; raises `HeaderMalformed`."""
        return self._command.header(self._request.answer)

    def result(self) -> R:
        """Return the body's value; raises `BodyMalformed`."""
        return self._request.result.decode(self._command.body)


Question: TypeAlias = Generator[Ask, Command, T]


def ask(
    queue: MessageQueue | None,
    request: Request[H, None, A, R],
    header: H,
    *,
    accept: frozenset[int] = SUCCESS,
    timeout: float | None = None,
    newest: bool = False,
) -> Question[TypedAnswer[A, R]]:
    """Ask one thing, without a body."""
    command = yield Ask(queue, request.code, header, b"", accept, timeout, newest)
    return TypedAnswer(request, command)


def ask_with(request: Request[H, B, A, R], header: H, body: B) -> Question[TypedAnswer[A, R]]:
    """Ask one thing, with a body, of a server that the driver chooses; see `ask_address`."""
    command = yield Ask(None, request.code, header, request.body.encode(body))
    return TypedAnswer(request, command)


async def run(
    question: Question[T], carry: Callable[[Ask], Awaitable[Command]], asked: Ask | None = None
) -> T:
    """Drive a question from a coroutine; raises what the question does not handle itself.

    `asked` is the request that a question waits for if another driver has begun it.
    """
    step: Callable[[Any], Ask] = question.send
    given: Any = None
    while True:
        if asked is None:
            try:
                asked = step(given)
            except StopIteration as end:
                result: T = end.value
                return result
        try:
            step, given = question.send, await carry(asked)
        except MQError as error:
            step, given = question.throw, error
        asked = None


async def ask_address(
    call: Callable[..., Awaitable[Command]],
    address: str,
    question: Question[T],
    *,
    timeout: float,  # noqa: ASYNC109 - one timer serves all requests
) -> T:
    """Ask the server at an address, whatever queue a question is about.

    `call` is `BrokerCalls.call_at`, or `ServerCalls.ask` for what never goes to a second port.
    """

    async def carry(asked: Ask) -> Command:
        return await call(
            address, asked.code, asked.header, asked.body, timeout=timeout, accept=asked.accept
        )

    return await run(question, carry)


def run_blocking(question: Question[T], carry: Callable[[Ask], Command]) -> T:
    """Drive a question on the caller's thread; raises what the question does not handle itself."""
    step: Callable[[Any], Ask] = question.send
    given: Any = None
    while True:
        try:
            asked = step(given)
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            step, given = question.send, carry(asked)
        except MQError as error:
            step, given = question.throw, error


ABSENT = frozenset({int(ResponseCode.TOPIC_NOT_EXIST)})
"""The response code of a name server that does not know a topic."""


def route_of(topic: str, absent: frozenset[int] = ABSENT) -> Question[TopicRoute]:
    """Return a topic's route; raises `RouteNotFound` for an answer in `absent`, or without one."""
    header = GetRouteRequest(topic=topic)
    answer = yield from ask(None, GET_ROUTEINFO_BY_TOPIC, header, accept=SUCCESS | absent)
    if answer.code in absent or answer.is_empty:
        raise RouteNotFound(topic)
    return answer.result()
