"""Answers that wait until their messages are synced to the device (group commit).

While one sync runs, the answers of later batches gather for the next, so the slower the device,
the larger the groups. If a sync fails or takes too long, senders get Java's answer for it,
FLUSH_DISK_TIMEOUT: the message is stored, but may not survive a power cut.

Which answers wait is decided in `log_writer` (`_release`); a message with WAIT=false does not
(`sending.requests`).
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TypeAlias

from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core.answers import all_with_code
from pocketmq.broker.core.write_batch import Answers
from pocketmq.errors import ResponseCode
from pocketmq.store import MessageStore

logger = logging.getLogger("pocketmq.broker")


Send: TypeAlias = Callable[[Answers, float, int], None]
"""Sends answers, all with one code, to requests of one event-loop iteration."""


def release(answers: Answers) -> None:
    """Send answers, each connection's in one piece."""
    for connection, entries in answers.items():
        if len(entries) == 1:
            connection.write(entries[0][1])
        else:
            connection.write(*[frame for _, frame in entries])
        connection.flush()


class _SyncGroup:
    """Answers that one sync releases."""

    __slots__ = ("answers", "messages", "size", "timer")

    def __init__(self) -> None:
        self.answers: list[tuple[Answers, float]] = []  # with when their requests came
        self.messages = 0
        self.size = 0
        self.timer: asyncio.TimerHandle | None = None


class SyncedAnswers:
    """Answers held back until a sync. Belongs to the broker's loop."""

    def __init__(self, store: MessageStore, send: Send) -> None:
        self._store = store
        self._send = send
        self._next: _SyncGroup | None = None
        self._syncing: _SyncGroup | None = None
        self._idle: asyncio.Future[None] | None = None
        self.messages = 0
        """Messages whose answers wait."""
        self.size = 0
        """Their bytes."""

    def hold(
        self, answers: Answers, messages: int, size: int, timeout: float, began: float
    ) -> None:
        """Send answers after a sync that begins now or later, at the latest after `timeout`."""
        group = self._next
        if group is None:
            group = self._next = _SyncGroup()
            group.timer = asyncio.get_running_loop().call_later(timeout, self._late, group)
        group.answers.append((answers, began))
        group.messages += messages
        group.size += size
        self.messages += messages
        self.size += size
        if self._syncing is None:
            self._start()

    def exceeds(self, config: BrokerConfig) -> bool:
        """Return whether more waits than a broker should promise to its senders."""
        return self.messages > config.max_unsynced_messages or self.size > config.max_unsynced_bytes

    async def drained(self) -> None:
        """Wait until no answer waits; no longer than senders would."""
        while self._next is not None or self._syncing is not None:
            if self._idle is None:
                self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def _start(self) -> None:
        group, self._next = self._next, None
        if group is not None:
            self._syncing = group
            self._store.request_sync(self._synced)

    def _synced(self, error: Exception | None) -> None:
        group, self._syncing = self._syncing, None
        self._start()  # before the answers: the device shall not idle while they are sent
        if error is not None:
            logger.error(
                "sync of the commit log failed: error=%s; responding FLUSH_DISK_TIMEOUT", error
            )
        if group is not None:
            self._let_go(group, failed=error is not None)

    def _late(self, group: _SyncGroup) -> None:
        logger.warning(
            "sync of the commit log is slow: messages=%d; responding FLUSH_DISK_TIMEOUT",
            group.messages,
        )
        self._let_go(group, failed=True)

    def _let_go(self, group: _SyncGroup, *, failed: bool) -> None:
        """Answer once; a sync that ends after the timeout finds no answers left."""
        if group.timer is not None:
            group.timer.cancel()
            group.timer = None
        if self._idle is not None and self._next is None and self._syncing is None:
            self._idle.set_result(None)
            self._idle = None
        # Counts and answers are taken once: both the timeout and the sync come here.
        self.messages -= group.messages
        self.size -= group.size
        group.messages = group.size = 0
        held, group.answers = group.answers, []
        for answers, began in held:
            if failed:
                self._send(_as_late(answers), began, ResponseCode.FLUSH_DISK_TIMEOUT)
            else:
                self._send(answers, began, ResponseCode.SUCCESS)


def _as_late(answers: Answers) -> Answers:
    code = ResponseCode.FLUSH_DISK_TIMEOUT
    return {
        connection: [(request, all_with_code(frame, code)) for request, frame in entries]
        for connection, entries in answers.items()
    }
