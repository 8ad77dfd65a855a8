"""Which queues the application wants no pulls of, held now or taken later."""

from collections.abc import Iterable

from pocketmq.model.queue import MessageQueue


class Pauses:
    """Paused queues and topics, by the wire's names."""

    def __init__(self) -> None:
        self._everything = False
        self._topics: set[str] = set()
        self._queues: set[MessageQueue] = set()

    def __contains__(self, queue: MessageQueue) -> bool:
        return self._everything or queue.topic in self._topics or queue in self._queues

    def pause(self, what: str | Iterable[MessageQueue] | None) -> None:
        """Pause a topic, some queues, or everything."""
        if what is None:
            self._everything = True
        elif isinstance(what, str):
            self._topics.add(what)
        else:
            self._queues.update(what)

    def resume(self, what: str | Iterable[MessageQueue] | None) -> None:
        """Resume a topic with all its queues, some queues, or everything.

        A queue stays paused while its topic is, or everything.
        """
        if what is None:
            self._everything = False
            self._topics.clear()
            self._queues.clear()
        elif isinstance(what, str):
            self._topics.discard(what)
            self._queues = {queue for queue in self._queues if queue.topic != what}
        else:
            self._queues.difference_update(what)
