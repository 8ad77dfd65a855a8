"""The requests of an admin: to one server or to many at once, with typed answers.

Owns the session and its options. Independent of particular requests.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar, TypeAlias, TypeVar

import msgspec

from pocketmq.admin.gathered import Answer, Gathered, Missing, ServerPlace
from pocketmq.client.calls import SUCCESS, Fields
from pocketmq.client.checks import check_range, check_seconds
from pocketmq.client.options import ClientOptions, ClientSettings
from pocketmq.client.questions.asking import Ask, Question, TypedAnswer, run
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, lease_session
from pocketmq.errors import BodyMalformed, ClientClosed, InvalidInput, MQError, WrongLoop
from pocketmq.model import MessageQueue
from pocketmq.model.names import TOOLS_GROUP, check_group
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.request import A, B, H, R, Request

T = TypeVar("T")
Q = TypeVar("Q")
AddressOf: TypeAlias = Callable[[MessageQueue], Awaitable[str]]


class AdminOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an admin. Raises `InvalidInput` for an invalid value."""

    group: str = TOOLS_GROUP
    """The group that messages are read as; nothing is committed."""
    timeout: float = 5.0
    """Seconds for each request to a server."""
    parallel: int = 64
    """The number of requests that may be in flight at once."""

    _MOST_PARALLEL: ClassVar = 4096

    def __post_init__(self) -> None:
        check_group(self.group)
        check_seconds("timeout", self.timeout, at_least=0.001)
        check_range("parallel", self.parallel, 1, self._MOST_PARALLEL)


class AdminSettings(ClientSettings, total=False):
    """The fields of `AdminOptions` and `ClientOptions` as keywords."""

    timeout: float
    parallel: int


