"""What if a member joins, a broker dies, the strategy changes? Answers without a cluster.

Takes a situation and events, returns plain values that msgspec writes as JSON. Cost grows linearly
with the number of queues. Asks no cluster: the caller brings routes and member lists along.
"""

from collections.abc import Iterable

import msgspec

from pocketmq.balance.what_if.events import (
    BrokerAdded,
    BrokerDown,
    Event,
    MemberJoined,
    MemberLeft,
    QueuesAdded,
    StrategyChanged,
)
from pocketmq.balance.what_if.movement import Movement, Numbers, first_movement, movement, numbers
from pocketmq.balance.what_if.situation import Owners, Ownership, Situation, describe, owners_in

__all__ = [
    "BrokerAdded",
    "BrokerDown",
    "Event",
    "MemberJoined",
    "MemberLeft",
    "Movement",
    "Numbers",
    "Owners",
    "Ownership",
    "QueuesAdded",
    "Situation",
    "StrategyChanged",
    "WhatIf",
    "WhatIfStep",
    "numbers",
    "owners_in",
    "preview",
    "what_if",
]


class WhatIfStep(msgspec.Struct, frozen=True):
    """One event and its effect: `event` is its kind, `subject` what it happened to."""

    event: str
    subject: str
    strategy: str
    after: Ownership
    movement: Movement


class WhatIf(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer: the state before, each event with its effect, and the movement over all.

    `start` is what the strategy moves before any event, if the owners up to now are known.
    """

    strategy: str
    before: Ownership
    steps: list[WhatIfStep]
    overall: Movement
    start: Movement | None = None


def preview(situation: Situation) -> Ownership:
    """Return who owns what in a situation."""
    return describe(situation, owners_in(situation))


def what_if(situation: Situation, events: Iterable[Event] = ()) -> WhatIf:
    """Apply events one after the other, with a complete rebalance after each.

    A strategy that uses the owners up to now gets those of the rebalance before; at the start, and
    for the movement there, those that the situation brings along.

    Raises `AllocationInputInvalid` for an event that cannot happen (an unknown member
    leaves, an unknown broker fails) and where the strategy itself refuses.
    """
    first, owned_first = situation, owners_in(situation)
    now, owned_now = first, owned_first
    steps = []
    for event in events:
        later = event.apply(now).after(now, owned_now)
        owned_later = owners_in(later)
        steps.append(
            WhatIfStep(
                event=event.kind,
                subject=event.subject,
                strategy=later.strategy.name,
                after=describe(later, owned_later),
                movement=movement(now, owned_now, later, owned_later),
            )
        )
        now, owned_now = later, owned_later
    return WhatIf(
        strategy=situation.strategy.name,
        before=describe(first, owned_first),
        steps=steps,
        overall=movement(first, owned_first, now, owned_now),
        start=first_movement(first, owned_first) if first.previous else None,
    )
