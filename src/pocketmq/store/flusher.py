"""A thread for jobs that wait for the device (sync, SQLite), so that the owner's loop does not.

Jobs run one after another on the thread; their outcomes are reported on the owner's thread: through
`call_back`, usually a loop's `call_soon_threadsafe`, or while the owner closes the flusher.
Without a `call_back` there is no thread: jobs run at once, in the caller.

One thread, not a pool: a job relies on all earlier ones having ended, e.g. a checkpoint on the
syncs before it, and the removal of a file on the checkpoint that no longer needs it.
"""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable

log = logging.getLogger("pocketmq.store")

Outcome = Callable[[Exception | None], None]
"""Called with None when the job succeeded, else with what it raised."""

CallBack = Callable[[Callable[[], None]], object]
"""Runs a function soon on the owner's thread."""


class Flusher:
    """Runs jobs in order, off the owner's thread. Its methods belong to the owner."""

    def __init__(self, call_back: CallBack | None = None) -> None:
        self._call_back = call_back
        self._jobs: queue.SimpleQueue[tuple[Callable[[], None], Outcome] | None] = (
            queue.SimpleQueue()
        )
        self._finished: deque[tuple[Outcome, Exception | None]] = deque()
        self._unreported = 0
        self._thread: threading.Thread | None = None

    @property
    def idle(self) -> bool:
        """Whether no job runs or waits, and the owner knows the outcomes of all."""
        return not self._unreported

    def submit(self, job: Callable[[], None], outcome: Outcome) -> None:
        """Run a job soon; `outcome` is called on the owner's thread, in the order of the jobs."""
        if self._call_back is None:
            outcome(_attempt(job))
            return
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(self._call_back,), name="pocketmq-flusher", daemon=True
            )
            self._thread.start()
        self._unreported += 1
        self._jobs.put((job, outcome))

    def wait(self) -> Exception | None:
        """Wait until all jobs have ended; return the first error that is not reported yet."""
        if self._unreported:
            ended = threading.Event()
            self.submit(ended.set, lambda _: None)
            ended.wait()
        return next((error for _, error in self._finished if error is not None), None)

    def close(self) -> None:
        """Finish what was submitted, report its outcomes, and end the thread.

        Whatever is submitted afterwards runs at once, in the caller.
        """
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
        self._call_back = None
        self._report()

    def _run(self, call_back: CallBack) -> None:
        while (item := self._jobs.get()) is not None:
            job, outcome = item
            self._finished.append((outcome, _attempt(job)))
            try:
                call_back(self._report)
            except RuntimeError:  # the owner's loop is closed; `close` still reports
                log.debug("a flush ended after its owner's loop was closed")

    def _report(self) -> None:
        while self._finished:
            outcome, error = self._finished.popleft()
            self._unreported -= 1
            outcome(error)


def _attempt(job: Callable[[], None]) -> Exception | None:
    try:
        job()
    except Exception as error:  # noqa: BLE001 - the thread's edge: handed over, never lost
        return error
    return None
