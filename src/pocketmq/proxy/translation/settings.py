"""Settings of clients: what they report, completed by what the proxy decides for them."""

from pocketmq.model import GroupConfig
from pocketmq.model.delay import CustomizedRetry, ExponentialRetry, RetryPolicyKind
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.wire import definition as d

PRODUCERS = frozenset({d.ClientType.PRODUCER})
CONSUMERS = frozenset({d.ClientType.PUSH_CONSUMER, d.ClientType.SIMPLE_CONSUMER})


def for_producer(reported: d.Settings, limits: ProxyLimits) -> d.Settings:
    """Return the settings that a producer gets back."""
    settings = _copy(reported)
    policy = settings.backoff_policy
    policy.max_attempts = limits.producer_max_attempts
    policy.exponential_backoff.initial.FromMilliseconds(_ms(limits.producer_backoff_initial))
    policy.exponential_backoff.max.FromMilliseconds(_ms(limits.producer_backoff_max))
    policy.exponential_backoff.multiplier = limits.producer_backoff_multiplier
    settings.publishing.validate_message_type = limits.check_message_types
    settings.publishing.max_body_size = limits.max_message_size
    return settings


def for_consumer(reported: d.Settings, group: GroupConfig, limits: ProxyLimits) -> d.Settings:
    """Return the settings that a consumer gets back, by the set-up of its group."""
    settings = _copy(reported)
    subscription = settings.subscription
    subscription.receive_batch_size = limits.receive_batch_size
    subscription.long_polling_timeout.FromMilliseconds(_ms(limits.max_long_polling))
    subscription.fifo = group.consume_message_orderly
    policy, retry = settings.backoff_policy, group.group_retry_policy
    policy.max_attempts = max_attempts(group)
    if retry.type is RetryPolicyKind.EXPONENTIAL:
        growing = retry.exponential_retry_policy or ExponentialRetry()
        policy.exponential_backoff.initial.FromMilliseconds(growing.initial)
        policy.exponential_backoff.max.FromMilliseconds(growing.max)
        policy.exponential_backoff.multiplier = growing.multiplier
    else:
        policy.ClearField("exponential_backoff")
        policy.customized_backoff.ClearField("next")
        for pause in (retry.customized_retry_policy or CustomizedRetry()).next:
            policy.customized_backoff.next.add().FromMilliseconds(pause)
    return settings


def max_attempts(group: GroupConfig) -> int:
    """Return how often a group's message is delivered at most."""
    return group.retry_max_times + 1


def _copy(reported: d.Settings) -> d.Settings:
    settings = d.Settings()
    settings.CopyFrom(reported)
    settings.metric.on = False  # clients do not export metrics to the proxy
    settings.metric.ClearField("endpoints")
    return settings


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
