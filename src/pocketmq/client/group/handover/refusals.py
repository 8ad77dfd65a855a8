"""Whether a STICKY member can take part: the bus must be there, and the user allowed to use it."""

from collections.abc import Iterable

from pocketmq.balance.handover.messages import BUS_TOPIC, Notice, write_notice
from pocketmq.client.group.handover import bus
from pocketmq.client.session import Session
from pocketmq.errors import MQError, ResponseCode, ServerError

_PASSING = frozenset(
    {ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.FLOW_CONTROL}
)
"""Refusals that say nothing about rights."""
_ACCOUNTS_REFUSAL = "AclException"
"""In refusals of brokers with accounts (ACL 1.0, as 4.x has); those with rules (ACL 2.0) say who
may not do what."""


async def bus_refusal(session: Session, group: str, topics: Iterable[str]) -> str | None:
    """Return why the brokers of these topics do not let members use the bus; None if they do.

    A broker that cannot be reached says nothing: its bus is opened when it is back.
    """
    brokers: set[str] = set()
    for topic in topics:
        try:
            known = await session.routes.get(topic)
        except MQError:
            continue
        brokers |= {queue.broker_name for queue in known.subscribe_queues}
        if known.route.topic_queue_mapping_by_broker:
            return f"topic {topic} is static: its queues move between brokers, their locks do not"
    for broker in sorted(brokers):
        refusal = await _refusal(session, group, broker)
        if refusal is not None:
            return refusal
    return None


async def _refusal(session: Session, group: str, broker: str) -> str | None:
    topic_there = False
    try:
        await bus.open_topic(session, broker)
        topic_there = True
        await bus.end_of_bus(session, group, broker)
        await bus.say(session, group, broker, write_notice(Notice(session.client_id, "", ())))
    except ServerError as error:
        if error.code in _PASSING:
            return None
        cure = _create_command(session, broker)
        if topic_there:
            cure = _grant_command(session, broker, error)
        return (
            f"broker {broker} refused {error.request or 'a request'} on topic {BUS_TOPIC} "
            f"({error.remark}); an administrator can run: {cure}"
        )
    except MQError:
        return None
    return None


def _create_command(session: Session, broker: str) -> str:
    address = session.brokers.address(broker)
    return f"pocketmq admin updateTopic -b {address} -t {BUS_TOPIC} -r 1 -w 1"


def _grant_command(session: Session, broker: str, error: ServerError) -> str:
    credentials = session.options.credentials
    user = "NAME" if credentials is None else credentials.access_key
    address = session.brokers.address(broker)
    if _ACCOUNTS_REFUSAL in (error.remark or ""):
        return (
            f"pocketmq admin updateAclConfig -b {address} -a {user} -s - "
            f"-t '{BUS_TOPIC}=PUB|SUB' (add the account's other topics, which it replaces; its "
            f"secret key is read from standard input)"
        )
    return (
        f"pocketmq admin createAcl -b {address} -s User:{user} "
        f"-r Topic:{BUS_TOPIC} -a Pub,Sub -d Allow"
    )
