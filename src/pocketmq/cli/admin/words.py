"""Texts that Java makes of its objects, where mqadmin prints them, and reads."""

import click

from pocketmq.model.groups import GroupConfig
from pocketmq.model.kinds import Permission
from pocketmq.model.topics import TopicConfig


def attributes(changes: str | None) -> dict[str, str]:
    """Read changes of attributes such as `+a=b,-c`; raises `click.UsageError`."""
    found: dict[str, str] = {}
    for change in (changes or "").split(",") if changes else ():
        key, equals, value = change.strip().partition("=")
        if not key.startswith("+" if equals else "-"):
            raise click.UsageError(f"{change!r} is no change of an attribute: give +a=b or -a")
        if key in found:
            raise click.UsageError(f"attribute {key[1:]!r} is changed twice")
        found[key] = value
    return found


def java_map(values: dict[str, str]) -> str:
    """Write a map as Java does, `{a=b, c=d}`."""
    return "{" + ", ".join(f"{key}={value}" for key, value in values.items()) + "}"


def java_word(value: object) -> str:
    """Write a value as Java does."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def topic_text(config: TopicConfig) -> str:
    """Write a topic's settings."""
    return (
        f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_nums}, "
        f"writeQueueNums={config.write_queue_nums}, perm={Permission(config.perm).text()}, "
        f"topicFilterType={config.topic_filter_type.value}, "
        f"topicSysFlag={config.topic_sys_flag}, order={java_word(config.order)}, "
        f"attributes={java_map(config.attributes)}]"
    )


def group_fields(config: GroupConfig) -> dict[str, str]:
    """Give a group's settings by RocketMQ's names, in Java's order, as text."""
    policy = config.group_retry_policy
    kinds = [
        f"type={policy.type.value}",
        f"exponentialRetryPolicy={java_word(policy.exponential_retry_policy)}",
        f"customizedRetryPolicy={java_word(policy.customized_retry_policy)}",
    ]
    return {
        "groupName": config.group_name,
        "consumeEnable": java_word(config.consume_enable),
        "consumeFromMinEnable": java_word(config.consume_from_min_enable),
        "consumeBroadcastEnable": java_word(config.consume_broadcast_enable),
        "consumeMessageOrderly": java_word(config.consume_message_orderly),
        "retryQueueNums": str(config.retry_queue_nums),
        "retryMaxTimes": str(config.retry_max_times),
        "groupRetryPolicy": f"GroupRetryPolicy{{{', '.join(kinds)}}}",
        "brokerId": str(config.broker_id),
        "whichBrokerWhenConsumeSlowly": str(config.which_broker_when_consume_slowly),
        "notifyConsumerIdsChangedEnable": java_word(config.notify_consumer_ids_changed_enable),
        "groupSysFlag": str(config.group_sys_flag),
        "consumeTimeoutMinute": str(config.consume_timeout_minute),
        "subscriptionDataSet": "null"
        if config.subscription_data_set is None
        else str([each.topic for each in config.subscription_data_set]),
        "attributes": java_map(config.attributes),
    }


def group_text(config: GroupConfig) -> str:
    """Write a group's settings on a line."""
    fields = ", ".join(f"{name}={value}" for name, value in group_fields(config).items())
    return f"SubscriptionGroupConfig{{{fields}}}"
