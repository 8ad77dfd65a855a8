"""Passing on to the main thread what means: end the program, as if Ctrl-C had been pressed."""

import _thread
import signal
import threading
import time

AGAIN_AFTER = 5.0
"""Seconds in which it is asked once: of many calls that exit at the same time the second would
cut the orderly stop short that the first began."""

_asked = float("-inf")
_turn = threading.Lock()


def interrupt_main() -> None:
    """Raise SIGINT on the main thread, even one that waits; not if the program ignores it."""
    global _asked  # noqa: PLW0603 - a process has one main thread
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, signal.SIG_IGN, None):
        return
    with _turn:
        now = time.monotonic()
        if now < _asked + AGAIN_AFTER:
            return
        _asked = now
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, signal.SIGINT)  # unlike the other it wakes who waits for a lock
    else:
        _thread.interrupt_main()
