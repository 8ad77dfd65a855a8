"""One message handled on an operator's demand (309), beside the queues and their offsets."""

import asyncio
import logging
from collections.abc import Awaitable

from pocketmq.client.push.handlers import CANCELLED, Failure, Handler
from pocketmq.client.push.work import Consuming
from pocketmq.model import properties as names
from pocketmq.model.kinds import ConsumeResult
from pocketmq.model.names import retry_topic, unwrap_namespace
from pocketmq.protocol.bodies.running import DirectConsumeResult
from pocketmq.protocol.received import ReceivedMessage

logger = logging.getLogger("pocketmq.client")


class DirectCall:
    """A handler call whose answer somebody awaits."""

    def __init__(
        self, consuming: Consuming, message: ReceivedMessage, broker_name: str | None
    ) -> None:
        topic = message.topic
        if topic == retry_topic(consuming.group):
            topic = message.get_property(names.RETRY_TOPIC) or topic
        topic = unwrap_namespace(consuming.session.options.namespace, topic)
        self.message = message.with_topic(topic)
        self.handler: Handler | None = None
        self.failure: Failure | None = None
        self.took = 0
        self.ended: asyncio.Future[Failure | None] = asyncio.get_running_loop().create_future()
        logger.info(
            "group %s: %s is handled as an operator asked (%s)",
            consuming.group, self.message.message_id, broker_name,
        )  # fmt: skip

    def make(self) -> None:
        """Call a plain handler."""
        assert self.handler is not None
        self.failure = self.handler.call((self.message,))

    def make_async(self) -> Awaitable[Failure | None]:
        """Call a coroutine handler."""
        assert self.handler is not None
        return self.handler.call_async((self.message,))

    def conclude(self) -> None:
        """Tell who waits."""
        if not self.ended.done():
            self.ended.set_result(self.failure)

    def give_up(self) -> None:
        """Tell who waits that the consumer stops."""
        if not self.ended.done():
            self.ended.set_result(CANCELLED)


def direct_result(failure: Failure | None, spent_ms: int, *, orderly: bool) -> DirectConsumeResult:
    """Say what came of it in Java's words."""
    result, remark = ConsumeResult.CR_SUCCESS, None
    if failure is not None:
        result, remark = ConsumeResult.CR_LATER, failure.reason
        if failure.error is not None:
            result = ConsumeResult.CR_THROW_EXCEPTION
            logger.warning("a message handled on demand failed", exc_info=failure.error)
    return DirectConsumeResult(
        order=orderly,
        auto_commit=True,
        consume_result=result,
        remark=remark,
        spent_time_mills=spent_ms,
    )
