"""Changed topics on their way to the name servers, and the answers that wait until they are there.

Code that changes topics calls `announce`; each link to a name server is attached here and reports
back. Changes are numbered, to compare them with what each name server was sent. Independent of
sockets. Belongs to the broker's loop.
"""

from collections.abc import Callable, Iterable
from typing import Protocol


class AnnouncementLink(Protocol):
    """A name server that is sent changed topics."""

    @property
    def sent(self) -> int:
        """The number of the last change it was sent, or could not be sent."""
        ...

    def announce(self, topics: Iterable[str], number: int) -> None:
        """Send these topics soon."""
        ...


class TopicAnnouncements:
    """The changes of one broker's topics, as far as name servers have been sent them."""

    def __init__(self) -> None:
        self._links: list[AnnouncementLink] = []
        self._last = 0  # number of the latest change
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        self._running = False

    def attach(self, link: AnnouncementLink) -> None:
        """Send changes to this name server, too."""
        self._links.append(link)

    def start(self) -> None:
        """Let callers wait from now on: the links are working."""
        self._running = True

    def stop(self) -> None:
        """Call back all that wait; none waits from now on."""
        self._running = False
        self._release(self._last)

    def announce(self, topics: Iterable[str]) -> None:
        """Announce new and changed topics, soon."""
        self._last += 1
        for link in self._links:
            link.announce(topics, self._last)

    def when_announced(self, then: Callable[[], None]) -> None:
        """Call back once every name server was sent the changes so far, or cannot be."""
        if not self._running or self._sent() >= self._last:
            then()
        else:
            self._waiting.append((self._last, then))

    def progressed(self) -> None:
        """Call back what waited for a link that has now done what it could."""
        if self._waiting:
            self._release(self._sent())

    def _sent(self) -> int:
        return min((link.sent for link in self._links), default=self._last)

    def _release(self, sent: int) -> None:
        ready = [then for number, then in self._waiting if number <= sent]
        self._waiting = [each for each in self._waiting if each[0] > sent]
        for then in ready:
            then()
