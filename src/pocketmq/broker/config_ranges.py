"""Valid values of each setting: one table for files, options and changes at run time.

With a value out of range a broker would start that cannot register, store or answer. Numbers that
are not listed have `USUAL`.
"""

from collections.abc import Callable

from pocketmq.broker.core.names import topic_fault
from pocketmq.errors import InvalidInput
from pocketmq.model.route import MAX_ROUTE_QUEUES

_MOST = 2**31 - 1
_FRAME = 15 << 20  # clients take frames up to 16 MiB
_MINUTES = 600_000
USUAL = (0, _MOST)

RANGES: dict[str, tuple[int, int]] = {
    "advertisedPort": (0, 65535),
    "brokerId": (0, 0),  # a master; there are no slaves
    "brokerPermission": (0, 7),
    "channelExpiredTimeout": (1000, _MOST),
    "defaultQueryMaxNum": (1, 10_000),
    "defaultTopicQueueNums": (1, MAX_ROUTE_QUEUES),
    "diskMaxUsedSpaceRatio": (10, 100),  # Java raises lower ones to these
    "diskSpaceCleanForciblyRatio": (30, 100),
    "diskSpaceWarningLevelRatio": (35, 100),
    "fileReservedBytes": (0, 2**63 - 1),
    "fileReservedTime": (0, 24 * 36_525),
    "flushConsumerOffsetInterval": (1, 24 * 3_600_000),
    "listenPort": (0, 65535),
    "mappedFileSizeCommitLog": (4096, _MOST),
    "metricGrpcExporterIntervalInMills": (100, _MOST),
    "maxConnectionMemory": (1 << 20, 2**63 - 1),
    "maxMessageSize": (1, _FRAME),
    "maxMsgsNumBatch": (1, 10_000),
    "maxPopPollingSize": (1, _MOST),
    "maxRequestBodySize": (4096, _MOST),
    "maxSuspendedPulls": (1, _MOST),
    "maxSuspendedPullsOfConnection": (1, _MOST),
    "maxTransferBytesOnMessageInMemory": (1, _FRAME),
    "maxTransferBytesOnRequest": (1, _FRAME),
    "maxTransferCountOnMessageInMemory": (1, _MOST),
    "maxTransferCountOnRequest": (1, _MOST),
    "maxUnsyncedBytes": (1, 2**63 - 1),
    "maxUnsyncedMessages": (1, _MOST),
    "metricsPromExporterPort": (0, 65535),
    "popFromRetryProbability": (0, 100),
    "popFromRetryProbabilityForPriority": (0, 100),
    "popInflightMessageThreshold": (1, _MOST),
    "popPollingSize": (1, _MOST),
    "registerBrokerTimeoutMills": (500, _MINUTES),
    "registerNameServerPeriod": (1, _MOST),  # used within 10 s to 60 s
    "reviveQueueNum": (1, 1024),
    "shortPollingTimeMills": (1, _MINUTES),
    "subscriptionExpiredTimeout": (1000, _MOST),
    "syncFlushTimeout": (100, _MINUTES),
    "timerMaxDelaySec": (1, _MOST),
    "transactionCheckInterval": (1, _MOST),
    "transactionCheckMax": (1, _MOST),
    "transactionTimeOut": (1, _MOST),
    "waitTimeMillsInAckQueue": (10, _MINUTES),
    "waitTimeMillsInAdminBrokerQueue": (10, _MINUTES),
    "waitTimeMillsInHeartbeatQueue": (10, _MINUTES),
    "waitTimeMillsInLitePullQueue": (10, _MINUTES),
    "waitTimeMillsInPullQueue": (10, _MINUTES),
    "waitTimeMillsInSendQueue": (10, _MINUTES),
    "waitTimeMillsInTransactionQueue": (10, _MINUTES),
}

CHOICES: dict[str, tuple[str, ...]] = {
    "defaultMessageRequestMode": ("PULL", "POP"),
    "flushDiskType": ("ASYNC_FLUSH", "SYNC_FLUSH"),
    "metricsExporterType": ("DISABLE", "PROM", "OTEL", "OTLP_GRPC"),
}


def range_text(key: str) -> str:
    """Return the valid range of a number, in words."""
    low, high = RANGES.get(key, USUAL)
    return f"a number from {low} to {high}" if low != high else str(low)


def check_value(key: str, value: object) -> None:
    """Raise `InvalidInput`, which names what is allowed, for an invalid value."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        low, high = RANGES.get(key, USUAL)
        if not low <= value <= high:
            raise _refused(f"{key}={value}", f"must be {range_text(key)}")
    elif key in CHOICES and value not in CHOICES[key]:
        raise _refused(f"{key}={str(value)[:80]}", f"must be {' or '.join(CHOICES[key])}")
    elif key in _TEXTS:
        fault = _TEXTS[key](str(value))
        if fault is not None:
            raise _refused(f"{key}={str(value)[:80]!r}" if value else f"empty {key}", fault)


def _refused(what: str, why: str) -> InvalidInput:
    return InvalidInput(f"invalid setting {what}: {why}")


def _name_fault(text: str) -> str | None:
    """Return why name servers and scripts could not use a name; None if they can."""
    if not text:
        return "must be a name"
    if len(text) > 255 or not text.isprintable() or any(c.isspace() or c in ",;" for c in text):
        return "must be a name of at most 255 characters, without blanks, commas and semicolons"
    return None


_TEXTS: dict[str, Callable[[str], str | None]] = {
    "brokerClusterName": _name_fault,
    "brokerName": _name_fault,
    "msgTraceTopicName": topic_fault,
}
