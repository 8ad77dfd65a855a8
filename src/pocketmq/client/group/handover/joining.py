"""How a consumer joins its group: as it was configured, or by a Java strategy if STICKY cannot be.

Decided before the member joins, for its client id says whether it hands queues over. One that
cannot joins as a foreign member would, and says which right or topic is missing.
"""

import logging
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

import msgspec

from pocketmq.client.consumer_options import ConsumerOptions
from pocketmq.client.options import ClientOptions
from pocketmq.client.sessions import Lease
from pocketmq.model.names import wrap_namespace

logger = logging.getLogger("pocketmq.client")

O = TypeVar("O", bound=ConsumerOptions)  # noqa: E741 - options


class LeaseSession(Protocol):
    """Leases a session, under an id that is marked or not."""

    async def __call__(self, *, hands_over: bool) -> Lease:
        """Return the lease; raises what `lease_session` does."""


class Joined(msgspec.Struct, Generic[O], frozen=True):
    """The session of a consumer, and the options that it takes part with."""

    lease: Lease
    options: O
    reason: str = ""
    """Why it takes part with a Java strategy although STICKY was asked for."""


async def join_group(
    options: O, topics: Iterable[str], client: ClientOptions, lease: LeaseSession
) -> Joined[O]:
    """Lease the session of a consumer; raises what `lease_session` does."""
    sticky = options.sticky
    if sticky is None:
        return Joined(await lease(hands_over=False), options)
    from pocketmq.client.group.handover.refusals import bus_refusal  # imports what STICKY needs

    marked = await lease(hands_over=True)
    group = wrap_namespace(client.namespace, options.group)
    try:
        reason = await bus_refusal(marked.session, group, topics)
    except BaseException:
        await marked.release()
        raise
    if reason is None:
        return Joined(marked, options)
    await marked.release()
    logger.warning(
        "joining with strategy %s, because STICKY is not possible: group=%s: %s",
        sticky.mixed.name, group, reason,
    )  # fmt: skip
    plain = msgspec.structs.replace(
        options, strategy=sticky.mixed, handover="auto", return_within=0.0
    )
    return Joined(await lease(hands_over=False), plain, reason)
