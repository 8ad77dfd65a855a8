"""What the send decisions tell a shell to do, as plain values."""

from enum import Enum

import msgspec

from pocketmq.errors import MQError
from pocketmq.model.receipt import SendReceipt


class Aim(Enum):
    """Which queue a try goes to."""

    ANY_QUEUE = "any queue"  # choose one, avoiding the broker named
    SAME_QUEUE_ID = "same queue id"  # choose a broker; the request keeps its queue id
    CHOSEN_QUEUE = "chosen queue"  # the caller's own choice


class Send(msgspec.Struct, frozen=True):
    """Send to a queue chosen by `aim`, and wait `timeout` seconds for the answer.

    `avoid` is the broker the last try went to. `restart` asks for a fresh random place in the turn
    if slow brokers are being avoided. `queue_id` is the id to keep. Each try is a request with an
    id of its own.
    """

    aim: Aim
    timeout: float
    avoid: str | None = None
    restart: bool = False
    queue_id: int | None = None


class Return(msgspec.Struct, frozen=True):
    """Hand the receipt to the caller; there is none for a message sent one way."""

    receipt: SendReceipt | None


class GiveUp(msgspec.Struct, frozen=True):
    """Raise this error."""

    error: MQError


class UpdateFault(msgspec.Struct, frozen=True):
    """Tell the fault table, if there is one, before the next queue is chosen."""

    broker: str
    latency: float
    isolate: bool
    reachable: bool = True


class RefreshRoute(msgspec.Struct, frozen=True):
    """Ask the name server about the topic soon; the next try need not wait for it."""

    topic: str


Action = Send | Return | GiveUp
Feedback = UpdateFault | RefreshRoute
