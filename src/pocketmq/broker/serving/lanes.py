"""What takes requests straight from a read, without a command for each.

Plain sends, with ends of transactions among them, and pops and acks that come alone, as from a
client that waits for each response: their handlers read the header themselves. Whatever is unusual
is left to the dispatcher: for all but sends also access control, metrics and static topics, and for
what comes alone a broker that syncs, several requests in one read, or several clients at a time.
"""

from typing import Literal

from pocketmq.broker.sending.lane import SendsLane
from pocketmq.broker.state import BrokerState
from pocketmq.broker.transactions.requests import end_at_once
from pocketmq.errors import MQError, StoreError
from pocketmq.net import Connection
from pocketmq.protocol import RequestCode
from pocketmq.protocol.frame import PREFIX_SIZE, unpack_prefix

_CODE_AT = PREFIX_SIZE + len(b'{"code":')
_LARGEST = 4096
"""Bytes of a header at most."""
_ALONE = tuple(
    b'{"code":%d,' % code
    for code in (
        RequestCode.POP_MESSAGE,
        RequestCode.ACK_MESSAGE,
        RequestCode.BATCH_ACK_MESSAGE,
    )
)
"""How headers of requests begin that have a short way if they come alone."""
_END = b'{"code":%d,' % RequestCode.END_TRANSACTION


class Lanes:
    """The lanes of one broker. Belongs to its loop."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        sends = SendsLane(state)
        self._take_sends = sends.take
        self._plain = sends.starts if sends.available else ()
        self.starts = (*self._plain, *_ALONE, _END)

    def take(self, connection: Connection, data: bytes, start: int) -> int:
        """Carry out requests at a position of a read; return where they end."""
        plain, batch, size = self._plain, self._state.batch, len(data)
        if data.startswith(_ALONE, start + PREFIX_SIZE):
            if not self._take_alone(connection, data, start):
                return start
            start = size
        while start < size:
            if data.startswith(plain, start + PREFIX_SIZE):
                end = self._take_sends(connection, data, start)
            elif data.startswith(_END, start + PREFIX_SIZE):
                end = self._take_end(connection, data, start)
            else:
                return start
            if end == start:
                return start
            start = end
        if batch.messages:
            self.end(connection)
        return size

    def end(self, connection: Connection) -> None:
        """Write what was taken; what followed it in the read belongs to the same batch."""
        if self._state.batch.messages:
            self._state.writer.schedule(connection)

    def _take_alone(self, connection: Connection, data: bytes, start: int) -> bool:
        """Carry out the request that is all of a read; False if it is left."""
        state, code_at = self._state, start + _CODE_AT
        length, word = unpack_prefix(data, start)
        header_at = start + PREFIX_SIZE
        body_at, end = header_at + word, start + 4 + length
        handler = state.short_ways.get(data[code_at : data.index(b",", code_at)])
        if (
            handler is None
            or not body_at <= end == len(data)
            or body_at - header_at > _LARGEST
            or end - body_at > state.config.max_request_body_size
            or state.gate is not None
            or state.mappings.entries
            or not state.writer.takes_alone(connection)
        ):
            return False
        header, body = data[header_at:body_at], data[body_at:]
        if not (header.isascii() and body.isascii()):  # what is not read is not checked, either
            return False
        state.batch.now_ms = state.clock.now_ms()
        try:
            return handler(state, connection, header, body)
        except MQError as error:
            return self._left(error)

    def _take_end(self, connection: Connection, data: bytes, start: int) -> int:
        """Carry out the end of a transaction; return where it ends, `start` if it is left."""
        state = self._state
        length, word = unpack_prefix(data, start)
        header_at = start + PREFIX_SIZE
        body_at, end = header_at + word, start + 4 + length
        if (
            not body_at == end <= len(data)
            or body_at - header_at > _LARGEST
            or state.gate is not None
            or state.measures is not None
            or state.mappings.entries
        ):
            return start
        header = data[header_at:body_at]
        if not header.isascii():
            return start
        state.batch.now_ms = state.clock.now_ms()
        alone = end == len(data) and state.writer.takes_alone(connection)
        try:
            return end if end_at_once(state, connection, header, alone=alone) else start
        except MQError as error:
            self._left(error)
            return start

    def _left(self, error: MQError) -> Literal[False]:
        """Leave a request that is refused: the dispatcher answers or logs why."""
        if isinstance(error, StoreError):
            self._state.batch.check_dropped()
        return False
