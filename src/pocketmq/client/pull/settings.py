"""The keywords of a pull consumer, for type checkers; meanings and defaults are the options'."""

from pocketmq.balance.allocation import Strategy, StrategySettings
from pocketmq.balance.consumer.limits import LitePullLimits
from pocketmq.client.settings import ClientSettings
from pocketmq.model.kinds import ConsumeFromWhere, MessageModel


class PullSettings(ClientSettings, total=False):
    """The fields of `PullConsumerOptions`, and those of the client."""

    model: MessageModel
    consume_from: ConsumeFromWhere
    start_at: float | None
    strategy: str | Strategy
    strategy_settings: StrategySettings
    unit_mode: bool
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
