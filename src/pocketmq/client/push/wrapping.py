"""What a subscription puts around its handler.

From the inside out: the type, deduplication, interceptors, the retry rule. So interceptors see what
the handler itself raised, and messages as they came.
"""

from collections.abc import Sequence

import msgspec

from pocketmq.client.codecs import BodyCodec, check_codec
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.interceptors import HandlerInterceptor
from pocketmq.client.push.deduplication import Deduplicate, deduplicated
from pocketmq.client.push.handlers import WrappedFunction
from pocketmq.client.push.interception import intercepted
from pocketmq.client.push.retry_rule import RetryRule, ruled
from pocketmq.client.push.typed import Undecodable, UndecodableWord, decoding
from pocketmq.errors import InvalidInput


class HandlerRules(msgspec.Struct, frozen=True):
    """What a subscription asks for besides its handler."""

    codec: BodyCodec | None = None
    undecodable: UndecodableWord = "dead_letter"
    retry: RetryRule | None = None
    deduplicate: Deduplicate | None = None

    def __post_init__(self) -> None:
        check_codec(self.codec)
        words = [each.value for each in Undecodable]
        if self.undecodable not in words:
            raise InvalidInput(f"undecodable is one of {words}, not {self.undecodable!r}")
        for name, kind in (("retry", RetryRule), ("deduplicate", Deduplicate)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidInput(f"{name} is a {kind.__name__}, not a {type(value).__name__}")


class HandlerPlace(msgspec.Struct, frozen=True):
    """Where a handler is called: the consumer's options, and its topic."""

    options: PushConsumerOptions
    topic: str
    batch: bool = False


def wrapped(
    function: WrappedFunction,
    rules: HandlerRules,
    interceptors: Sequence[HandlerInterceptor],
    place: HandlerPlace,
) -> WrappedFunction:
    """Return a handler with everything around it; itself if there is nothing.

    Raises `InvalidInput` for rules that cannot be kept.
    """
    made = function
    if rules.codec is not None:
        made = decoding(made, rules.codec, Undecodable(rules.undecodable), batch=place.batch)
        if (
            made is not function
            and place.batch
            and place.options.orderly
            and rules.undecodable == "dead_letter"
        ):
            raise InvalidInput(
                "an orderly consumer cannot set one message of a list aside; use "
                "undecodable='retry' or 'skip', or a handler of single messages"
            )
    group, topic, batch = place.options.group, place.topic, place.batch
    if rules.deduplicate is not None:
        made = deduplicated(made, rules.deduplicate, group=group, topic=topic, batch=batch)
    made = intercepted(made, interceptors, group=group, topic=topic, batch=batch)
    return made if rules.retry is None else ruled(made, rules.retry, batch=batch)
