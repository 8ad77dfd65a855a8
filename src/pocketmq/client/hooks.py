"""What is added to every request before it leaves: namespace, stream mark, signature.

A hook changes the fields in place. The order is Java's; the signature covers all before it.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Protocol

from pocketmq.client.options import ClientOptions, Credentials
from pocketmq.model.java_strings import java_sorted

ACCESS_KEY = "AccessKey"
SECURITY_TOKEN = "SecurityToken"  # noqa: S105 - the field's name
SIGNATURE = "Signature"


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
    """Signs requests with a user's key (RocketMQ's ACL, 4.x and 5.x)."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._key = credentials.secret_key.encode()

    def __call__(self, code: int, fields: dict[str, str], body: bytes) -> None:  # noqa: ARG002 - a hook
        """Add the user and the signature."""
        fields[ACCESS_KEY] = self._credentials.access_key
        if self._credentials.security_token is not None:
            fields[SECURITY_TOKEN] = self._credentials.security_token
        digest = hmac.new(self._key, _content(fields, body), hashlib.sha1).digest()
        fields[SIGNATURE] = base64.b64encode(digest).decode()


def _content(fields: Mapping[str, str], body: bytes) -> bytes:
    """Give what is signed: the values in Java's order of their keys, then the body."""
    keys = java_sorted([key for key in fields if key != SIGNATURE])
    return "".join([fields[key] for key in keys]).encode("utf-8", "replace") + body
