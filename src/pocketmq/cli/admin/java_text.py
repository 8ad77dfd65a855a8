"""Texts as mqadmin prints them, byte for byte: Java's `toString` of its objects, and JSON."""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from pocketmq.cli.admin.shown import row, when_exactly
from pocketmq.model import GroupConfig, Permission, TopicConfig
from pocketmq.protocol.json_values import plain

if TYPE_CHECKING:
    from pocketmq.admin.tracks import Track
    from pocketmq.model.message import SendReceipt
    from pocketmq.protocol.received import ReceivedMessage


def attributes(changes: str | None) -> dict[str, str]:
    """Read changes of attributes such as `+a=b,-c`; raises `click.UsageError`."""
    found: dict[str, str] = {}
    for change in (changes or "").split(",") if changes else ():
        key, equals, value = change.strip().partition("=")
        if not key.startswith("+" if equals else "-"):
            raise click.UsageError(f"{change!r} is not a change of an attribute; give +a=b or -a")
        if key in found:
            raise click.UsageError(f"attribute {key[1:]!r} is given twice")
        found[key] = value
    return found


def java_map(values: dict[str, str]) -> str:
    """Return a map as Java prints it, `{a=b, c=d}`."""
    return "{" + ", ".join(f"{key}={value}" for key, value in values.items()) + "}"


def java_word(value: object) -> str:
    """Return a value as Java prints it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def topic_text(config: TopicConfig) -> str:
    """Return a topic's settings as one line."""
    return (
        f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_nums}, "
        f"writeQueueNums={config.write_queue_nums}, perm={Permission(config.perm).text()}, "
        f"topicFilterType={config.topic_filter_type.value}, "
        f"topicSysFlag={config.topic_sys_flag}, order={java_word(config.order)}, "
        f"attributes={java_map(config.attributes)}]"
    )


def group_fields(config: GroupConfig) -> dict[str, str]:
    """Return a group's settings by RocketMQ's names, in Java's order, as text."""
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
    """Return a group's settings as one line."""
    fields = ", ".join(f"{name}={value}" for name, value in group_fields(config).items())
    return f"SubscriptionGroupConfig{{{fields}}}"


def pretty_json(value: Any) -> str:
    """Return a value as fastjson prints it over several lines.

    Fields are sorted, null ones left out, and integer keys have no quotes.
    """
    return "\n".join(_pretty(plain(value), ""))


def _pretty(value: Any, indent: str) -> list[str]:
    deeper = indent + "\t"
    if isinstance(value, dict):
        items = [(_key(key), item) for key, item in value.items() if item is not None]
        return _block("{", "}", items, indent, deeper)
    if isinstance(value, list):
        return _block("[", "]", [("", item) for item in value], indent, deeper)
    return [msgspec.json.encode(value).decode()]


def _block(
    start: str, end: str, items: list[tuple[str, Any]], indent: str, deeper: str
) -> list[str]:
    if not items and start == "{":  # an empty array takes two lines
        return [start + end]
    lines = [start]
    for position, (key, item) in enumerate(items):
        first, *rest = _pretty(item, deeper)
        lines += [f"{deeper}{key}{first}", *rest]
        if position < len(items) - 1:
            lines[-1] += ","
    return [*lines, indent + end]


def _key(key: object) -> str:
    return f"{key}:" if isinstance(key, int) else f"{msgspec.json.encode(str(key)).decode()}:"


def message_lines(
    message: "ReceivedMessage", *, with_id: bool, charset: str | None = None
) -> list[str]:
    """Return a message, one field per line; mqadmin writes the body to a file instead."""
    fields = [
        ("Topic:", message.topic),
        ("Tags:", f"[{java_word(message.tag)}]"),
        ("Keys:", f"[{' '.join(message.keys) or 'null'}]"),
        ("Queue ID:", message.queue_id),
        ("Queue Offset:", message.queue_offset),
        ("CommitLog Offset:", message.commit_log_offset),
        ("Reconsume Times:", message.reconsume_times),
        ("Born Timestamp:", when_exactly(message.born_timestamp_ms)),
        ("Store Timestamp:", when_exactly(message.store_timestamp_ms)),
        ("Born Host:", message.born_host),
        ("Store Host:", message.store_host),
        ("System Flag:", message.sys_flag),
        ("Properties:", java_map(dict(message.properties))),
        ("Message Body:", body_text(message, charset)),
    ]
    if with_id:
        fields.insert(0, ("OffsetID:", message.offset_message_id))
    return [row("%-20s %s", *field) for field in fields]


def track_lines(tracks: "list[Track]") -> list[str]:
    """Return the state of a message in each group."""
    if not tracks:
        return ["", "", "WARN: No Consumer"]
    return [
        "",
        "",
        *(
            f"MessageTrack [consumerGroup={each.group}, trackType={each.kind.value}, "
            f"exceptionDesc={java_word(each.reason)}]"
            for each in tracks
        ),
    ]


def body_text(message: "ReceivedMessage", charset: str | None = None) -> str:
    """Return a body as text; undecodable bytes are escaped."""
    try:
        return message.body.decode(charset or "utf-8", "backslashreplace")
    except LookupError:
        raise click.UsageError(f"unknown character set {charset!r}") from None


def one_line(message: "ReceivedMessage", body: str | None) -> str:
    """Return a message as one line, as printMsg does, but the body once, as text."""
    return (
        f"MSGID: {message.message_id} MessageExt [brokerName={message.broker_name}, "
        f"queueId={message.queue_id}, storeSize={message.store_size}, "
        f"queueOffset={message.queue_offset}, sysFlag={message.sys_flag}, "
        f"bornTimestamp={message.born_timestamp_ms}, bornHost=/{message.born_host}, "
        f"storeTimestamp={message.store_timestamp_ms}, storeHost=/{message.store_host}, "
        f"msgId={message.offset_message_id}, commitLogOffset={message.commit_log_offset}, "
        f"bodyCRC={message.body_crc}, reconsumeTimes={message.reconsume_times}, "
        f"preparedTransactionOffset={message.prepared_transaction_offset}, "
        f"toString()=Message{{topic='{message.topic}', flag={message.flag}, "
        f"properties={java_map(dict(message.properties))}, "
        f"transactionId='{java_word(message.transaction_id)}'}}] "
        f"BODY: {'NOT PRINT BODY' if body is None else body}"
    )


def receipt_text(receipt: "SendReceipt") -> str:
    """Return a receipt as one line."""
    queue = receipt.queue.java_text()
    return (
        f"SendResult [sendStatus={receipt.status.value}, msgId={receipt.message_id}, "
        f"offsetMsgId={java_word(receipt.offset_message_id)}, messageQueue={queue}, "
        f"queueOffset={receipt.queue_offset}, recallHandle={java_word(receipt.recall_handle)}]"
    )
