"""Changes made whole again: each is completed from its member's event before.

A reader that started late, or missed an event, has changes without an event before. They cannot be
completed, and the next whole event of that member sets everything right.
"""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from pocketmq.model.rebalance_event import RebalanceChange, RebalanceEvent

Told = RebalanceEvent | RebalanceChange
T = TypeVar("T")


def whole_events(told: Iterable[Told]) -> tuple[list[RebalanceEvent], list[RebalanceChange]]:
    """Return the events of groups, all whole, and the changes that could not be completed.

    The order of `told` does not matter. Equal lists are the same object in all events, which saves
    the memory of repeated assignments, and lets readers skip what they have read. A change that was
    sent twice counts once.
    """
    shared: dict[object, object] = {}
    last: dict[tuple[str, str, str], RebalanceEvent] = {}
    whole: list[RebalanceEvent] = []
    alone: list[RebalanceChange] = []
    for each in sorted(told, key=lambda one: one.started):
        event = each.event if isinstance(each, RebalanceChange) else each
        key = event.group, event.client_id, event.topic
        before = last.get(key)
        if isinstance(each, RebalanceChange):
            if before is not None and before.started == event.started:
                continue  # sent twice
            if before is None or before.started != each.follows:
                alone.append(each)
                continue
            event = each.completed(before)
        last[key] = event = _with_shared(event, before, shared)
        whole.append(event)
    return whole, alone


def _with_shared(
    event: RebalanceEvent, before: RebalanceEvent | None, shared: dict[object, object]
) -> RebalanceEvent:
    members, queues = event.members, event.queues
    # Those of the event before are shared already, and to hash a long list takes long.
    if before is None or members is not before.members:
        members = _one_of(members, shared)
    if before is None or queues is not before.queues:
        queues = _one_of(queues, shared)
    return msgspec.structs.replace(event, members=members, queues=queues)


def _one_of(value: T, shared: dict[object, object]) -> T:
    found = shared.setdefault(value, value)
    assert isinstance(found, type(value))
    return found
