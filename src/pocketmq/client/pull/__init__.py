"""The pull consumer (Java: DefaultLitePullConsumer): queues are read at the caller's pace.

Pull tasks fill a cache ahead of `poll`; which queues are read is shared out with the group, by the
same rebalancing as for push consumers, or assigned by hand.
"""

from pocketmq.client.pull.consumer import PullConsumer

__all__ = ["PullConsumer"]
