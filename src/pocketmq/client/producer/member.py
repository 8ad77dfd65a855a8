"""A producer as its session sees it: a group, its topics, and what brokers ask of it."""

from collections.abc import Awaitable, Callable, Collection

from pocketmq.client.producer.sending import Sending
from pocketmq.client.routes import KnownRoute
from pocketmq.protocol.command import Command
from pocketmq.protocol.received import ReceivedMessage
from pocketmq.protocol.requests.client_calls import PushReplyRequest
from pocketmq.protocol.requests.sending import CheckTransactionStateRequest

Check = Callable[[ReceivedMessage, CheckTransactionStateRequest, str], Awaitable[None]]
TakeReply = Callable[[PushReplyRequest, Command], bool]


class Membership:
    """The member that a session knows for a producer (a `ProducerMember`)."""

    def __init__(self, sending: Sending, check: Check, take_reply: TakeReply) -> None:
        self._sending = sending
        self._check = check
        self._take_reply = take_reply

    @property
    def group(self) -> str:
        """The group's name on the wire."""
        return self._sending.group

    def topics(self) -> Collection[str]:
        """List the topics whose routes shall be kept fresh."""
        return self._sending.publishing.topics()

    def on_route_changed(self, known: KnownRoute) -> None:
        """Take over a topic's new queues."""
        self._sending.publishing.on_route_changed(known)

    async def check_transaction(
        self, message: ReceivedMessage, header: CheckTransactionStateRequest, address: str
    ) -> None:
        """Tell a broker what became of the transaction of a half message."""
        await self._check(message, header, address)

    def take_reply(self, header: PushReplyRequest, request: Command) -> bool:
        """Take a reply to a request of this producer; False if it waits for no such reply."""
        return self._take_reply(header, request)
