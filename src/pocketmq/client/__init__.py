"""The clients' engine: an asyncio shell around the rules in `balance` and `protocol`.

Gathers facts, carries out instructions, keeps clocks. Timers run on the event loop's own clock,
wall time and chance come from `clock` alone, so that a loop with virtual time can drive all of it.
Knows no broker's or name server's insides.
"""

from pocketmq.client.clock import Clock, SystemClock
from pocketmq.client.consumer_options import PullConsumerOptions, PushConsumerOptions
from pocketmq.client.members import ConsumerMember, Member, ProducerMember
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
    "Member",
    "ProducerMember",
    "ProducerOptions",
    "PullConsumerOptions",
    "PushConsumerOptions",
    "Session",
    "SystemClock",
    "lease_session",
]