class AdminWire:
    """The connections of one admin. Belongs to one event loop."""

    def __init__(self, client: ClientOptions, own: AdminOptions) -> None:
        self.options = own
        self.client_options = client
        self._lease: Lease | None = None
        self._ended = False
        self._turns = asyncio.Semaphore(own.parallel)

    async def open(self) -> None:
        """Open the session; raises `NameServersUnreachable`."""
        if self._lease is not None or self._ended:
            raise InvalidInput("an admin can be started once; create a new one")
        self._lease = await lease_session(self.client_options)
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        """Close the connections. Idempotent. Raises `WrongLoop`."""
        if self._lease is not None:
            self._check_loop()
        self._ended = True
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.release()

    @property
    def session(self) -> Session:
        """The open session; raises `ClientClosed` before `open` and after `close`."""
        if self._lease is None:
            raise ClientClosed(self.options.group)
        return self._lease.session

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            self.session.check_process()  # a fork is on another loop, too
            raise WrongLoop("admin client")

    @property
    def name_servers(self) -> tuple[str, ...]:
        """The addresses of the name servers."""
        return self.session.routes.name_servers.addresses

    def now_ms(self) -> int:
        """Return the time in milliseconds."""
        return self.session.clock.now_ms()

    async def ask(
        self,
        address: str,
        code: RequestCode,
        fields: Fields = None,
        body: bytes = b"",
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - one timer serves all requests
        accept: frozenset[int] = SUCCESS,
    ) -> Command:
        """Send one server a request whose fields or body its row does not describe.

        Raises `ServerError` for a refusal, `TransportError`, and `WrongLoop`.
        """
        limit = self.options.timeout if timeout is None else timeout
        if self._lease is not None:
            self._check_loop()
        async with self._turns:
            return await self.session.calls.ask(
                address, code, fields, body, timeout=limit, accept=accept
            )

    async def call(
        self,
        address: str,
        request: Request[H, B, A, R],
        header: H | None = None,
        body: B | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - one timer serves all requests
        accept: frozenset[int] = SUCCESS,
    ) -> TypedAnswer[A, R]:
        """Send a request to one server and return its typed answer. Raises what `ask` does."""
        data = b"" if body is None else request.body.encode(body)
        answer = await self.ask(address, request.code, header, data, timeout=timeout, accept=accept)
        return TypedAnswer(request, answer)

    async def read(
        self,
        address: str,
        request: Request[H, Any, Any, R],
        header: H | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - one timer serves all requests
    ) -> R:
        """Return the body of one server's answer. Raises what `ask` does, and `BodyMalformed`."""
        return _result(request, await self.call(address, request, header, timeout=timeout))

    async def fields(self, address: str, request: Request[H, None, A, Any], header: H | None) -> A:
        """Return the fields of one server's answer. Raises also `HeaderMalformed`."""
        return (await self.call(address, request, header)).header()

    async def tell_each(
        self,
        places: Iterable[ServerPlace],
        request: Request[H, B, Any, Any],
        header: H | None = None,
        body: B | None = None,
    ) -> Gathered[None]:
        """Send the same change to many servers at once; those that fail are in `missing`."""

        async def tell(place: ServerPlace) -> None:
            await self.call(place.address, request, header, body)

        return await self.each(places, tell)

    async def read_each(
        self,
        places: Iterable[ServerPlace],
        request: Request[H, None, Any, R],
        header: H | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - one timer serves all requests
    ) -> Gathered[R]:
        """Read the bodies of many servers' answers at once; those that fail are in `missing`."""
        return await self.each(
            places, lambda place: self.read(place.address, request, header, timeout=timeout)
        )

    async def consult(
        self,
        request: Request[H, None, A, R],
        header: H | None = None,
        *,
        accept: frozenset[int] = SUCCESS,
    ) -> TypedAnswer[A, R]:
        """Ask any name server. Raises `NameServersUnreachable`, `ServerError`."""
        return TypedAnswer(request, await self._consult(request.code, header, accept))

    async def look_up(self, request: Request[H, None, Any, R], header: H | None = None) -> R:
        """Return the body of any name server's answer. Raises also `BodyMalformed`."""
        return _result(request, await self.consult(request, header))

    async def _consult(self, code: RequestCode, fields: Fields, accept: frozenset[int]) -> Command:
        session = self.session
        self._check_loop()
        return await session.routes.name_servers.ask(
            code, fields, timeout=self.options.timeout, accept=accept
        )

    async def run(self, question: Question[T], address_of: AddressOf | None = None) -> T:
        """Run a question; `address_of` returns the address of a queue's broker.

        A question for name servers needs none.
        """

        async def carry(asked: Ask) -> Command:
            if asked.queue is None:
                return await self._consult(asked.code, asked.header, asked.accept)
            if address_of is None:
                raise TypeError(f"{asked.code.name} is for the broker of {asked.queue}")
            own = self.options.timeout
            return await self.ask(
                await address_of(asked.queue),
                asked.code,
                asked.header,
                asked.body,
                timeout=own if asked.timeout is None else max(own, asked.timeout),
                accept=asked.accept,
            )

        return await run(question, carry)

    async def each(
        self, places: Iterable[ServerPlace], work: Callable[[ServerPlace], Awaitable[T]]
    ) -> Gathered[T]:
        """Run `work` for many servers at once; those that fail are in `missing`, not raised."""
        wanted = list(places)
        outcomes = await self.together(wanted, work)
        return Gathered(
            tuple(
                Answer(place, outcome)
                for place, outcome in zip(wanted, outcomes, strict=True)
                if not isinstance(outcome, MQError)
            ),
            tuple(
                Missing(place, outcome)
                for place, outcome in zip(wanted, outcomes, strict=True)
                if isinstance(outcome, MQError)
            ),
        )

    async def together(
        self, subjects: Iterable[Q], work: Callable[[Q], Awaitable[T]]
    ) -> list[T | MQError]:
        """Run `work` for many subjects at once; return results and errors, in order."""

        async def one(subject: Q) -> T | MQError:
            try:
                return await work(subject)
            except MQError as error:
                return error

        return await asyncio.gather(*(one(subject) for subject in subjects))


def _result(request: Request[Any, Any, Any, R], answer: TypedAnswer[Any, R]) -> R:
    """Return the value of an answer's body; raises `BodyMalformed`, also if there is none."""
    if answer.is_empty:
        raise BodyMalformed(request.result.name, "the response has no body")
    return answer.result()
