"""What takes requests straight from a read: plain sends, and usual requests that come alone.

A request that comes alone is what a client sends that waits for each response: a pop, an ack, the
end of a transaction. Its handler reads the header itself, and what it changes is written at once.
Whatever is unusual is left to the dispatcher: access control, metrics, static topics, a broker that
syncs, several requests in one read or of several clients.
"""

from pocketmq.broker.sending.lane import PlainSends
from pocketmq.broker.state import BrokerState
from pocketmq.net import Connection
from pocketmq.protocol import RequestCode
from pocketmq.protocol.frame import PREFIX_SIZE, unpack_prefix

_CODE_AT = PREFIX_SIZE + len(b'{"code":')
_LARGEST = 4096
"""Bytes of a header at most."""
ALONE = tuple(
    b'{"code":%d,' % code
    for code in (
        RequestCode.POP_MESSAGE,
        RequestCode.ACK_MESSAGE,
        RequestCode.BATCH_ACK_MESSAGE,
        RequestCode.END_TRANSACTION,
    )
)
"""How headers of requests begin that may have a short way."""


class Lanes:
    """The lanes of one broker. Belongs to its loop."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        sends = PlainSends(state)
        self._sends = sends if sends.available else None
        self.starts = ALONE if self._sends is None else (*ALONE, *self._sends.starts)

    def take(self, connection: Connection, data: bytes, start: int) -> int:
        """Carry out requests at a position of a read; return where they end."""
        if data.startswith(ALONE, start + PREFIX_SIZE):
            return len(data) if self._take_alone(connection, data, start) else start
        return start if self._sends is None else self._sends.take(connection, data, start)

    def end(self, connection: Connection) -> None:
        """Write what was taken."""
        if self._sends is not None:
            self._sends.end(connection)

    def _take_alone(self, connection: Connection, data: bytes, start: int) -> bool:
        """Carry out the request that is all of a read; False if nothing was done."""
        state = self._state
        length, header_size = unpack_prefix(data, start)  # of JSON: else it would be larger
        body_at = start + PREFIX_SIZE + header_size
        code_at = start + _CODE_AT
        handler = state.short_ways.get(data[code_at : data.index(b",", code_at)])
        if (
            handler is None
            or start + 4 + length != len(data)
            or header_size > _LARGEST
            or body_at > len(data)
            or len(data) - body_at > state.config.max_request_body_size
            or state.gate is not None
            or state.mappings.entries
            or not state.writer.takes_alone(connection)
        ):
            return False
        state.batch.now_ms = state.clock.now_ms()
        try:
            return handler(state, connection, data[start + PREFIX_SIZE : body_at], data[body_at:])
        except Exception:  # noqa: BLE001 - the dispatcher meets it again, and answers or logs it
            return False
