"""The short ways of pops and acks that come alone: one reading of the header, no command.

Usual is what nearly all are: pops of everything that there is, not in order, that find something;
acks of messages that are in flight. The rules are those of `requests`; what is left to these is
carried out again from the start, with the same outcome.
"""

import msgspec

from pocketmq.broker.core.answers import done
from pocketmq.broker.pop.answers import pop_answer
from pocketmq.broker.pop.pops import Pops
from pocketmq.broker.pop.requests import carried, settle_one, settle_several
from pocketmq.broker.pop.sources import LATE_MS
from pocketmq.broker.pulling.selection import EVERYTHING
from pocketmq.broker.state import BrokerState, ShortWay
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.header import Int32
from pocketmq.protocol.header_json import REFUSALS
from pocketmq.protocol.requests import pop as rows

_JOINED = 32 * 1024
"""Bytes of messages that are copied into one piece; larger ones leave as they lie in the log."""


class _Request(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The fields of any header."""

    code: Int32
    opaque: Int32
    flag: Int32 = 0


class _Pop(_Request, frozen=True, gc=False, kw_only=True):
    fields: rows.PopRequest = msgspec.field(name="extFields")


class _Ack(_Request, frozen=True, gc=False, kw_only=True):
    fields: rows.AckRequest = msgspec.field(name="extFields")


_read_pop = msgspec.json.Decoder(_Pop, strict=False).decode
_read_ack = msgspec.json.Decoder(_Ack, strict=False).decode
_read_acks = msgspec.json.Decoder(rows.BatchAcks).decode
_read_any = msgspec.json.Decoder(_Request, strict=False).decode


def pop(state: BrokerState, connection: Connection, header: bytes, _: bytes) -> bool:
    """Take messages, if there are any."""
    try:
        request = _read_pop(header)
    except REFUSALS:
        return False
    wanted, pops = request.fields, state.pops
    now_ms = state.batch.now_ms
    if (
        request.flag
        or request.code != RequestCode.POP_MESSAGE
        or wanted.order
        or now_ms - (wanted.born_time or now_ms) - wanted.poll_time > LATE_MS
        or carried(state, wanted) is not EVERYTHING
        or not isinstance(pops, Pops)
        or connection.pressed
    ):
        return False
    source = pops.sources.find(connection, wanted)
    taking, batch = pops.find(source, wanted, EVERYTHING)
    if not batch.count:
        return False
    pieces = pop_answer(request.opaque, wanted, now_ms, batch)
    if batch.size < _JOINED:  # first: the client continues while the rest is done here
        connection.write_now(b"".join(pieces))
    else:
        connection.write(*pieces)
        connection.flush()
    pops.note(taking, batch)
    state.writer.seal_alone()  # if that fails the messages are delivered again
    return True


def acknowledge(state: BrokerState, connection: Connection, header: bytes, _: bytes) -> bool:
    """Acknowledge one message."""
    try:
        request = _read_ack(header)
    except REFUSALS:
        return False
    if request.flag or request.code != RequestCode.ACK_MESSAGE:
        return False
    settle_one(state, connection, request.fields, later=True)
    _answer(state, connection, request)
    if isinstance(state.pops, Pops):
        state.pops.table.all_in_flight.finish()
    return True


def acknowledge_several(
    state: BrokerState, connection: Connection, header: bytes, body: bytes
) -> bool:
    """Acknowledge messages of several pops."""
    try:
        request, acks = _read_any(header), _read_acks(body).acks
    except REFUSALS:
        return False
    if (
        request.flag
        or request.code != RequestCode.BATCH_ACK_MESSAGE
        or not acks
        or not all(map(_fits, acks))
    ):
        return False
    settle_several(state, connection, acks)
    _answer(state, connection, request)
    return True


def _fits(ack: rows.BatchAck) -> bool:
    """Return whether all numbers have 64 bits; others are refused."""
    figures = (
        ack.start_offset, ack.queue_id, ack.revive_queue_id, ack.pop_time, ack.invisible_time,
    )  # fmt: skip
    return min(figures) >= -(2**63) and max(figures) < 2**63


def _answer(state: BrokerState, connection: Connection, request: _Request) -> None:
    """Write what was settled, then answer; the client continues while the rest is done here."""
    if not state.batch.notes or state.writer.seal_alone():
        connection.write_now(done(request.opaque))
    else:
        refused = Command.request(request.code, request.opaque)
        state.writer.refuse_alone(connection, refused)


SHORT_WAYS: dict[bytes, ShortWay] = {
    b"%d" % RequestCode.POP_MESSAGE: pop,
    b"%d" % RequestCode.ACK_MESSAGE: acknowledge,
    b"%d" % RequestCode.BATCH_ACK_MESSAGE: acknowledge_several,
}
