"""The clients' engine: an asyncio shell around the rules in `balance` and `protocol`.

Gathers facts, carries out instructions, keeps clocks. Timers run on the event loop's own clock,
wall time and chance come from `clock` alone, so that a loop with virtual time can drive all of it.
Independent of how brokers and name servers work inside.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pocketmq.client.clock import Clock, SystemClock
    from pocketmq.client.consumer_options import PullConsumerOptions, PushConsumerOptions
    from pocketmq.client.members import ConsumerMember, ProducerMember, SessionMember
    from pocketmq.client.options import ClientOptions, Credentials
    from pocketmq.client.producer_options import ProducerOptions
    from pocketmq.client.routes import KnownRoute
    from pocketmq.client.session import Session
    from pocketmq.client.sessions import Lease, lease_session

__all__ = [
    "ClientOptions",
    "Clock",
    "ConsumerMember",
    "Credentials",
    "KnownRoute",
    "Lease",
    "ProducerMember",
    "ProducerOptions",
    "PullConsumerOptions",
    "PushConsumerOptions",
    "Session",
    "SessionMember",
    "SystemClock",
    "lease_session",
]

# name -> module; imported when first asked for: not every user needs the options of all members
_LAZY = {
    "ClientOptions": "pocketmq.client.options",
    "Clock": "pocketmq.client.clock",
    "ConsumerMember": "pocketmq.client.members",
    "Credentials": "pocketmq.client.options",
    "KnownRoute": "pocketmq.client.routes",
    "Lease": "pocketmq.client.sessions",
    "SessionMember": "pocketmq.client.members",
    "ProducerMember": "pocketmq.client.members",
    "ProducerOptions": "pocketmq.client.producer_options",
    "PullConsumerOptions": "pocketmq.client.consumer_options",
    "PushConsumerOptions": "pocketmq.client.consumer_options",
    "Session": "pocketmq.client.session",
    "SystemClock": "pocketmq.client.clock",
    "lease_session": "pocketmq.client.sessions",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value
