"""A group at one moment, as small as the history needs it. Values alone.

What is not known stays unknown: a queue that nobody admits to hold is unowned only if every member
and every broker has been heard.
"""

import msgspec

from pocketmq.model.queue import MessageQueue

Owners = tuple[str, ...] | None
"""Who holds a queue: nobody is `()`, not known is None."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """What was known of a group at a time, in seconds."""

    at: float
    members: frozenset[str]
    untold: dict[str, str]
    """Members whose queues are not known, with the reason."""
    brokers: frozenset[str]
    """Brokers that list members, or have queues."""
    unseen: frozenset[str]
    """Brokers that did not answer."""
    owners: dict[MessageQueue, Owners]
    lags: dict[MessageQueue, int]
    """The lag of each queue of which it is known."""
    strategies: dict[str, str]
    """The strategy that each member tells; most do not."""
    fits: str | None = None
    """The strategy that gives exactly this picture."""
    shared: bool = True
    """Whether queues have owners: of those who broadcast or pop, everybody may read every queue."""
