"""How a broker asks its name servers: as nobody, or as the user its settings name.

Java: `innerClientAuthenticationCredentials`; here also `nameServerCredentials`. Name servers with
access control take registrations from such a user only.
"""

from typing import Protocol

from pocketmq.model.start_users import InnerCredentials
from pocketmq.protocol.command import Command


class NameServerCalls(Protocol):
    """Whoever brings a request to an address and its answer back; `pocketmq.net.Dialer` does."""

    async def request(self, address: str, request: Command, timeout: float) -> Command:  # noqa: ASYNC109 - the request's own
        """Ask an address. Raises `MQError` if no answer comes."""
        ...


class SignedCalls:
    """Signs what is asked."""

    def __init__(self, calls: NameServerCalls, user: InnerCredentials) -> None:
        from pocketmq.protocol.signature import SigningUser, sign  # most brokers do without

        self._calls = calls
        self._user = SigningUser(user.access_key, user.secret_key.encode(), user.security_token)
        self._sign = sign

    async def request(self, address: str, request: Command, timeout: float) -> Command:  # noqa: ASYNC109 - the request's own
        """Ask an address as the user. Raises `MQError` if no answer comes."""
        fields = dict(request.ext)
        self._sign(self._user, request.code, fields, request.body)
        signed = Command.request(request.code, 0, fields, request.body)
        return await self._calls.request(address, signed, timeout)


def calls_of(calls: NameServerCalls, user: InnerCredentials | None) -> NameServerCalls:
    """Give the way to name servers for a broker that is this user, or nobody."""
    return calls if user is None else SignedCalls(calls, user)
