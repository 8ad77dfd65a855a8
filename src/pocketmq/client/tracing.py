"""Trace records: collected, packed into messages, sent in the background.

Tracing never delays what it traces: records beyond the capacity, or which no broker stores, are
dropped and counted. Belongs to one event loop. Independent of producers and consumers; the function
that sends is passed in.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError
from pocketmq.model import Message
from pocketmq.protocol.trace_text import Traced, encode_traced, traced_keys

logger = logging.getLogger("pocketmq.client")

SendTrace: TypeAlias = Callable[[Message], Awaitable[object]]

MOST_WAITING = 16_384
"""Records; Java keeps 2048 calls, each of which may have many."""
SEND_FROM = 20
INTERVAL = 5.0
"""Seconds that fewer records than `SEND_FROM` wait for more."""
LARGEST = 128_000
"""Bytes of one message, as in Java."""
_MOST_KEY_BYTES = 16_384  # all properties of a message have 32767
_LOG_EVERY = 60.0


class Tracer:
    """Sends traces to a topic."""

    def __init__(self, topic: str, send: SendTrace, tasks: Tasks) -> None:
        self.topic = topic
        self.dropped = 0
        """Records that were not sent."""
        self._send = send
        self._tasks = tasks
        self._waiting: deque[Traced] = deque()
        self._ready = asyncio.Event()  # set by enough records, by the timer, or by `close`
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._closed = False
        self._logged_at: float | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def traces(self, topic: str) -> bool:
        """Return whether messages of a topic are traced: those of the trace topic are not."""
        return not topic.startswith(self.topic)

    def add(self, *events: Traced) -> None:
        """Queue records to send them soon."""
        waiting = self._waiting
        room = 0 if self._closed else MOST_WAITING - len(waiting)
        if len(events) > room:
            self._lose(len(events) - max(0, room), "too many are waiting")
            events = events[: max(0, room)]
        if not events:
            return
        waiting.extend(events)
        if self._sending is None:
            self._sending = self._tasks.spawn(self._work(), f"traces to {self.topic}")
        if len(waiting) >= SEND_FROM:
            self._ready.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._ready.set)

    async def close(self, timeout: float = INTERVAL) -> None:  # noqa: ASYNC109 - not an error
        """Send waiting records, for at most `timeout` seconds; the rest is dropped."""
        self._closed = True
        self._ready.set()
        task = self._sending
        if task is not None:
            await asyncio.wait({task}, timeout=timeout)
            task.cancel()
            await asyncio.wait({task})
        self._stop_timer()
        if self._waiting:
            self._lose(len(self._waiting), "the client was closed")
            self._waiting.clear()

    async def _work(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            self._stop_timer()
            while self._waiting:
                await self._send_some()
            if self._closed:
                return

    async def _send_some(self) -> None:
        body, keys, count = pack(self._waiting)
        try:
            await self._send(Message(self.topic, body, keys=keys))
        except MQError as error:
            self._lose(count, str(error))
        except asyncio.CancelledError:
            self._lose(count, "the client was closed")
            raise

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _lose(self, count: int, why: str) -> None:
        self.dropped += count
        now = asyncio.get_running_loop().time()
        if self._logged_at is None or now - self._logged_at >= _LOG_EVERY:
            self._logged_at = now
            logger.warning(
                "trace records dropped: topic=%s total=%d error=%s", self.topic, self.dropped, why
            )


def pack(waiting: deque[Traced]) -> tuple[bytes, list[str], int]:
    """Take as many records as one message holds, at least one; return body, keys, their number.

    The message can be found by the ids and keys of all its records. A record with more keys than
    fit can be found by its first key only, which is the message's id.
    """
    pieces: list[bytes] = []
    keys: dict[str, None] = {}
    size = key_size = 0
    while waiting:
        event = waiting[0]
        piece = encode_traced(event).encode("utf-8", "replace")
        own = [key for key in traced_keys(event) if key not in keys]
        own_size = len(" ".join(own).encode("utf-8", "replace")) + 1
        if own_size > _MOST_KEY_BYTES:
            own, own_size = own[:1], min(own_size, 4 * len(own[0]))
        if pieces and (size + len(piece) > LARGEST or key_size + own_size > _MOST_KEY_BYTES):
            break
        waiting.popleft()
        pieces.append(piece)
        keys.update(dict.fromkeys(own))
        size += len(piece)
        key_size += own_size
    return b"".join(pieces), list(keys), len(pieces)
