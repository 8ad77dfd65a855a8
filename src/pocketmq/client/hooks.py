"""What is added to every request before it leaves: namespace, stream mark, signature.

A hook changes the fields in place. The order is Java's; the signature covers all before it.
"""

from typing import Protocol

from pocketmq.client.options import ClientOptions, Credentials
from pocketmq.protocol.signature import SigningUser, sign


class RequestHook(Protocol):
    """Completes the fields of a request."""

    def __call__(self, code: int, fields: dict[str, str], body: bytes) -> None:
        """Add to `fields`; the body is as it goes out."""


def hooks_for(options: ClientOptions, *, stream: bool = False) -> tuple[RequestHook, ...]:
    """Give the hooks a client needs, in order."""
    hooks: list[RequestHook] = []
    if options.namespace_v2:
        hooks.append(_Added({"nsd": "true", "ns": options.namespace_v2}))
    if stream:
        hooks.append(_Added({"ReqT": "0"}))  # Java: RequestType.STREAM
    if options.credentials is not None:
        hooks.append(Signing(options.credentials))
    return tuple(hooks)


class _Added:
    def __init__(self, fields: dict[str, str]) -> None:
        self._fields = fields

    def __call__(self, code: int, fields: dict[str, str], body: bytes) -> None:  # noqa: ARG002 - a hook
        fields.update(self._fields)


class Signing:
    """Signs requests with a user's key (RocketMQ's ACL, 4.x and 5.x), bound to their code."""

    def __init__(self, credentials: Credentials) -> None:
        secret, token = credentials.secret_key.encode(), credentials.security_token or ""
        self._user = SigningUser(credentials.access_key, secret, token)

    def __call__(self, code: int, fields: dict[str, str], body: bytes) -> None:
        """Add the user and the signature."""
        sign(self._user, code, fields, body)
