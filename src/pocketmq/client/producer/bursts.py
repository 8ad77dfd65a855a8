"""Plain sends that follow another one in the same event-loop iteration, posted by the core.

The first of a burst is posted by `plain_sends`, which decides everything about it. Those that
follow go to the next queues in turn and share its times, so the core needs one call for each.
Without the core `plain_sends` posts them all. Belongs to one event loop.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pocketmq.client.producer.plain_messages import PlainMessages, PlainTopic
from pocketmq.native import core
from pocketmq.net import Connection
from pocketmq.net.open_requests import LARGE
from pocketmq.net.outbox import PORTION

if TYPE_CHECKING:
    from pocketmq.client.producer.sending import Sending

_LAST_TURN = 0x7FFF_FFFF
"""Turns begin again after this one; the first one then is posted by `plain_sends`."""
_MOST_REMEMBERED = 256  # topics


class Bursts:
    """The bursts of one producer."""

    def __init__(self, sending: "Sending", messages: PlainMessages) -> None:
        self.follow: Callable[..., Any] | None = None
        """Post a message that follows; None if `PlainSends.post` has to. Without the core None."""
        self._messages = messages
        self._turns: dict[str, tuple[PlainTopic, Any]] = {}
        self._followers: Any = None
        if core is not None and messages.possible:
            loop = asyncio.get_running_loop()
            self._followers = core.Followers(
                loop.is_running,
                loop.create_future,
                sending.preparing.ids.next_number,
                sending.window,
                sending.hooks.hooks,
                min(messages.largest, LARGE - 1),
                PORTION,
            )
            self.follow = self._followers.post
            _running.add(self)

    def lead(
        self, name: str, turn: int, prefix: str, connections: Mapping[str, Connection]
    ) -> None:
        """Note that a message to a topic was posted, in its turn, and what its id begins with.

        `connections` are those in use, by the names of brokers.
        """
        topic = self._messages.topic(name)
        if topic is None:
            return
        known = self._turns.get(name)
        if known is None or known[0] is not topic:
            known = topic, self._make_turns(topic, connections)
            if len(self._turns) >= _MOST_REMEMBERED:
                self._turns.clear()
            self._turns[name] = known
        self._followers.lead(known[1], turn % len(topic.queues), turn, prefix)

    def forget_connections(self) -> None:
        """Note that connections are others from now on."""
        self._turns.clear()
        if self._followers is not None:
            self._followers.lead()

    def stop(self) -> None:
        """Post nothing any more, in a fork: `PlainSends.post` refuses each message there."""
        if self._followers is not None:
            self._followers.stop()

    def end(self) -> None:
        """Let go of everything: the garbage collector does not see what the core holds."""
        self.forget_connections()
        self.follow = self._followers = None

    def _make_turns(self, topic: PlainTopic, connections: Mapping[str, Connection]) -> Any:
        """Return what the core needs; None while a broker is not connected, or sends are signed."""
        aims = []
        for queue, template in zip(topic.queues, topic.templates, strict=True):
            connection = connections.get(queue.broker_name)
            if connection is None or template.signing is not None:
                return None  # each is posted alone
            aims.append((queue, template, connection, connection.requests))
        assert core is not None
        tails = self._messages.tails
        return core.Turns(topic.name, topic.publication, tails, aims, _LAST_TURN)


_running: "WeakSet[Bursts]" = WeakSet()


def _forked() -> None:
    for bursts in list(_running):
        bursts.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
