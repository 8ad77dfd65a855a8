"""A broker's description of a group (request 203): asked for once by all who want to read it.

`Fellows` reads languages and versions, `GroupChecks` mistakes. Belongs to one event loop.
"""

import asyncio

from pocketmq.client.group.calls import connections_at, group_connections
from pocketmq.client.session import Session
from pocketmq.protocol.requests.groups import ConsumerConnections

_FRESH = 1.0
"""Seconds for which an answer is shared: those who ask do so for the same rebalance."""


class GroupConnections:
    """The last description of one group."""

    def __init__(self, session: Session, group: str) -> None:
        self._session = session
        self._group = group
        self._unread: tuple[ConsumerConnections, float] | None = None
        self._now = asyncio.get_running_loop().time

    async def ask_at(self, address: str, patience: float) -> ConsumerConnections | None:
        """Ask the broker at an address; None without an answer in time, or permission."""
        asked_at = self._now()
        seen = await connections_at(self._session, address, self._group, patience)
        if seen is not None:
            self._unread = (seen, asked_at)
        return seen

    async def read(self, topic: str) -> ConsumerConnections | None:
        """Return an answer that was not read yet; ask a broker of a topic if there is none.

        None without an answer, or permission.
        """
        unread, self._unread = self._unread, None
        if unread is not None and self._now() - unread[1] <= _FRESH:
            return unread[0]
        return await group_connections(self._session, topic, self._group)

    def forget(self) -> None:
        """Forget an answer from before a change of this member's own."""
        self._unread = None
