"""The pull consumer (Java: DefaultLitePullConsumer): the caller polls.

Queue loops fill a cache ahead of `poll`; queues are assigned by the same rebalancing as for push
consumers, or by hand.
"""

from pocketmq.client.pull.consumer import PullConsumer

__all__ = ["PullConsumer"]
