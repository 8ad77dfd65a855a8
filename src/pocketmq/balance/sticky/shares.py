"""The members' numbers of queues: the second step of the sticky assignment, on numbers alone.

Of a topic with n queues each of m members gets n // m, some get one more. Which of them do is
chosen for all topics of a pool at once, by `extras`; retry topics are a pool of their own, because
they are mostly idle. The number of moves depends on nothing else, so what only counts queues, such
as a what-if over many groups, needs no queue here.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from pocketmq.balance.sticky.extras import Row, choose_extras
from pocketmq.balance.sticky.scores import member_key, topic_key
from pocketmq.model.names import RETRY_PREFIX


class TopicCount(msgspec.Struct, frozen=True):
    """A topic's number of queues, and how many of them each member owns up to now."""

    name: str
    queues: int
    owned: Mapping[str, int]


def keys_of(members: Iterable[str]) -> dict[str, int]:
    """Return the members' keys, in an order that does not depend on the input's."""
    return {member: member_key(member) for member in sorted(set(members))}


def extras_of(topics: Collection[TopicCount], keys: Mapping[str, int]) -> dict[str, frozenset[str]]:
    """Return for each topic the members that get one queue more; `keys` must not be empty."""
    extras: dict[str, frozenset[str]] = {}
    for retry in (False, True):
        pool = [topic for topic in topics if topic.name.startswith(RETRY_PREFIX) is retry]
        extras |= _of_pool(sorted(pool, key=lambda topic: topic.name), keys)
    return extras


def _of_pool(
    pool: Collection[TopicCount], keys: Mapping[str, int]
) -> Iterator[tuple[str, frozenset[str]]]:
    members = list(keys)
    column_of = {member: column for column, member in enumerate(members)}
    uneven, rows = [], []
    for topic in pool:
        floor, extras = divmod(topic.queues, len(members))
        if not extras:
            yield topic.name, frozenset()
            continue
        above = [column_of[member] for member, number in topic.owned.items() if number > floor]
        uneven.append(topic.name)
        rows.append(Row(topic_key(topic.name), extras, above))
    for name, columns in zip(uneven, choose_extras(rows, list(keys.values())), strict=True):
        yield name, frozenset([members[column] for column in columns])


def shares(topics: Collection[TopicCount], members: Collection[str]) -> dict[str, dict[str, int]]:
    """Return for each topic the number of queues of each member, as `assign` gives them.

    Owners that are not members must not be in `owned`. Without members there are no numbers.
    """
    if not members:
        return {topic.name: {} for topic in topics}
    present = set(members)
    extras: Mapping[str, Collection[str]] = {}
    if any(topic.queues % len(present) for topic in topics):
        extras = extras_of(topics, keys_of(present))
    found: dict[str, dict[str, int]] = {}
    for topic in topics:
        found[topic.name] = dict.fromkeys(present, topic.queues // len(present))
        for member in extras.get(topic.name, ()):
            found[topic.name][member] += 1
    return found
