"""Which messages a pull gets: from the group's heartbeats, or from the pull itself.

Owns how a subscription becomes tag codes or a function over messages, and the refusals of pulls
whose subscription the broker does not have or cannot parse, in Java's words.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import msgspec

from pocketmq.broker.core.refusals import MORE_HELP
from pocketmq.broker.members.consumers import TopicSubscription, subscribed
from pocketmq.broker.state import BrokerState
from pocketmq.errors import FilterSyntaxError, ResponseCode, server_error
from pocketmq.protocol import RecordView
from pocketmq.protocol.filter import SqlFilter, is_tag_kind, subscribe
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.requests.reading import PullRequest

Matches: TypeAlias = Callable[[int, memoryview], bool]


class Selection(msgspec.Struct, frozen=True):
    """The messages a pull wants of its queue."""

    kind: str
    by_tag: bool
    codes: frozenset[int] | None = None  # tag codes, None for all
    matches: Matches | None = None  # looks at the message itself


_REMEMBERED_SIZE = 4096
EVERYTHING = Selection("TAG", by_tag=True)


def carried_selection(topic: str, expression: str | None, kind: str | None) -> Selection:
    """Return the selection that a pull carries itself.

    Raises `ServerError`, also for an expression Java would answer with everything: it is a mistake
    of the client, which should be reported.
    """
    remembered = len(expression or "") + len(kind or "") <= _REMEMBERED_SIZE
    read = _read_carried if remembered else _read_carried.__wrapped__
    return read(topic, expression, kind)


@lru_cache(maxsize=1024)
def _read_carried(topic: str, expression: str | None, kind: str | None) -> Selection:
    try:
        made = subscribed(subscribe(topic, expression, kind or "TAG"))
    except FilterSyntaxError as error:
        raise _not_parsed() from error
    if not made.by_tag and made.sql is None:
        raise _not_parsed()
    return _selection(made)


def group_selection(state: BrokerState, header: PullRequest) -> Selection:
    """Return the selection a group subscribed with its heartbeats; raises `ServerError`."""
    group = state.consumers.get(header.consumer_group)
    if group is None:
        raise server_error(
            ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist{MORE_HELP}"
        )
    name = header.consumer_group
    config = state.groups.get(name)
    if config is not None and not config.consume_broadcast_enable and group.broadcasting:
        raise server_error(
            ResponseCode.NO_PERMISSION,
            f"the consumer group[{name}] can not consume by broadcast way",
        )
    if not state.groups.may_read(name, header.topic):
        raise server_error(
            ResponseCode.NO_PERMISSION,
            f"the consumer group[{name}] is forbidden for topic[{header.topic}]",
        )
    known = group.subscriptions.get(header.topic)
    if known is None:
        raise server_error(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            f"the consumer's subscription not exist{MORE_HELP}",
        )
    if known.subscription.sub_version < header.sub_version:
        return _ahead_of_heartbeat(known, header)
    if not known.by_tag and known.sql is None:
        raise server_error(
            ResponseCode.FILTER_DATA_NOT_EXIST,
            "The broker's consumer filter data is not exist!Your expression may be wrong!",
        )
    return _selection(known)


def _ahead_of_heartbeat(known: TopicSubscription, header: PullRequest) -> Selection:
    """Serve a pull whose subscription is newer than the last heartbeat, if that is safe.

    Java refuses all of them (25), and a group that just started may then get nothing for 30 s.
    Clients check the tag of every message again themselves, so by tags everything may be returned
    whatever the new expression is; by SQL they cannot.
    """
    if known.by_tag and is_tag_kind(header.expression_type):
        return EVERYTHING
    raise server_error(
        ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
    )


def _selection(made: TopicSubscription) -> Selection:
    kind = made.subscription.expression_type
    if made.sql is not None:
        return Selection(kind, by_tag=False, matches=_by_sql(made.sql))
    codes = made.tags.codes
    if codes is None:
        return EVERYTHING
    return Selection(kind, by_tag=True, codes=codes)


def _by_sql(sql: SqlFilter) -> Matches:
    def matches(tag: int, record: memoryview) -> bool:
        del tag
        return sql.matches(decode_properties(RecordView(record, 0).property_bytes))

    return matches


def _not_parsed() -> Exception:
    return server_error(
        ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
    )
