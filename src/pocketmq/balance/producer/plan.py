"""What a send was asked to do, and the instructions that carry it out, as plain values."""

from enum import Enum

import msgspec

from pocketmq.balance.profile import RETRIES, SEND_TIMEOUT, Profile
from pocketmq.errors import InvalidInput, MQError
from pocketmq.model import SendReceipt


class SendMode(Enum):
    """How a send waits, by Java's three ways; each has rules of its own for retries."""

    SYNC = "sync"
    ASYNC = "async"
    ONEWAY = "oneway"


class QueueChoice(Enum):
    """How a producer chooses the queue of a message if the caller does not."""

    JAVA = "java"
    ADAPTIVE = "adaptive"


class SendPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one send. Raises `InvalidInput` for invalid limits.

    `pinned` means that the caller or a selector chose the queue. `retries` are tries beyond the
    first; `timeout` covers them all, `timeout_per_try` (5.x: sendMsgMaxTimeoutPerRequest) bounds
    each of a synchronous send but the last.
    """

    profile: Profile
    topic: str
    mode: SendMode = SendMode.SYNC
    pinned: bool = False
    retries: int = RETRIES
    timeout: float = SEND_TIMEOUT
    timeout_per_try: float | None = None
    retry_another_broker: bool = False
    """Whether a message that is stored, but not as safely as configured, is sent once more."""
    detector: bool = False
    """Whether unreachable brokers are probed, so that 5.x may call one unreachable."""
    extra_retry_codes: frozenset[int] = frozenset()
    retry_refusals: bool = False
    """Whether asynchronous sends are tried again after a refusal, too, which Java does not do."""

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise InvalidInput(f"retries must be 0 or more, not {self.retries}")
        if not self.timeout > 0:
            raise InvalidInput(f"timeout must be positive, not {self.timeout:g}")
        if self.timeout_per_try is not None and not self.timeout_per_try > 0:
            raise InvalidInput(f"timeout_per_try must be positive, not {self.timeout_per_try:g}")

    @property
    def max_tries(self) -> int:
        """How often the message may be sent.

        A queue chosen by the caller is tried once, except by asynchronous sends, which try it
        again.
        """
        once = self.mode is SendMode.ONEWAY or (self.pinned and self.mode is SendMode.SYNC)
        return 1 if once else 1 + self.retries


class Aim(Enum):
    """Which queue a try goes to."""

    ANY_QUEUE = "any queue"  # choose one, avoiding the broker named
    SAME_QUEUE_ID = "same queue id"  # choose a broker; the request keeps its queue id
    CHOSEN_QUEUE = "chosen queue"  # the caller's own choice


class Send(msgspec.Struct, frozen=True):
    """Send to a queue chosen by `aim`, and wait `timeout` seconds for the answer.

    `avoid` is the broker the last try went to. `restart` asks for a new random round-robin
    index if slow brokers are being avoided. `queue_id` is the id to keep. Each try is a request
    with an id of its own.
    """

    aim: Aim
    timeout: float
    avoid: str | None = None
    restart: bool = False
    queue_id: int | None = None


class Return(msgspec.Struct, frozen=True):
    """Return the receipt to the caller; there is none for a one-way send."""

    receipt: SendReceipt | None


class GiveUp(msgspec.Struct, frozen=True):
    """Raise this error."""

    error: MQError


class UpdateFault(msgspec.Struct, frozen=True):
    """Update the fault table, if there is one, before the next queue is chosen."""

    broker: str
    latency: float
    isolate: bool
    reachable: bool = True


class RefreshRoute(msgspec.Struct, frozen=True):
    """Refresh the topic's route soon; the next try need not wait for it."""

    topic: str


Action = Send | Return | GiveUp
Feedback = UpdateFault | RefreshRoute
