"""Requests to an address: completed by the hooks, sent, answered in time.

Knows addresses, not brokers. Every call has a deadline, and none leaves a forked process.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from pocketmq.client.calls import RequestHook
from pocketmq.errors import ResponseCode, server_error
from pocketmq.net import Connection, Dialer
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.header import Header

Fields: TypeAlias = Mapping[str, str] | Header | None

SUCCESS = frozenset({int(ResponseCode.SUCCESS)})


class Calls:
    """Asks servers. Belongs to one event loop."""

    def __init__(
        self, dialer: Dialer, hooks: tuple[RequestHook, ...], check: Callable[[], None]
    ) -> None:
        self.dialer = dialer
        self.hooks = hooks
        self._check = check  # raises if the client may not be used (now, here)

    def request(self, code: int, fields: Fields = None, body: bytes = b"") -> Command:
        """Make a request as this client sends it."""
        if not self.hooks:
            return Command.request(code, 0, fields, body)
        named = fields.to_ext() if isinstance(fields, Header) else dict(fields or {})
        for hook in self.hooks:
            hook(code, named, body)
        return Command.request(code, 0, named, body)

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
        """Give the answer of an address if its code is one of `accept`.

        Raises the `ServerError` that stands for any other code, and `TransportError`.
        """
        self._check()
        request = self.request(code, fields, body)
        answer = await self.dialer.request(address, request, timeout)
        if answer.code not in accept:
            raise server_error(
                answer.code, answer.remark, request=request_name(code), address=address
            )
        return answer

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
        """Send a request that nobody answers; raises `ConnectFailed` if there is no way."""
        self._check()
        connection = await self.dialer.connect(address, timeout)
        request = self.request(code, fields, body)
        if remark is not None:
            request = msgspec.structs.replace(request, remark=remark)
        connection.send_oneway(request)

    def connected(self, address: str) -> Connection | None:
        """Give the connection to an address if there is one already."""
        return self.dialer.known(address)


def request_name(code: int) -> str:
    """Give a request's name for messages."""
    try:
        return RequestCode(code).name
    except ValueError:
        return f"request {code}"
