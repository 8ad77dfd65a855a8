"""What every page gets: the cluster's views, the actions on it, the settings.

Actions are refused unless they were allowed, and all are logged. Pages ask for confirmation, but
the decision is made here, whatever a browser sends.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from fastapi import Request

from pocketmq.admin.admin import Admin
from pocketmq.admin.messages import Resent
from pocketmq.admin.offsets import ResetResult
from pocketmq.dashboard.actions.access import AccessActions
from pocketmq.dashboard.actions.changing import MOST_QUEUES, ChangeActions
from pocketmq.dashboard.actions.sending import SendActions
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.views import Views
from pocketmq.errors import InvalidInput, MQError
from pocketmq.model import TopicConfig
from pocketmq.protocol import ReceivedMessage

logger = logging.getLogger("pocketmq.dashboard.actions")

T = TypeVar("T")

CLUSTER = "cluster"
"""The field of an address that names a cluster."""
CLUSTER_COOKIE = "pocketmq_cluster"
HOW_TO_ALLOW = "start the dashboard with --allow-actions"


class Actions:
    """Carries out actions on behalf of a visitor; raises `InvalidInput` if actions are off."""

    def __init__(self, admin: Admin, views: Views, *, allowed: bool) -> None:
        self._admin = admin
        self._views = views
        self.allowed = allowed
        self.sending = SendActions(admin, self._do)
        self.changing = ChangeActions(admin, self._do)
        self.access = AccessActions(admin, self._do)

    async def create_topic(self, who: str, topic: str, queues: int) -> int:
        """Create a topic; return the number of brokers that have it. Raises `NameInvalid`, too."""

        async def create() -> int:
            if not 1 <= queues <= MOST_QUEUES:
                raise InvalidInput(f"a topic must have 1 to {MOST_QUEUES} queues, not {queues}")
            config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
            if topic in (await self._admin.topics.names()):
                raise InvalidInput(f"topic {topic!r} exists already")
            return len((await self._admin.topics.create(config)).some().answers)

        return await self._do(who, f"create topic {topic!r} with {queues} queues", create)

    async def reset_offset(self, who: str, group: str, topic: str, time_ms: int) -> ResetResult:
        """Reset a group's offsets in a topic: to a time, or to the end (-1)."""

        async def reset() -> ResetResult:
            return await self._admin.offsets.reset(group, topic, time_ms)

        what = f"reset group {group!r} in topic {topic!r} to {time_ms}"
        return await self._do(who, what, reset)

    async def resend(self, who: str, messages: list[ReceivedMessage]) -> list[Resent]:
        """Send copies of messages; dead letters go to their original topic."""

        async def resend() -> list[Resent]:
            return await self._admin.messages.resend(messages)

        ids = ", ".join(message.message_id for message in messages)
        topic = messages[0].topic if messages else ""
        return await self._do(who, f"resend {ids} of topic {topic!r}", resend)

    async def rebalance(self, who: str, group: str) -> int:
        """Make a group's members rebalance now; return the number of brokers that notified them."""

        async def rebalance() -> int:
            return len((await self._admin.balance.rebalance(group)).some().answers)

        return await self._do(who, f"rebalance group {group!r}", rebalance)

    async def _do(
        self,
        who: str,
        what: str,
        work: Callable[[], Awaitable[T]],
        result: Callable[[T], str] | None = None,
        /,
    ) -> T:
        if not self.allowed:
            logger.warning('action refused: user=%s action="%s"; %s', who, what, HOW_TO_ALLOW)
            raise InvalidInput(f"actions are off: {HOW_TO_ALLOW}")
        try:
            done = await work()
        except MQError as error:
            logger.warning('action failed: user=%s action="%s" error="%s"', who, what, error)
            raise
        told = "" if result is None else f' result="{result(done)}"'
        logger.info('action done: user=%s action="%s"%s', who, what, told)
        self._views.pollers.hurry()
        return done


@dataclass(frozen=True)
class Desk:
    """What pages share: one for each cluster, used by all browsers."""

    admin: Admin
    views: Views
    actions: Actions
    settings: DashboardSettings
    name: str = ""
    """What the cluster is called here; empty for the one that the dashboard was started for."""
    names: tuple[str, ...] = ("",)
    """The names of all clusters that the dashboard shows."""


class Desks:
    """The desks of all clusters; a browser says which one it wants."""

    def __init__(self, *desks: Desk) -> None:
        self.first = desks[0]
        self._desks = {desk.name: desk for desk in desks}

    def of(self, request: Request) -> Desk:
        """Return the desk that an address names, else the one chosen in the header, or the first.

        A page keeps the desk it was made with, whatever is chosen in other windows.
        """
        name = request.query_params.get(CLUSTER, request.cookies.get(CLUSTER_COOKIE, ""))
        return self._desks.get(name, self.first)

    def named_by(self, request: Request) -> Desk | None:
        """Return the desk that an address names, the first if it names none; None if unknown."""
        return self._desks.get(request.query_params.get(CLUSTER, ""))
