"""The sweep for messages a concurrent handler does not finish.

A stuck handler would hold its queue's offset back for ever. So every `consumeTimeout` the first
messages that are overdue are sent back to the broker, to be delivered again later. Orderly
consumers are not swept.
"""

from typing import Generic

from pocketmq.balance.consumer.process_queue import M, ProcessQueue

SWEEP_LIMIT = 16
SWEEP_DELAY_LEVEL = 3


class ExpirySweep(Generic[M]):
    """One sweep over one queue: send `next()` back, report `sent`, until `next()` gives nothing."""

    def __init__(self, queue: ProcessQueue[M], timeout: float) -> None:
        self._queue = queue
        self._timeout = timeout
        self._tries = min(len(queue), SWEEP_LIMIT)

    def next(self, now: float) -> M | None:
        """Give the message to send back at level 3 now; a failed one comes again."""
        if self._tries == 0:
            return None
        self._tries -= 1
        return self._queue.first_if_expired(self._timeout, now)

    def sent(self, message: M, now: float) -> None:
        """Take a message out that was sent back, unless its handler finished it meanwhile.

        The offset is committed with the next result, not by the sweep.
        """
        queue = self._queue
        if len(queue) and queue.first_offset() == message.queue_offset:
            queue.remove((message,), now)
