"""Who is in the group: the union of what all masters of its topics list.

Belongs to one event loop.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection

from pocketmq.balance.handover.events import Listed
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError, ServerError
from pocketmq.protocol import RequestCode, decode_body
from pocketmq.protocol.requests.membership import ConsumerIds, GetConsumerListRequest

logger = logging.getLogger("pocketmq.client")

LIST_TIMEOUT = 3.0
UNLISTED = 15.0
"""Seconds in which a broker did not answer, or did not list this member although that sends it
heartbeats. After that its list counts as it is, or as empty: members that are listed there alone
can be taken for gone then."""


class MemberListing:
    """Asks for the members of a group, one question at a time."""

    def __init__(
        self,
        session: Session,
        group: str,
        tasks: Tasks,
        brokers: Callable[[], Collection[str]],
        report: Callable[[Listed], None],
    ) -> None:
        self._session = session
        self._group = group
        self._tasks = tasks
        self._brokers = brokers
        self._report = report
        self._asking = False
        self._again = False
        self._missing: dict[str, float] = {}  # brokers, and since when they do not list it
        self._now = asyncio.get_running_loop().time

    def ask_soon(self) -> None:
        """Ask, or ask again after the question in flight: its answer may be from before."""
        if self._asking:
            self._again = True
            return
        self._asking = True
        self._tasks.spawn(self._ask_all(), "list members")

    async def _ask_all(self) -> None:
        try:
            while True:
                self._again = False
                brokers = self._brokers()
                answers = await asyncio.gather(*(self._ask(broker) for broker in brokers))
                self._report(self._union(answers))
                if not self._again:
                    return
        finally:
            self._asking = False

    def _union(self, answers: Collection[tuple[str, ...] | None]) -> Listed:
        most: Counter[str] = Counter()
        complete = True
        for listed in answers:
            if listed is None:
                complete = False
            else:
                most |= Counter(listed)
        return Listed(tuple(sorted(most.elements())), complete and bool(answers))

    async def _ask(self, broker: str) -> tuple[str, ...] | None:
        """Return a broker's list; None if it must not be taken for the truth."""
        session = self._session
        try:
            answer = await session.brokers.call(
                broker,
                RequestCode.GET_CONSUMER_LIST_BY_GROUP,
                GetConsumerListRequest(consumer_group=self._group),
                timeout=LIST_TIMEOUT,
                master_only=True,
            )
            listed = tuple(decode_body(answer.body, ConsumerIds).consumer_id_list)
        except ServerError as error:
            logger.debug("no member list: group=%s broker=%s error=%s", self._group, broker, error)
            listed = ()
        except MQError as error:
            logger.debug("no member list: group=%s broker=%s error=%s", self._group, broker, error)
            return () if self._missing_long(broker) else None
        if session.client_id in listed:
            self._missing.pop(broker, None)
            return listed
        # It has just started, or dropped this member: others are missing there just the same. But
        # one that never lists the group must not keep those alive that are gone.
        session.heartbeats.beat_soon()
        return listed if self._missing_long(broker) else None

    def _missing_long(self, broker: str) -> bool:
        since = self._missing.setdefault(broker, self._now())
        return self._now() - since > UNLISTED
