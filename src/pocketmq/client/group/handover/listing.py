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
UNREACHABLE = 15.0
"""Seconds without a connection after which a broker's list counts as empty: members that are listed
there alone can be taken for gone then."""


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
        self._lost: dict[str, float] = {}
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
            lost = self._lost.setdefault(broker, self._now())
            return () if self._now() - lost > UNREACHABLE else None
        self._lost.pop(broker, None)
        if session.client_id not in listed:
            # It has just started, or dropped this member: others are missing there just the same.
            session.heartbeats.beat_soon()
            return None
        return listed
