"""What if a member joins, a broker dies, the strategy changes? Answers without a cluster.

Takes a situation and events, gives plain values that msgspec writes as JSON. Cost grows linearly
with the number of queues. Knows no cluster: whoever asks brings routes and member lists along.
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
    Situation,
    StrategyChanged,
)
from pocketmq.balance.what_if.movement import (
    Move,
    Movement,
    Numbers,
    fewest_moves,
    movement,
    numbers,
)
from pocketmq.balance.what_if.ownership import (
    Owners,
    Ownership,
    Share,
    TopicBalance,
    owners_in,
    picture,
    spread,
)

__all__ = [
    "BrokerAdded",
    "BrokerDown",
    "Event",
    "MemberJoined",
    "MemberLeft",
    "Move",
    "Movement",
    "Numbers",
    "Owners",
    "Ownership",
    "QueuesAdded",
    "Share",
    "Situation",
    "StrategyChanged",
    "TopicBalance",
    "WhatIf",
    "WhatIfStep",
    "fewest_moves",
    "numbers",
    "owners_in",
    "preview",
    "spread",
    "what_if",
]


class WhatIfStep(msgspec.Struct, frozen=True):
    """One event and what it brought about: `event` is its kind, `subject` what it befell."""

    event: str
    subject: str
    strategy: str
    after: Ownership
    movement: Movement


class WhatIf(msgspec.Struct, frozen=True):
    """The answer: the state before, each event in turn, and the movement from first to last."""

    strategy: str
    before: Ownership
    steps: list[WhatIfStep]
    overall: Movement


def preview(situation: Situation) -> Ownership:
    """Tell who owns what in a situation."""
    return picture(situation, owners_in(situation))


def what_if(situation: Situation, events: Iterable[Event] = ()) -> WhatIf:
    """Let events happen one after the other, with a complete rebalance after each.

    Raises `AllocationInputInvalid` for an event that cannot happen (a stranger leaves, an
    unknown broker dies) and where the strategy itself refuses.
    """
    first, owned_first = situation, owners_in(situation)
    now, owned_now = first, owned_first
    steps = []
    for event in events:
        later = event.apply(now)
        owned_later = owners_in(later)
        steps.append(
            WhatIfStep(
                event=event.kind,
                subject=event.subject,
                strategy=later.strategy.name,
                after=picture(later, owned_later),
                movement=movement(now, owned_now, later, owned_later),
            )
        )
        now, owned_now = later, owned_later
    return WhatIf(
        strategy=situation.strategy.name,
        before=picture(first, owned_first),
        steps=steps,
        overall=movement(first, owned_first, now, owned_now),
    )
