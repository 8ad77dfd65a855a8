"""The keywords of a pull consumer, for type checkers; meanings and defaults are the options'."""

from pocketmq.balance.consumer.limits import LitePullLimits
from pocketmq.client.consumer_options import ConsumerSettings


class PullSettings(ConsumerSettings, total=False):
    """The fields of `PullConsumerOptions`, and those of the client."""

    offsets_dir: str
    history_size: int
    limits: LitePullLimits
    pull_batch: int
    poll_timeout: float
    auto_commit: bool
    auto_commit_interval: float
    suspend: float
    pull_timeout: float
    topic_check_interval: float
