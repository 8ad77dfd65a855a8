"""The lane for plain sends: a burst of them, or a batch, goes from a read to the store in one call.

Messages that go elsewhere first take it, too: to the queue of a delay level, to half messages.

Owns when the lane may be used and how its outcome enters the store, the batch and the counters;
what a plain send is, and its record and answer, is in the core. Without the core there is no lane.
Access control is not: each request passes the broker's gate before anything is stored. Whatever the
lane leaves is handled request by request, with the same outcome.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from pocketmq import native
from pocketmq.broker.access.gate import BrokerGate
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core.write_batch import SendBurst
from pocketmq.broker.metrics.measures import Measures
from pocketmq.broker.state import BrokerState
from pocketmq.broker.writing.drafts import BORN_HOST, SendTarget, born_host
from pocketmq.errors import StoreError
from pocketmq.model import DataVersion
from pocketmq.model.names import HALF_TOPIC, SCHEDULE_TOPIC
from pocketmq.net import Connection
from pocketmq.protocol import RequestCode
from pocketmq.protocol.command_reader import cut_commands
from pocketmq.protocol.frame import PREFIX_SIZE, unpack_prefix
from pocketmq.protocol.hosts import V4_SIZE
from pocketmq.store import QueueIndex
from pocketmq.store.appending import Run

_SEND, _SEND_V2 = int(RequestCode.SEND_MESSAGE), int(RequestCode.SEND_MESSAGE_V2)
_SEND_BATCH = int(RequestCode.SEND_BATCH_MESSAGE)
_BATCH = b'{"code":320,'
_PLAIN = (b'{"code":310,', b'{"code":10,', _BATCH)
"""How headers of plain sends and batches begin; for others the core is not even asked."""

Taken: TypeAlias = tuple[int, bytes, bytes, list[Run], int, int, int]
"""Where the burst ends in the read, records, answers, what each queue gets, answers by code, and
when the first delayed message is due, 0 without one."""


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


class SendsLane:
    """The lane of one broker. Belongs to its loop."""

    starts: tuple[bytes, ...] = _PLAIN

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
        """Carry out plain sends, or a batch, at a position of a read; return where they end."""
        state = self._state
        writer, log = state.writer, state.store.log
        host = connection.context.get(BORN_HOST) or born_host(connection)
        alone = writer.takes_alone(connection)
        if log.failed is not None or len(host) != V4_SIZE or (not alone and writer.overloaded):
            return start
        version = state.topics.version
        if self._version is not version or self._config is not state.config:
            self._lane = self._make()
            self._version, self._config = version, state.config
        assert self._lane is not None
        now_ms = state.clock.now_ms()
        more = connection.limits.frame, (log.tail, log.limit, now_ms), host, state.targets, version
        taken = self._lane.take(data, start, *more)
        if taken is not None and state.gate is not None:
            stop = _admitted(state.gate, connection, data, start, taken[0])
            if stop < taken[0]:
                taken = self._lane.take(data[:stop], start, *more)
        if taken is None:
            return start
        end, records, answers, runs, _, _, due_ms = taken
        state.batch.now_ms = now_ms
        try:
            state.store.append_packed(records, runs)
        except StoreError:
            return start  # which of them can be stored is found out one by one
        if due_ms and state.delayed is not None:
            state.delayed.wake_at(due_ms, now_ms)
        times = 1 if data.startswith(_BATCH, start + PREFIX_SIZE) else None
        if alone and end == len(data):
            writer.write_alone(connection, runs, answers, now_ms, times)
        else:
            self._collect(connection, taken, times)
        return end

    def _collect(self, connection: Connection, taken: Taken, times: int | None) -> None:
        """Add what was appended to the batch of this event-loop iteration."""
        state, batch = self._state, self._state.batch
        _, _, answers, runs, old, new, _ = taken
        for queue, _, count, size, *_ in runs:
            batch.appended(queue, count, size, times=times or count)
        if state.measures is not None:
            self._measure(state.measures, runs, whole=times is not None)
        if answers:
            by_code = {_SEND: old, _SEND_V2: new} if times is None else {_SEND_BATCH: 1}
            asked = {code: count for code, count in by_code.items() if count}
            batch.answer_stored(connection, SendBurst(asked), answers)

    def _make(self) -> _NativeLane:
        state, store = self._state, self._state.store
        assert native.core is not None
        delays_ms = () if state.delayed is None else state.delayed.delays_ms
        halves = state.halves is not None and not state.config.reject_transaction_message

        def queue_elsewhere(level: int) -> QueueIndex | None:
            if level:
                return store.queue(SCHEDULE_TOPIC, level - 1)
            return store.queue(HALF_TOPIC, 0)

        lane: _NativeLane = native.core.SendLane(
            state.stamp.encode(),
            state.send_answers.store_host,
            state.send_answers.pieces,
            state.config.max_message_size,
            (delays_ms, halves, queue_elsewhere),
        )
        return lane

    def _measure(self, measures: Measures, runs: Sequence[Run], *, whole: bool) -> None:
        """Count the sizes of messages; of a batch as a `whole`, their average."""
        batch = self._state.batch
        if not batch.began:
            batch.began = self._state.steady()
        for queue, _, count, size, _, _, sizes in runs:
            key = (queue.topic,)
            if whole:
                measures.size.add(key, size // count)
                continue
            for each in (sizes,) if isinstance(sizes, int) else memoryview(sizes).cast("I"):
                measures.size.add(key, each)


def _admitted(gate: BrokerGate, connection: Connection, data: bytes, start: int, end: int) -> int:
    """Return up to where the requests of a burst may pass; the one there is refused elsewhere.

    Gate and lane read the same bytes, and the lane takes no request whose fields could be read in
    two ways: a field that comes twice, a key or topic with escapes.
    """
    commands, _, _ = cut_commands(data[:end], start, connection.limits.frame)
    for request in commands:
        try:
            if gate.check(connection, request):
                connection.trust()
        except Exception:  # noqa: BLE001 - the dispatcher meets it again, and answers or logs it
            break
        length, _ = unpack_prefix(data, start)
        start += 4 + length
    return start
