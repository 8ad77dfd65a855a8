"""Write docs/reference/options.md from the option classes; `--check` only compares.

What a field means is read from the source: the text that stands below it.
"""

import ast
import inspect
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from pocketmq.balance.consumer.limits import LitePullLimits, PullLimits, QueueLimits
from pocketmq.balance.profile import Profile
from pocketmq.client import consumer_options
from pocketmq.client.checks import words_of
from pocketmq.client.options import ClientOptions, Credentials
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.net.tls import Tls

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "options.md"
HEAD = """# Options

Every option is a keyword of the clients that have it, the same for `pocketmq` and `pocketmq.aio`:

```python
import pocketmq as mq

consumer = mq.PushConsumer(
    "127.0.0.1:9876", group="billing", consume_from="first", threads=8, request_timeout=5.0
)
print(consumer.options.threads, consumer)
```

Times are in seconds, sizes in bytes. Defaults are Java's unless a row says otherwise. An unknown
keyword, a wrong type or an impossible value raises `InvalidInput` immediately, with the name of the
option. Options with quoted words accept the word or the value: `model="broadcasting"` or
`model=mq.MessageModel.BROADCASTING`.

To share options among clients, pass `options=mq.ClientOptions(...)` to each; keywords take
precedence. `python tools/options_page.py` writes this page.
"""
SECTIONS: list[tuple[str, str, type[msgspec.Struct]]] = [
    ("All clients", "`ClientOptions` (Java: `ClientConfig`)", ClientOptions),
    ("Producer", "`ProducerOptions` (Java: `DefaultMQProducer`)", ProducerOptions),
    (
        "Push and pull consumers",
        "What `PushConsumerOptions` and `PullConsumerOptions` share.",
        consumer_options.ConsumerOptions,
    ),
    (
        "Push consumer",
        "`PushConsumerOptions` (Java: `DefaultMQPushConsumer`)",
        consumer_options.PushConsumerOptions,
    ),
    (
        "Pull consumer",
        "`PullConsumerOptions` (Java: `DefaultLitePullConsumer`)",
        consumer_options.PullConsumerOptions,
    ),
    ("POP consumer", "`PopConsumerOptions`", consumer_options.PopConsumerOptions),
    ("Limits of a push consumer", "`limits=mq.PullLimits(count=200)`", PullLimits),
    ("Limits of a pull consumer", "`limits=mq.LitePullLimits(total=500)`", LitePullLimits),
    ("TLS", "`tls=mq.Tls(ca='roots.pem')`; clients of a cluster with TLS", Tls),
    ("Credentials", "`credentials=mq.Credentials(access_key=…, secret_key=…)`", Credentials),
]  # fmt: skip
JAVA = {
    "ClientOptions": {
        "name_servers": "namesrvAddr", "client_ip": "clientIP", "instance_name": "instanceName",
        "unit_name": "unitName", "namespace": "namespace", "namespace_v2": "namespaceV2",
        "credentials": "AclClientRPCHook", "tls": "useTLS, tls.client.*",
        "request_timeout": "mqClientApiTimeout", "route_interval": "pollNameServerInterval",
        "heartbeat_interval": "heartbeatBrokerInterval", "heartbeat_v2": "useHeartbeatV2",
        "persist_interval": "persistConsumerOffsetInterval", "vip_channel": "vipChannelEnabled",
    },
    "ProducerOptions": {
        "group": "producerGroup", "send_timeout": "sendMsgTimeout",
        "send_timeout_per_try": "sendMsgMaxTimeoutPerRequest",
        "retries": "retryTimesWhenSendFailed, retryTimesWhenSendAsyncFailed",
        "retry_when_not_stored_ok": "retryAnotherBrokerWhenNotStoreOK",
        "compress_from": "compressMsgBodyOverHowmuch", "compression": "compressType",
        "compression_level": "compressLevel", "max_message_size": "maxMessageSize",
        "template_topic": "createTopicKey", "new_topic_queues": "defaultTopicQueueNums",
        "avoid_slow_brokers": "sendLatencyFaultEnable", "probe_brokers": "startDetectorEnable",
        "window": "backPressureForAsyncSendNum (off)",
        "window_bytes": "backPressureForAsyncSendSize (off)",
        "linger": "batchMaxDelayMs (autoBatch)", "batch_bytes": "batchMaxBytes (autoBatch)",
        "trace": "enableMsgTrace", "trace_topic": "customizedTraceTopic",
    },
    "ConsumerOptions": {
        "group": "consumerGroup", "model": "messageModel", "consume_from": "consumeFromWhere",
        "start_at": "consumeTimestamp", "strategy": "allocateMessageQueueStrategy",
        "unit_mode": "unitMode", "offsets_dir": "rocketmq.client.localOffsetStoreDir",
    },
    "PushConsumerOptions": {
        "orderly": "MessageListenerOrderly", "pull_interval": "pullInterval",
        "pull_retry": "pullTimeDelayMillsWhenException", "pull_batch": "pullBatchSize",
        "pull_batch_bytes": "pullBatchSizeInBytes", "handler_batch": "consumeMessageBatchMaxSize",
        "threads": "consumeThreadMin, consumeThreadMax",
        "max_reconsume_times": "maxReconsumeTimes",
        "suspend_queue": "suspendCurrentQueueTimeMillis", "consume_timeout": "consumeTimeout",
        "subscription_in_pull": "postSubscriptionWhenPull", "client_rebalance": "clientRebalance",
        "pop_batch": "popBatchNums", "pop_invisible": "popInvisibleTime",
        "pop_limit": "popThresholdForQueue",
        "stop_wait": "awaitTerminationMillisWhenShutdown (0)",
        "trace": "enableMsgTrace", "trace_topic": "customizedTraceTopic",
    },
    "PullConsumerOptions": {
        "pull_batch": "pullBatchSize", "poll_timeout": "pollTimeoutMillis",
        "auto_commit": "autoCommit", "auto_commit_interval": "autoCommitIntervalMillis",
        "suspend": "brokerSuspendMaxTimeMillis",
        "pull_timeout": "consumerTimeoutMillisWhenSuspend",
        "topic_check_interval": "topicMetadataCheckIntervalMillis",
    },
    "PullLimits": {
        "count": "pullThresholdForQueue", "size_mib": "pullThresholdSizeForQueue",
        "span": "consumeConcurrentlyMaxSpan", "topic_count": "pullThresholdForTopic",
        "topic_size_mib": "pullThresholdSizeForTopic",
    },
    "LitePullLimits": {
        "total": "pullThresholdForAll",
        "queue": "pullThresholdForQueue, pullThresholdSizeForQueue, consumeMaxSpan",
    },
    "Tls": {
        "cert": "tls.client.certPath", "key": "tls.client.keyPath",
        "key_password": "tls.client.keyPassword", "ca": "tls.client.trustCertPath",
        "verify": "tls.client.authServer (false)",
    },
    "Credentials": {
        "access_key": "accessKey", "secret_key": "secretKey", "security_token": "securityToken",
    },
}  # fmt: skip


