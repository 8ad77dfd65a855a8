"""Subscriptions as a broker uses them: read once at the heartbeat, then applied by every pull."""

import msgspec

from pocketmq.errors import FilterSyntaxError
from pocketmq.model import Subscription
from pocketmq.model.groups import SQL92
from pocketmq.protocol.filter import SqlFilter, TagFilter, compile_sql, is_tag_kind, tag_filter


class TopicSubscription(msgspec.Struct, frozen=True):
    """A group's subscription to a topic with the filters it stands for."""

    subscription: Subscription
    tags: TagFilter
    sql: SqlFilter | None = None
    """The compiled expression; None for tags, and for an expression that does not parse."""

    @property
    def by_tag(self) -> bool:
        """Whether tags decide; otherwise `sql` does, and without it nothing can be pulled."""
        return is_tag_kind(self.subscription.expression_type)


def subscribed(
    subscription: Subscription, known: TopicSubscription | None = None
) -> TopicSubscription:
    """Prepare a subscription, reusing the filter of an older version with the same expression.

    An expression that does not parse is kept without a filter, as in Java: pulls are then refused.
    """
    sql = None
    if not is_tag_kind(subscription.expression_type):
        if known is not None and _same_expression(known.subscription, subscription):
            sql = known.sql
        else:
            sql = _compiled(subscription)
    return TopicSubscription(subscription, tag_filter(subscription), sql)


def expression_fault(subscription: Subscription) -> str | None:
    """Return why a broker cannot filter by this subscription; None if it can."""
    if is_tag_kind(subscription.expression_type):
        return None
    if subscription.expression_type != SQL92:
        return f"there is no filter of type {subscription.expression_type}"
    try:
        compile_sql(subscription.sub_string)
    except FilterSyntaxError as error:
        return f"{error.reason} at column {error.column}"
    return None


def _same_expression(one: Subscription, other: Subscription) -> bool:
    return (one.expression_type, one.sub_string) == (other.expression_type, other.sub_string)


def _compiled(subscription: Subscription) -> SqlFilter | None:
    if subscription.expression_type != SQL92:
        return None
    try:
        return compile_sql(subscription.sub_string)
    except FilterSyntaxError:
        return None
