"""What a consumer tells of itself, in the words of mqadmin."""

from pocketmq.cli.admin.java_text import java_word
from pocketmq.cli.admin.shown import row
from pocketmq.model.queue import sort_queues
from pocketmq.protocol.requests.client_calls import (
    PopProcessQueueInfo,
    ProcessQueueBody,
    RunningInfo,
)

_QUEUES = "%-64s  %-32s  %-4s  %-20s"


def running_lines(info: RunningInfo) -> list[str]:
    """Write everything a consumer tells."""
    lines = ["#Consumer Properties#"]
    lines += [row("%-40s: %s", *pair) for pair in sorted(info.properties.items())]
    lines += ["", "", "#Consumer Subscription#"]
    for number, each in enumerate(sorted(info.subscription_set, key=lambda s: s.topic), 1):
        mode = java_word(each.class_filter_mode)
        pattern = "%03d Topic: %-40s ClassFilter: %-8s SubExpression: %s"
        lines.append(row(pattern, number, each.topic, mode, each.sub_string))
    queues = sort_queues(set(info.mq_table))
    heads = ("#Topic", "#Broker Name", "#QID")
    lines += ["", "", "#Consumer Offset#", row(_QUEUES, *heads, "#Consumer Offset")]
    for queue in queues:
        pattern = "%-32s  %-32s  %-4d  %-20d"
        where = (queue.topic, queue.broker_name, queue.queue_id)
        lines.append(row(pattern, *where, info.mq_table[queue].commit_offset))
    lines += ["", "", "#Consumer MQ Detail#", row(_QUEUES, *heads, "#ProcessQueueInfo")]
    for queue in queues:
        where = (queue.topic, queue.broker_name, queue.queue_id)
        lines.append(row("%-64s  %-32s  %-4d  %s", *where, _held(info.mq_table[queue])))
    pattern = "%-32s  %-32s  %-4s  %-20s"
    lines += ["", "", "#Consumer Pop Detail#", row(pattern, *heads, "#ProcessQueueInfo")]
    for queue in sort_queues(set(info.mq_pop_table)):
        where = (queue.topic, queue.broker_name, queue.queue_id)
        lines.append(row("%-32s  %-32s  %-4d  %s", *where, _popped(info.mq_pop_table[queue])))
    return [*lines, *_rates(info), *_rest(info)]


def _rates(info: RunningInfo) -> list[str]:
    heads = ("#Pull RT", "#Pull TPS", "#Consume RT", "#ConsumeOK TPS", "#ConsumeFailed TPS")
    pattern = "%-64s  %14s %14s %14s %14s %18s %25s"
    lines = ["", "", "#Consumer RT&TPS#"]
    lines.append(row(pattern, "#Topic", *heads, "#ConsumeFailedMsgsInHour"))
    for topic, status in sorted(info.status_table.items()):
        lines.append(
            row(
                "%-32s  %14.2f %14.2f %14.2f %14.2f %18.2f %25d",
                topic,
                status.pull_rt,
                status.pull_tps,
                status.consume_rt,
                status.consume_ok_tps,
                status.consume_failed_tps,
                status.consume_failed_msgs,
            )
        )
    return lines


def _rest(info: RunningInfo) -> list[str]:
    lines = ["", "", "#User Consume Info#"]
    lines += [row("%-40s: %s", *pair) for pair in sorted(info.user_consumer_info.items())]
    if info.jstack is not None:
        lines += ["", "", "#Consumer jstack#", *info.jstack.splitlines()]
    return lines


def _held(held: ProcessQueueBody) -> str:
    """Write what a member holds of a queue."""
    return (
        f"ProcessQueueInfo [commitOffset={held.commit_offset}, "
        f"cachedMsgMinOffset={held.cached_msg_min_offset}, "
        f"cachedMsgMaxOffset={held.cached_msg_max_offset}, "
        f"cachedMsgCount={held.cached_msg_count}, "
        f"cachedMsgSizeInMiB={held.cached_msg_size_in_mib}, "
        f"transactionMsgMinOffset={held.transaction_msg_min_offset}, "
        f"transactionMsgMaxOffset={held.transaction_msg_max_offset}, "
        f"transactionMsgCount={held.transaction_msg_count}, locked={java_word(held.locked)}, "
        f"tryUnlockTimes={held.try_unlock_times}, "
        f"lastLockTimestamp={_compact(held.last_lock_timestamp)}, "
        f"droped={java_word(held.dropped)}, "
        f"lastPullTimestamp={_compact(held.last_pull_timestamp)}, "
        f"lastConsumeTimestamp={_compact(held.last_consume_timestamp)}]"
    )


def _popped(held: PopProcessQueueInfo) -> str:
    return (
        f"PopProcessQueueInfo [waitAckCount:{held.wait_ack_count}, "
        f"droped:{java_word(held.dropped)}, lastPopTimestamp:{held.last_pop_timestamp}]"
    )


def _compact(time_ms: int) -> str:
    """Write a time as `20260131120000123`."""
    import time

    moment = time.strftime("%Y%m%d%H%M%S", time.localtime(time_ms / 1000))
    return f"{moment}{time_ms % 1000:03d}"
