"""A device in virtual time: what a broker gives its flusher to do takes as long as it is told to.

With a thread, virtual time would run on while the device works: minutes would pass during a sync,
more or fewer of them by the speed of the machine.
"""

import asyncio
from collections.abc import Callable

from pocketmq.store.flusher import Flusher, Outcome

LATENCY = 0.002
"""Virtual seconds from the submission of a job to its outcome."""


class VirtualFlusher(Flusher):
    """Does jobs at once, on the loop's thread; whoever asked hears of it a little later."""

    def submit(self, job: Callable[[], None], outcome: Outcome) -> None:
        call_back, self._call_back = self._call_back, None
        if call_back is None:  # closed
            super().submit(job, outcome)
            return
        super().submit(job, lambda error: self._finished.append((outcome, error)))
        self._call_back = call_back
        asyncio.get_running_loop().call_later(LATENCY, self._report)
