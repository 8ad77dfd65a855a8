"""Waiting until the process is told to stop: SIGINT or SIGTERM, or a call from another thread."""

import signal
import threading
from types import TracebackType
from typing import Any, NoReturn, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Remembers a request to stop.

    Inside `with`, on the main thread, the first signal is such a request, and raises
    KeyboardInterrupt where the thread happens to be. It puts the handlers from before back, so that
    a second one does what it always does.
    """

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._came)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    def ask(self) -> None:
        """Ask to stop."""
        self._asked.set()

    @property
    def asked(self) -> bool:
        """Whether somebody has asked to stop."""
        return self._asked.is_set()

    def wait(self) -> None:
        """Wait until somebody asks."""
        self._asked.wait()

    def _came(self, _number: int, _frame: object) -> NoReturn:
        self._restore()
        self._asked.set()
        raise KeyboardInterrupt

    def _restore(self) -> None:
        before, self._before = self._before, {}
        for number, handler in before.items():
            signal.signal(number, handler)