def meanings(cls: type[msgspec.Struct]) -> dict[str, str]:
    """Read the text below each field, of the class and of those it is made from."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not issubclass(base, msgspec.Struct) or base is msgspec.Struct:
            continue
        [tree] = ast.parse(inspect.getsource(base)).body
        assert isinstance(tree, ast.ClassDef)
        for field, after in zip(tree.body, [*tree.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                text = after.value if isinstance(after, ast.Expr) else None
                said = text.value if isinstance(text, ast.Constant) else ""
                found[field.target.id] = " ".join(str(said).split())
    return found


def default(field: msgspec.structs.FieldInfo) -> str:
    """Show a default as a caller would write it."""
    if field.required:
        return "–"
    value: Any = field.default
    if value is msgspec.NODEFAULT:
        value = field.default_factory()
    if isinstance(value, Profile):
        return f'`"{value.line}"`'
    if isinstance(value, Enum):
        words = {meant: word for word, meant in words_of(type(value)).items()}
        return f'`"{words[value]}"`'
    if isinstance(value, QueueLimits):
        return f"`QueueLimits({value.count}, {value.size_mib}, {value.span})`"
    if isinstance(value, msgspec.Struct):
        return f"`{type(value).__name__}()`"
    if isinstance(value, float):
        return f"{value:g}"
    return f"`{value!r}`" if isinstance(value, str) else str(value)


def section(title: str, intro: str, cls: type[msgspec.Struct]) -> str:
    """Return the table of one class; what consumers share stands once."""
    known = (
        set(consumer_options.ConsumerOptions.__struct_fields__)
        if cls is not consumer_options.ConsumerOptions
        else set()
    )
    shared = known if issubclass(cls, consumer_options.ConsumerOptions) else set()
    java, said = JAVA.get(cls.__name__, {}), meanings(cls)
    silent = [name for name in cls.__struct_fields__ if not said[name]]
    assert not silent, f"say what these mean in {cls.__name__}: {silent}"
    rows = [
        f"| `{field.name}` | {default(field)} | {java.get(field.name, '')} | {said[field.name]} |"
        for field in msgspec.structs.fields(cls)
        if field.name not in shared
    ]
    table = ["| keyword | default | in Java | meaning |", "|---|---|---|---|", *rows]
    return f"\n## {title}\n\n{intro}\n\n" + "\n".join(table) + "\n"


def page() -> str:
    """Return the page's text."""
    return HEAD + "".join(section(*each) for each in SECTIONS)


def main() -> int:
    """Write or check."""
    if "--check" in sys.argv:
        return 0 if PAGE.read_text() == page() else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
