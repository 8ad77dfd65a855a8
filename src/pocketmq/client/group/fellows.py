"""Fellow members of a group: whether all of them release queues as soon as they are notified.

A new owner that knows so need not wait for the old one as long as Java's does. Brokers know the
language and the version of every connected client (203); a client of ours says PYTHON, and at least
the version from which it is prompt. Other libraries for Python either name another language (those
that wrap the C++ client) or an older version. Where a broker does not answer, or does not permit
the question (access control of 5.x asks for the right `Get` on the group), a member counts as slow,
and Java's pauses stay. Belongs to one event loop.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from pocketmq.balance.consumer.facts import GroupMember
from pocketmq.client.group.calls import ListedMembers
from pocketmq.client.group.connections import GroupConnections
from pocketmq.client.session import Session
from pocketmq.model import MessageModel
from pocketmq.protocol.peers import Language, version_number
from pocketmq.protocol.requests.groups import ClientConnection

PATIENCE = 0.25
"""Seconds for an answer: less than the pause that it may save."""
_AGAIN = 15.0
"""Seconds until a question is repeated that was not answered: less than a timer of 20 s."""
_BROKERS = 2
"""The brokers asked before the first rebalance: if neither answers, it is not put off further."""
_SINCE = version_number(5, 3, 3)


class Fellows:
    """What is known of the members of one group.

    Every question is about client ids that are not known yet. So it is asked once for each new
    member, and not at all when members leave.
    """

    def __init__(
        self, session: Session, member: GroupMember, connections: GroupConnections
    ) -> None:
        self._session = session
        self._connections = connections
        self._profile = member.profile
        self._sharing = member.model is MessageModel.CLUSTERING
        self._prompt: dict[str, bool] = {session.client_id: True}
        self._listed: dict[str, frozenset[str]] = {}  # by topic, when its members were last listed
        self._missing: frozenset[str] = frozenset()  # asked for in vain
        self._asked = 0.0
        self._now = asyncio.get_running_loop().time

    async def first_pause(self) -> float | None:
        """Return the pause that suffices before the first rebalance; None leaves Java's."""
        if not self._profile.looks_at_members:
            return None
        if not self._sharing:
            return 0.0  # every member takes all queues: none has to release one
        members = await self._count_if_prompt()
        return None if members is None else self._profile.pause_among(members)

    async def _count_if_prompt(self) -> int | None:
        """Ask about all members before they are listed; None if not all of them are prompt."""
        session = self._session
        masters = session.addresses.places(masters_only=True)
        session.random.shuffle(masters)
        for place in masters[:_BROKERS]:
            if await self._ask(place.address):
                return len(self._prompt) if all(self._prompt.values()) else None
        return None

    async def are_prompt(self, topic: str, listed: ListedMembers | None) -> bool:
        """Return whether all members release queues at once, those that have just left included.

        The latter count because Java's clients store their last offsets without waiting: who starts
        at once after one has left may read offsets from before. False if members are not listed.
        """
        if listed is None or not self._profile.looks_at_members:
            return self._profile.looks_at_members and not self._sharing
        now = frozenset(listed.members)
        concerned = now | self._listed.get(topic, now)
        unknown = now - self._prompt.keys()
        if unknown and (unknown != self._missing or self._now() > self._asked + _AGAIN):
            await self._ask(listed.address)
            self._missing = unknown - self._prompt.keys()
        result = all(self._prompt.get(member, False) for member in concerned)
        self._listed[topic] = now
        self._forget_others()
        return result

    def forget(self, topic: str) -> None:
        """Forget the members of a topic that is not subscribed any more."""
        self._listed.pop(topic, None)

    async def _ask(self, address: str) -> bool:
        self._asked = self._now()
        seen = await self._connections.ask_at(address, PATIENCE)
        if seen is not None:
            self._prompt |= judged(seen.connection_set)
        return seen is not None

    def _forget_others(self) -> None:
        """Keep nothing about clients that no broker lists: an id may come back as another kind."""
        listed = {self._session.client_id}.union(*self._listed.values())
        self._prompt = {each: known for each, known in self._prompt.items() if each in listed}


def judged(connections: Iterable[ClientConnection]) -> dict[str, bool]:
    """Return for each client id whether every client connected under it is prompt."""
    found: dict[str, bool] = defaultdict(lambda: True)
    for each in connections:
        if each.client_id:
            found[each.client_id] &= each.language is Language.PYTHON and each.version >= _SINCE
    return dict(found)
