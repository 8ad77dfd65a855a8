"""Sends that a thread begins and does not wait for: handed to the loop, many at a time.

Owns the way there and back. What a send is, and what is done about failures, is `Sending`'s.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import Future, InvalidStateError
from typing import Any

from pocketmq.blocking.gate import Gate
from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.blocking.process_loop import callback_threads
from pocketmq.errors import ClientClosed
from pocketmq.model.receipt import SendReceipt

Work = Coroutine[Any, Any, SendReceipt]


class Submitting:
    """Begins sends on the loop. Any thread may submit."""

    def __init__(self, thread: LoopThread, gate: Gate) -> None:
        self.gate = gate
        self._thread = thread
        self._handed: deque[tuple[Work, int, Future[SendReceipt]]] = deque()
        self._woken = False

    def submit(self, work: Work, size: int) -> Future[SendReceipt]:
        """Have a send begun that has entered the gate with `size`."""
        future = ReceiptFuture()
        self._handed.append((work, size, future))
        if not self._woken:  # the loop takes all that is handed over until it comes round
            self._woken = True
            self._thread.loop.call_soon_threadsafe(self._begin)
        return future

    def _begin(self) -> None:
        self._woken = False
        loop = self._thread.loop
        handed = self._handed
        while handed:
            work, size, future = handed.popleft()
            task = loop.create_task(work)
            task.add_done_callback(_Ending(self.gate, size, future))


class _Ending:
    """What is done when a send has ended."""

    __slots__ = ("_future", "_gate", "_size")

    def __init__(self, gate: Gate, size: int, future: Future[SendReceipt]) -> None:
        self._gate = gate
        self._size = size
        self._future = future

    def __call__(self, task: asyncio.Task[SendReceipt]) -> None:
        self._gate.leave(self._size)
        try:
            if task.cancelled():
                self._future.set_exception(ClientClosed("producer"))
            elif (error := task.exception()) is not None:
                self._future.set_exception(error)
            else:
                self._future.set_result(task.result())
        except InvalidStateError:  # whoever cancelled it does not want to know
            pass


class ReceiptFuture(Future[SendReceipt]):
    """The receipt to come. Callbacks run in threads of their own, where they may block.

    Cancelling it does not take the message back.
    """

    def _invoke_callbacks(self) -> None:
        if self._done_callbacks:  # type: ignore[attr-defined]
            callback_threads().submit(super()._invoke_callbacks)  # type: ignore[misc]
