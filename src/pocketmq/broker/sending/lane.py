"""The lane for plain sends: a burst of them goes from a read to the store in one native call.

Owns when the lane may be used and how its outcome enters the store, the batch and the counters;
what a plain send is, and its record and answer, is in the core. Without the core there is no lane.
Whatever it leaves is handled request by request, with the same outcome.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from pocketmq import native
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core.write_batch import SendBurst
from pocketmq.broker.metrics.measures import Measures
from pocketmq.broker.state import BrokerState
from pocketmq.broker.writing.drafts import SendTarget, born_host
from pocketmq.errors import StoreError
from pocketmq.model import DataVersion
from pocketmq.net import Connection
from pocketmq.protocol import RequestCode
from pocketmq.protocol.frame import PREFIX_SIZE
from pocketmq.protocol.hosts import V4_SIZE
from pocketmq.store.appending import Run

_SEND, _SEND_V2 = int(RequestCode.SEND_MESSAGE), int(RequestCode.SEND_MESSAGE_V2)
_PLAIN = (b'{"code":310,', b'{"code":10,')
"""How headers of plain sends begin; for others the core is not even asked."""

Taken: TypeAlias = tuple[int, bytes, bytes, list[Run], int, int]
"""Where the burst ends in the read, records, answers, what each queue gets, answers by code."""


class _NativeLane(Protocol):
    """`pocketmq_core.SendLane`."""

    def take(  # noqa: PLR0917 - a native function's arguments
        self,
        data: bytes,
        start: int,
        frame_limit: int,
        log: tuple[int, int, int],
        born_host: bytes,
        targets: dict[tuple[str, int], SendTarget],
        version: DataVersion,
        /,
    ) -> Taken | None:
        """Take the plain sends at a position of a read, for the log's end, limit and time."""


class PlainSends:
    """The lane of one broker. Belongs to its loop."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._lane: _NativeLane | None = None
        self._config: BrokerConfig | None = None  # what the lane was made for
        self._version: DataVersion | None = None

    @property
    def available(self) -> bool:
        """Whether this broker can have a lane: there is the core, and its address is IPv4."""
        return native.core is not None and len(self._state.send_answers.store_host) == V4_SIZE

    def take(self, connection: Connection, data: bytes, start: int) -> int:
        """Carry out the plain sends at a position of a read; return where they end."""
        if not data.startswith(_PLAIN, start + PREFIX_SIZE):
            return start
        state = self._state
        batch, log = state.batch, state.store.log
        host = born_host(connection)
        if (
            state.gate is not None
            or log.failed is not None
            or state.writer.overloaded
            or len(host) != V4_SIZE
        ):
            return start
        version = state.topics.version
        if self._version is not version or self._config is not state.config:
            self._lane = self._make()
            self._version, self._config = version, state.config
        assert self._lane is not None
        now_ms = state.clock.now_ms()
        taken = self._lane.take(
            data,
            start,
            connection.limits.frame,
            (log.tail, log.limit, now_ms),
            host,
            state.targets,
            version,
        )
        if taken is None:
            return start
        end, records, answers, runs, old, new = taken
        batch.now_ms = now_ms
        try:
            state.store.append_packed(records, runs)
        except StoreError:
            return start  # which of them can be stored is found out one by one
        for queue, _, count, size, *_ in runs:
            batch.appended(queue, count, size, times=count)
        if state.measures is not None:
            self._measure(state.measures, runs)
        if answers:
            by_code = {_SEND_V2: new} if new else {}
            if old:
                by_code[_SEND] = old
            batch.answer_stored(connection, SendBurst(by_code), answers)
        return end

    def end(self, connection: Connection) -> None:
        """Write what was taken; what followed it in the read belongs to the same batch."""
        if self._state.batch.messages:
            self._state.writer.schedule(connection)

    def _make(self) -> _NativeLane:
        state = self._state
        assert native.core is not None
        lane: _NativeLane = native.core.SendLane(
            state.stamp.encode(),
            state.send_answers.store_host,
            state.send_answers.pieces,
            state.config.max_message_size,
        )
        return lane

    def _measure(self, measures: Measures, runs: Sequence[Run]) -> None:
        batch = self._state.batch
        if not batch.began:
            batch.began = self._state.steady()
        for queue, _, _, _, _, _, sizes in runs:
            key = (queue.topic,)
            for size in (sizes,) if isinstance(sizes, int) else memoryview(sizes).cast("I"):
                measures.size.add(key, size)
