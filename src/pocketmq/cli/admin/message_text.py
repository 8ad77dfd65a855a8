"""Messages in the words of mqadmin."""

from pocketmq.admin.tracks import Track
from pocketmq.cli.admin.java_text import java_map, java_word
from pocketmq.cli.admin.shown import row, when_exactly
from pocketmq.model.message import SendReceipt
from pocketmq.protocol.received import ReceivedMessage


def message_lines(
    message: ReceivedMessage, *, with_id: bool, charset: str | None = None
) -> list[str]:
    """Write a message, a field a line. Where mqadmin writes the body to a file, it is shown."""
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


def track_lines(tracks: list[Track]) -> list[str]:
    """Write what became of a message in each group."""
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


def body_text(message: ReceivedMessage, charset: str | None = None) -> str:
    """Read a body as text; what is none is escaped."""
    try:
        return message.body.decode(charset or "utf-8", "backslashreplace")
    except LookupError:
        import click

        raise click.UsageError(f"{charset!r} is no character set") from None


def one_line(message: ReceivedMessage, body: str | None) -> str:
    """Write a message on a line, as printMsg does; the bytes of the body come once, as text."""
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


def receipt_text(receipt: SendReceipt) -> str:
    """Write a receipt."""
    return (
        f"SendResult [sendStatus={receipt.status.value}, msgId={receipt.message_id}, "
        f"offsetMsgId={java_word(receipt.offset_message_id)}, messageQueue={receipt.queue}, "
        f"queueOffset={receipt.queue_offset}, recallHandle={java_word(receipt.recall_handle)}]"
    )
