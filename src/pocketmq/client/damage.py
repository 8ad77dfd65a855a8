"""What readers of queues do about a damaged record: pull it again, then skip it.

One rule for all consumers and tools. A record may have been damaged on its way, so it is pulled
`TRIES` times. From the second time on it is pulled alone: where its lengths make no sense, only the
broker's answer gives the next offset. Pulls nothing itself.
"""

import logging

from pocketmq.errors import MessagesCutShort
from pocketmq.model import MessageQueue, OnDamage

logger = logging.getLogger("pocketmq.client")

TRIES = 3


class Suspicion:
    """The damaged record in front of one queue, if there is any."""

    __slots__ = ("_offset", "_tries")

    def __init__(self) -> None:
        self._offset = -1
        self._tries = 0

    @property
    def alone(self) -> bool:
        """Whether the next pull should ask for one message only."""
        return self._tries > 0

    def clear(self) -> None:
        """Forget it: the front of the queue was read."""
        self._tries = 0

    def next_offset(
        self,
        queue: MessageQueue,
        asked: int,
        behind: int,
        error: MessagesCutShort,
        on_damage: OnDamage = OnDamage.SKIP,
    ) -> int:
        """Return where to pull next after an answer whose first record is damaged.

        `asked` is the offset that was pulled, `behind` what the broker's answer gave as the next.
        The record is skipped after `TRIES` pulls; with `OnDamage.STOP`, `error` is raised
        instead, then and at each further pull.
        """
        if asked != self._offset:
            self._offset, self._tries = asked, 0
        self._tries += 1
        if self._tries < TRIES:
            return asked
        # Pulled alone, it is what lies right before the next one; a filter may have led to it.
        at = max(asked, behind - 1)
        if on_damage is OnDamage.STOP:
            if self._tries == TRIES:
                _tell("stops its queue", queue, at, error.reason)
            raise error
        self._tries = 0
        _tell("skipped", queue, at, error.reason)
        return max(asked + 1, behind)


def tell_skipped(queue: MessageQueue, offset: int, reason: str) -> None:
    """Log that a damaged message does not reach the application."""
    _tell("skipped", queue, offset, reason)


def tell_left_out(topic: str, broker: str, reason: str) -> None:
    """Log that an answer holds a damaged message whose offset is not known."""
    logger.error(
        'damaged message skipped: topic=%s broker=%s error="%s"; later messages of the same '
        "response may also be skipped", topic, broker, reason,
    )  # fmt: skip


def _tell(outcome: str, queue: MessageQueue, offset: int, reason: str) -> None:
    logger.error(
        'damaged message %s: topic=%s queue=%s:%d offset=%d error="%s"',
        outcome, queue.topic, queue.broker_name, queue.queue_id, offset, reason,
    )  # fmt: skip
