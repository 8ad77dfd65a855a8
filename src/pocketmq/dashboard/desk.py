"""What can be done to the cluster from a page: nothing unless it was allowed, and all is logged.

Pages ask first; this is where it is decided and written down, whatever a browser sends.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pocketmq.admin.admin import Admin
from pocketmq.admin.messages import Resent
from pocketmq.admin.offsets import ResetResult
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.views import Views
from pocketmq.errors import InvalidInput, MQError
from pocketmq.model.topic_config import TopicConfig
from pocketmq.protocol.received import ReceivedMessage

logger = logging.getLogger("pocketmq.dashboard.actions")

T = TypeVar("T")

HOW_TO_ALLOW = "start the dashboard with --allow-actions"
MOST_QUEUES = 1024


class Actions:
    """Does things in somebody's name. Each raises `InvalidInput` if actions are not allowed."""

    def __init__(self, admin: Admin, views: Views, *, allowed: bool) -> None:
        self._admin = admin
        self._views = views
        self.allowed = allowed

    async def create_topic(self, who: str, topic: str, queues: int) -> int:
        """Make a topic on all brokers; gives how many have it now. Raises `NameInvalid`, too."""

        async def create() -> int:
            if not 1 <= queues <= MOST_QUEUES:
                raise InvalidInput(f"a topic has 1 to {MOST_QUEUES} queues, not {queues}")
            config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
            if topic in (await self._admin.topics.names()):
                raise InvalidInput(f"there is a topic {topic!r} already")
            return len((await self._admin.topics.create(config)).some().answers)

        return await self._do(who, f"create topic {topic!r} with {queues} queues", create)

    async def reset_offset(self, who: str, group: str, topic: str, time_ms: int) -> ResetResult:
        """Have a group go on elsewhere in a topic: at a time, or behind the last message (-1)."""

        async def reset() -> ResetResult:
            return await self._admin.offsets.reset(group, topic, time_ms)

        what = f"reset group {group!r} in topic {topic!r} to {time_ms}"
        return await self._do(who, what, reset)

    async def resend(self, who: str, messages: list[ReceivedMessage]) -> list[Resent]:
        """Send copies of messages; dead letters go to their first topic."""

        async def resend() -> list[Resent]:
            return await self._admin.messages.resend(messages)

        ids = ", ".join(message.message_id for message in messages)
        topic = messages[0].topic if messages else ""
        return await self._do(who, f"resend {ids} of topic {topic!r}", resend)

    async def rebalance(self, who: str, group: str) -> int:
        """Have a group's members rebalance now; gives how many brokers have told them."""

        async def rebalance() -> int:
            return len((await self._admin.balance.rebalance(group)).some().answers)

        return await self._do(who, f"rebalance group {group!r}", rebalance)

    async def _do(self, who: str, what: str, work: Callable[[], Awaitable[T]]) -> T:
        if not self.allowed:
            logger.warning("refused: %s asked to %s; actions are off", who, what)
            raise InvalidInput(f"actions are off: {HOW_TO_ALLOW}")
        try:
            done = await work()
        except MQError as error:
            logger.warning("failed: %s asked to %s: %s", who, what, error)
            raise
        logger.info("done: %s asked to %s", who, what)
        self._views.watches.hurry()
        return done


@dataclass(frozen=True)
class Desk:
    """Handed to every page. One for a dashboard, shared by all browsers."""

    admin: Admin
    views: Views
    actions: Actions
    settings: DashboardSettings
