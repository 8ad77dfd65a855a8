"""The frames of usual ends of transactions, from templates: only places, ids and the number differ.

Pure functions over values; both ways, this one and that of any request, write the same.
"""

import struct
from collections.abc import Callable
from functools import lru_cache, partial

from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.header_json import REQUEST_TAIL
from pocketmq.protocol.requests.sending import EndTransactionRequest

_PREFIX = struct.Struct(">II").pack
_PLACES = b'"tranStateTableOffset":"0","commitLogOffset":"0"'
_IDS = b'"msgId":"","transactionId":""'

Template = tuple[bytes, bytes, bytes]
"""What stands before the places, between them and the ids, and between these and the number."""


def end_frame(request: EndTransactionRequest) -> Callable[[int], bytes] | None:
    """Return what makes the frame of a one-way request with a number; None if it is unusual."""
    ids = request.msg_id + (request.transaction_id or "")
    if (
        not request.msg_id
        or not request.transaction_id
        or not (ids.isascii() and ids.isalnum())
        or request.from_transaction_check
    ):
        return None
    topic, group, broker = request.topic, request.producer_group, request.bname
    return partial(_frame, _template(topic, group, broker, request.commit_or_rollback), request)


@lru_cache(maxsize=256)
def _template(topic: str | None, group: str, broker: str | None, state: int) -> Template:
    like = EndTransactionRequest(
        topic=topic,
        producer_group=group,
        tran_state_table_offset=0,
        commit_log_offset=0,
        commit_or_rollback=state,
        msg_id="",
        transaction_id="",
        bname=broker,
    )
    whole = Command.request(RequestCode.END_TRANSACTION, 0, like, oneway=True).encode()[8:]
    head, _, rest = whole.partition(_PLACES)
    middle, _, rest = rest.partition(_IDS)
    return head, middle, rest.removesuffix(b"0" + REQUEST_TAIL)


def _frame(template: Template, request: EndTransactionRequest, opaque: int) -> bytes:
    head, middle, tail = template
    header = (
        b'%b"tranStateTableOffset":"%d","commitLogOffset":"%d"%b"msgId":"%b","transactionId":"%b"'
        b"%b%d%b"
    ) % (
        head,
        request.tran_state_table_offset,
        request.commit_log_offset,
        middle,
        request.msg_id.encode(),
        (request.transaction_id or "").encode(),
        tail,
        opaque,
        REQUEST_TAIL,
    )
    size = len(header)
    return _PREFIX(4 + size, size) + header
