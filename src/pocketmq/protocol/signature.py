"""Signatures of requests (Java: AclClientRPCHook), the same in 4.x and 5.x. Sans-IO.

RocketMQ signs the values of all fields in Java's order of their keys, then the body: neither the
request code nor the keys. PocketMQ's clients bind them: the field `!`, which sorts before all
others, holds the code, the fields' keys and, except for sends, the lengths of their values, so the
signed content begins with them.
An attacker who captures such a request cannot remove, alter or move this beginning. Java brokers
take the field for one more value. No time is signed: a captured request can be sent
again unchanged. TLS keeps others from capturing it.
"""

import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache, partial
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from pocketmq.model.java_strings import java_sorted
from pocketmq.protocol.codes import RequestCode

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
SECURITY_TOKEN = "SecurityToken"  # noqa: S105 - the field's name
BINDING = "!"
"""The field that binds a signature to the request's code and fields."""
_SIGNING = frozenset({ACCESS_KEY, SIGNATURE, SECURITY_TOKEN, BINDING})
_MARK = "pocketmq.code="
_MARK_BYTES = _MARK.encode()
_RESERVED = frozenset("=,;")
SENDS = frozenset[int](
    (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
)
"""Requests that are bound without the lengths of their values; see `_layout`."""
_UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
"""Signed by clients from 4.9.4 on, unsigned by those before: both count."""
_REMEMBERED_KEYS = 1024
"""Keys and characters of them; the largest request of a client has about 300."""
_BLOCK = 64
_INNER, _OUTER = (bytes(each ^ pad for each in range(256)) for pad in (0x36, 0x5C))
_sha1 = partial(hashlib.sha1, usedforsecurity=False)  # RocketMQ's choice; as an HMAC it holds


class Signed(Enum):
    """The result of checking a signature."""

    NOT = "not signed with this secret, or signed for another request"
    UNBOUND = "signed as Java does: values and body"
    BOUND = "signed with the request's code and the fields' keys"


class SigningUser(NamedTuple):
    """The user whose name and signature a request gets."""

    access_key: str
    secret: bytes
    token: str = ""

    def __repr__(self) -> str:
        return f"SigningUser(access_key={self.access_key!r})"


def sign(user: SigningUser, code: int, fields: dict[str, str], body: bytes) -> None:
    """Add a user's name and signature to a request's fields."""
    access_key, secret, token = user
    fields[ACCESS_KEY] = access_key
    if token:
        fields[SECURITY_TOKEN] = token
    fields[BINDING] = ""  # signed as empty if it cannot be
    plan = _plan_of(code, fields)
    if plan.layout is not None:
        layout = plan.layout
        fields[BINDING] = layout if isinstance(layout, str) else layout(fields)
    fields[SIGNATURE] = _digest(secret, _content(plan, fields), body).decode()


class PartlySigned:
    """A signature whose content starts with the same bytes for many requests: hashed once."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret: bytes, start: bytes) -> None:
        inner, self._outer = _keyed(secret)
        self._inner = inner.copy()
        self._inner.update(start)

    def finish(self, rest: bytes, body: bytes) -> bytes:
        """Return the signature of a request whose content ends with `rest`; any thread may."""
        signing, sealing = self._inner.copy(), self._outer.copy()
        signing.update(rest)
        signing.update(body)
        sealing.update(signing.digest())
        return binascii.b2a_base64(sealing.digest(), newline=False)


def send_binding(code: int, keys: list[str]) -> str:
    """Return the field `!` of one of `SENDS` with these keys, which are in Java's order."""
    layout = _layout(code, keys)
    assert isinstance(layout, str)  # as it holds no lengths
    return layout


def unsigned(fields: Mapping[str, str]) -> dict[str, str]:
    """Return fields without name and signature, for receivers that must not see them.

    A receiver could send the request again, and if it is not bound, as another one.
    """
    return {key: value for key, value in fields.items() if key not in _SIGNING}


def check_signature(secret: bytes, code: int, fields: Mapping[str, str], body: bytes) -> Signed:
    """Check a request's signature; signatures are compared in the same time either way."""
    given = fields.get(SIGNATURE, "").encode("utf-8", "replace")
    plan = _plan_of(code, fields)
    content = _content(plan, fields)
    good = hmac.compare_digest(_digest(secret, content, body), given)
    if not good and _UNIQUE_KEY_QUERY in fields:
        fields = {key: value for key, value in fields.items() if key != _UNIQUE_KEY_QUERY}
        plan = _plan_of(code, fields)
        content = _content(plan, fields)
        good = hmac.compare_digest(_digest(secret, content, body), given)
    if not good:
        return Signed.NOT
    # The whole content counts, not a field: its beginning is the same whatever the keys are now.
    if len(content) < len(_MARK_BYTES):
        content += body[: len(_MARK_BYTES)]
    if not content.startswith(_MARK_BYTES):
        return Signed.UNBOUND
    layout = plan.layout
    expected = layout if layout is None or isinstance(layout, str) else layout(fields)
    return Signed.BOUND if expected == fields.get(BINDING, "") else Signed.NOT


def _content(plan: "_SigningPlan", fields: Mapping[str, str]) -> bytes:
    return "".join(plan.values(fields)).encode("utf-8", "replace")


def _digest(secret: bytes, content: bytes, body: bytes) -> bytes:
    inner, outer = _keyed(secret)
    signing, sealing = inner.copy(), outer.copy()
    signing.update(content)
    signing.update(body)
    sealing.update(signing.digest())
    return binascii.b2a_base64(sealing.digest(), newline=False)


_Picking: TypeAlias = Callable[[Mapping[str, str]], tuple[str, ...]]


class _SigningPlan(NamedTuple):
    """How requests of one code with the same keys are signed; a client has few such kinds."""

    values: _Picking
    """Picks the signed values in order."""
    layout: Callable[[Mapping[str, str]], str] | str | None
    """What the binding of a request has to be; None if it would be ambiguous."""


def _plan_of(code: int, fields: Mapping[str, str]) -> _SigningPlan:
    """Return how a request is signed, remembered unless its keys are longer than any client's.

    Any client can send any keys: the cache must stay small.
    """
    keys = tuple(fields)
    size = len(keys) + len("".join(keys))
    return (_plan if size <= _REMEMBERED_KEYS else _plan.__wrapped__)(code, keys)


@lru_cache(maxsize=1024)
def _plan(code: int, keys: tuple[str, ...]) -> _SigningPlan:
    ordered = java_sorted([key for key in keys if key != SIGNATURE])
    return _SigningPlan(
        _picking(ordered), _layout(code, [key for key in ordered if key != BINDING])
    )


def _layout(code: int, keys: list[str]) -> Callable[[Mapping[str, str]], str] | str | None:
    """Return the code and the keys, and what adds the length of each value.

    No key holds a separator and none sorts before `BINDING`, so that no layout is the beginning
    of another one followed by values. Sends go without the lengths, which would cost a tenth of
    them.
    """
    if any(key < BINDING or not _RESERVED.isdisjoint(key) for key in keys):
        return None
    if code in SENDS:
        return f"{_MARK}{code};{','.join(keys)};"
    pattern = ",".join(key.replace("%", "%%") + "=%d" for key in keys)
    text, pick = f"{_MARK}{code};{pattern};", _picking(keys)
    return lambda fields: text % tuple(map(len, pick(fields)))


def _picking(keys: list[str]) -> _Picking:
    if len(keys) < 2:  # `itemgetter` would return a value instead of values
        return lambda fields: tuple([fields[key] for key in keys])
    return itemgetter(*keys)


@lru_cache(maxsize=1024)
def _keyed(secret: bytes) -> "tuple[hashlib._Hash, hashlib._Hash]":
    """Start the two hashes of an HMAC (RFC 2104); continuing from copies halves its cost."""
    if len(secret) > _BLOCK:
        secret = _sha1(secret).digest()
    padded = secret.ljust(_BLOCK, b"\0")
    return _sha1(padded.translate(_INNER)), _sha1(padded.translate(_OUTER))
