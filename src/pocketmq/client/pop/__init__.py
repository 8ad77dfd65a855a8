"""The POP consumer of RocketMQ 5.x: take messages, acknowledge each, hide it for longer.

The broker keeps count of who has what; no queue is assigned and no offset is kept here. A message
that is not acknowledged in time comes back.
"""

from typing import TYPE_CHECKING, Any

from pocketmq.client.consumer_options import PopConsumerOptions

if TYPE_CHECKING:
    from pocketmq.client.pop.consumer import PopConsumer as PopConsumer

__all__ = ["PopConsumer", "PopConsumerOptions"]


def __getattr__(name: str) -> Any:
    # The proxy uses the requests alone; the members of groups below a consumer are many modules.
    if name == "PopConsumer":
        from pocketmq.client.pop.consumer import PopConsumer

        return PopConsumer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
