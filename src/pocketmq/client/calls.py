"""Requests to an address: completed by the hooks, sent, answered within a deadline.

Works with addresses, not broker names. No request leaves a forked process.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from pocketmq.client.options import ClientOptions, Credentials
from pocketmq.client.rows import NumberedTemplate, RequestRow
from pocketmq.errors import ResponseCode, server_error
from pocketmq.net import Connection, Dialer
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.header import Header
from pocketmq.protocol.peers import Language
from pocketmq.protocol.signature import SigningUser, sign

Fields: TypeAlias = Mapping[str, str] | Header | None

SUCCESS = frozenset({int(ResponseCode.SUCCESS)})


N = TypeVar("N")


class ClientKind(NamedTuple):
    """The language of a client, and its release as RocketMQ numbers them."""

    language: Language
    version: int


class RequestHook(Protocol):
    """Completes the fields of every request of a client, in place."""

    def __call__(self, code: int, fields: dict[str, str], body: bytes) -> None:
        """Add to `fields`; `body` is as it will be sent."""


def hooks_for(options: ClientOptions, *, stream: bool = False) -> tuple[RequestHook, ...]:
    """Return the hooks that a client needs, in Java's order: the signature covers all others."""
    hooks: list[RequestHook] = []
    if options.namespace_v2:
        hooks.append(_Added({"nsd": "true", "ns": options.namespace_v2}))
    if stream:
        hooks.append(_Added({"ReqT": "0"}))  # Java: RequestType.STREAM
    if options.credentials is not None:
        hooks.append(Signing(options.credentials))
    return tuple(hooks)


class _Added:
    """A hook that adds constant fields."""

    def __init__(self, fields: dict[str, str]) -> None:
        self._fields = fields

    def __call__(self, code: int, fields: dict[str, str], body: bytes) -> None:  # noqa: ARG002 - a hook
        fields.update(self._fields)


class Signing:
    """A hook that signs requests with a user's key (RocketMQ's ACL, 4.x and 5.x)."""

    def __init__(self, credentials: Credentials) -> None:
        secret, token = credentials.secret_key.encode(), credentials.security_token or ""
        self.user = SigningUser(credentials.access_key, secret, token)

    def __call__(self, code: int, fields: dict[str, str], body: bytes) -> None:
        """Add the user and the signature, which is bound to the request's code."""
        sign(self.user, code, fields, body)


class ServerCalls:
    """Sends requests to servers by address. Belongs to one event loop."""

    def __init__(
        self, dialer: Dialer, hooks: tuple[RequestHook, ...], check: Callable[[], None]
    ) -> None:
        self.dialer = dialer
        self.hooks = hooks
        self.behind: ClientKind | None = None
        """The client for which this one stands, if it does; brokers list it as that."""
        self._check = check  # raises if the client is closed or was forked

    @property
    def signing_user(self) -> SigningUser | None:
        """The user if requests get a signature and nothing else."""
        only = self.hooks[0] if len(self.hooks) == 1 else None
        return only.user if isinstance(only, Signing) else None

    def request(self, code: int, fields: Fields = None, body: bytes = b"") -> Command:
        """Return a request as this client sends it."""
        if not self.hooks:
            made = Command.request(code, 0, fields, body)
        else:
            named = fields.to_ext() if isinstance(fields, Header) else dict(fields or {})
            for hook in self.hooks:
                hook(code, named, body)
            made = Command.request(code, 0, named, body)
        if self.behind is not None and code == RequestCode.HEART_BEAT:
            made = msgspec.structs.replace(
                made, language=self.behind.language, version=self.behind.version
            )
        return made

    async def ask(
        self,
        address: str,
        code: int,
        fields: Fields = None,
        body: bytes = b"",
        *,
        timeout: float,  # noqa: ASYNC109 - one timer serves all requests
        accept: frozenset[int] = SUCCESS,
    ) -> Command:
        """Send a request and return the response if its code is one of `accept`.

        Raises the `ServerError` that stands for any other code, and `TransportError`.
        """
        self._check()
        request = self.request(code, fields, body)
        answer = await self.dialer.request(address, request, timeout)
        return self.accepted(answer, address, code, accept)

    async def repeat(
        self,
        address: str,
        code: int,
        template: NumberedTemplate[N],
        numbers: N,
        *,
        timeout: float,  # noqa: ASYNC109 - one timer serves all requests
        accept: frozenset[int] = SUCCESS,
    ) -> Command:
        """Do what `ask` does with a request of which all but some numbers is encoded.

        In far fewer steps on an open connection, if no hook completes the fields.
        """
        connection = None if self.hooks else self.dialer.known(address)
        if connection is None:
            fields = template.fields(numbers)
            return await self.ask(address, code, fields, timeout=timeout, accept=accept)
        self._check()
        frame = partial(template.frame, code, numbers)
        answer = await self.dialer.ask(connection, code, frame, timeout)
        return self.accepted(answer, address, code, accept)

    def row(
        self, address: str, code: int, template: NumberedTemplate[N], timeout: float
    ) -> RequestRow[N] | None:
        """Return what sends such requests in a row; None where they cannot be: see `repeat`."""
        connection = None if self.hooks else self.dialer.known(address)
        if connection is None:
            return None
        return RequestRow(self.dialer, connection, self._check, code, template, timeout=timeout)

    async def tell(
        self,
        address: str,
        code: int,
        fields: Fields = None,
        body: bytes = b"",
        *,
        timeout: float,  # noqa: ASYNC109 - for the connection alone
        remark: str | None = None,
    ) -> None:
        """Send a one-way request; raises `ConnectFailed` if the address cannot be reached."""
        self._check()
        connection = await self.dialer.connect(address, timeout)
        request = self.request(code, fields, body)
        if remark is not None:
            request = msgspec.structs.replace(request, remark=remark)
        connection.send_oneway(request)

    def accepted(self, answer: Command, address: str, code: int, accept: frozenset[int]) -> Command:
        """Return a response if its code is one of `accept`; raise what stands for it otherwise."""
        if answer.code in accept:
            return answer
        raise server_error(answer.code, answer.remark, request=request_name(code), address=address)

    def connected(self, address: str) -> Connection | None:
        """Return the connection to an address if there is one already."""
        return self.dialer.known(address)


def request_name(code: int) -> str:
    """Return a request's name for error messages."""
    try:
        return RequestCode(code).name
    except ValueError:
        return f"request {code}"
