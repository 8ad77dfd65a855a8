"""What a group wants of a topic."""

from pocketmq.model.value import WireValue

TAG = "TAG"
SQL92 = "SQL92"
ALL = "*"


class Subscription(WireValue, frozen=True, kw_only=True):
    """A topic and the expression that selects its messages (Java: SubscriptionData).

    Build one with `pocketmq.protocol.filter.subscribe`, which reads the expression.
    """

    topic: str
    sub_string: str = ALL
    expression_type: str = TAG
    tags_set: frozenset[str] = frozenset()
    code_set: frozenset[int] = frozenset()
    sub_version: int = 0
    class_filter_mode: bool = False
