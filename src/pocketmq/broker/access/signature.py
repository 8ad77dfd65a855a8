"""Signatures of requests (Java: AclClientRPCHook), the same in 4.x and 5.x.

Signed are the values of all fields in Java's order of their keys, then the body. Nothing in it is
of one moment: whoever sees a request can send it again unchanged. TLS keeps others from seeing it.
"""

import binascii
import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from operator import itemgetter

from pocketmq.broker.access.settings import InnerCredentials
from pocketmq.model.java_strings import java_sorted

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
SECURITY_TOKEN = "SecurityToken"  # noqa: S105 - the field's name
_UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
"""Signed by clients from 4.9.4 on, unsigned by those before: both count."""
_BLOCK = 64
_INNER, _OUTER = (bytes(each ^ pad for each in range(256)) for pad in (0x36, 0x5C))
_sha1 = partial(hashlib.sha1, usedforsecurity=False)  # RocketMQ's choice; as an HMAC it holds


def signed_fields(user: InnerCredentials, fields: Mapping[str, str], body: bytes) -> dict[str, str]:
    """Give a request's fields with a user's name and signature."""
    named = dict(fields) | {ACCESS_KEY: user.access_key}
    if user.security_token:
        named[SECURITY_TOKEN] = user.security_token
    signature = _signature(user.secret_key.encode(), named, body).decode()
    return named | {SIGNATURE: signature}


def is_signed_with(secret: bytes, fields: Mapping[str, str], body: bytes) -> bool:
    """Tell whether a request's signature was made with a secret, in the same time either way."""
    given = fields.get(SIGNATURE, "").encode("utf-8", "replace")
    good = hmac.compare_digest(_signature(secret, fields, body), given)
    if _UNIQUE_KEY_QUERY in fields:
        unsigned = {key: value for key, value in fields.items() if key != _UNIQUE_KEY_QUERY}
        good |= hmac.compare_digest(_signature(secret, unsigned, body), given)
    return good


def _signature(secret: bytes, fields: Mapping[str, str], body: bytes) -> bytes:
    content = "".join(_in_order(tuple(fields))(fields)).encode("utf-8", "replace")
    inner, outer = _keyed(secret)
    signing, sealing = inner.copy(), outer.copy()
    signing.update(content)
    signing.update(body)
    sealing.update(signing.digest())
    return binascii.b2a_base64(sealing.digest(), newline=False)


@lru_cache(maxsize=1024)
def _in_order(keys: tuple[str, ...]) -> Callable[[Mapping[str, str]], Iterable[str]]:
    """Give what picks the signed values; a client's requests of one kind have the same keys."""
    ordered = java_sorted([key for key in keys if key != SIGNATURE])
    if len(ordered) < 2:  # `itemgetter` would give a value instead of values
        return lambda fields: [fields[key] for key in ordered]
    return itemgetter(*ordered)


@lru_cache(maxsize=1024)
def _keyed(secret: bytes) -> "tuple[hashlib._Hash, hashlib._Hash]":
    """Begin the two hashes of an HMAC (RFC 2104); going on from copies halves its cost."""
    if len(secret) > _BLOCK:
        secret = _sha1(secret).digest()
    padded = secret.ljust(_BLOCK, b"\0")
    return _sha1(padded.translate(_INNER)), _sha1(padded.translate(_OUTER))
