"""Every request in one table: who serves it, and what its header and body are, both ways."""

import msgspec

from pocketmq.protocol.bodies.by_code import REQUEST_BODIES, RESPONSE_BODIES, BodyForm
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.header import Header
from pocketmq.protocol.requests.by_code import (
    REQUEST_HEADERS,
    RESPONSE_HEADERS,
    SERVED_BY,
    Peer,
)


class RequestKind(msgspec.Struct, frozen=True):
    """One request code with everything that travels under it."""

    code: RequestCode
    served_by: frozenset[Peer]
    request_header: type[Header] | None
    request_body: type | BodyForm
    response_header: type[Header] | None
    response_body: type | BodyForm


def request_kind(code: int) -> RequestKind:
    """Look a request code up; raises `UnknownRequestCode` for one RocketMQ does not have."""
    known = RequestCode.of(code)
    return RequestKind(
        known,
        SERVED_BY[known],
        REQUEST_HEADERS[known],
        REQUEST_BODIES[known],
        RESPONSE_HEADERS[known],
        RESPONSE_BODIES[known],
    )
