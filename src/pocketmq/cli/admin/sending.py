"""Commands that send messages, and measure how long sends take."""

import asyncio
import time

import click

from pocketmq.admin.admin import Admin
from pocketmq.cli.admin import flags, java_text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, row, when
from pocketmq.client.producer.producer import Producer
from pocketmq.errors import MQError
from pocketmq.model import Message, MessageQueue

_COLUMNS = "%-32s  %-4s  %-20s    %s"
_AMOUNT = flags.number("-a", "--amount", default=100, least=1, help="Number of messages.")
_SIZE = flags.number("-s", "--size", default=128, help="Bytes of each body.")


def _producer(admin: Admin, group: str, *, trace: bool = False) -> Producer:
    return Producer(group=group, options=admin.client_options, trace=trace)


@admin_command(
    "sendMessage",
    flags.TOPIC,
    flags.text("-p", "--body", help="Body of the message.", required=True),
    flags.text("-k", "--key", "keys", help="Keys, separated by spaces."),
    flags.text("-c", "--tags", "tag", help="Tag."),
    flags.text("-b", "--broker", help="Name of the broker to send to."),
    flags.number("-i", "--qid", "queue_id", help="Queue id; needs -b."),
    flags.truth("-m", "--msgTraceEnable", "trace", default=False, help="Trace the message."),
)
async def send_message(
    admin: Admin,
    *,
    topic: str,
    body: str,
    keys: str | None,
    tag: str | None,
    broker: str | None,
    queue_id: int | None,
    trace: bool,
) -> Shown:
    """Send a message."""
    if queue_id is not None and broker is None:
        raise click.UsageError("-i needs the queue's broker; give -b")
    message = Message(topic, body.encode(), tag=tag, keys=(keys or "").split())
    queue = None
    if broker is not None and queue_id is not None:
        queue = MessageQueue(topic, broker, queue_id)
    async with _producer(admin, "pocketmq_admin_send", trace=trace) as producer:
        if broker is not None and queue is None:
            queue = next((q for q in await producer.queues(topic) if q.broker_name == broker), None)
            if queue is None:
                raise click.UsageError(
                    f"topic {topic!r} has no writable queue on broker {broker!r}"
                )
        receipt = await producer.send(message, queue=queue)
    lines = [row(_COLUMNS, "#Broker Name", "#QID", "#Send Result", "#MsgId")]
    at = receipt.queue
    lines.append(
        row(_COLUMNS, at.broker_name, at.queue_id, receipt.status.value, receipt.message_id)
    )
    return Shown(lines, receipt)


@admin_command("checkMsgSendRT", flags.TOPIC, _AMOUNT, _SIZE)
async def check_times(admin: Admin, *, topic: str, amount: int, size: int) -> Shown:
    """Measure sends to the queues of a topic, in ms."""
    message = Message(topic, b"a" * size)
    lines = [row(_COLUMNS, "#Broker Name", "#QID", "#Send Result", "#RT")]
    sends = []
    async with _producer(admin, "pocketmq_admin_check") as producer:
        queues = await producer.queues(topic)
        for step in range(amount):
            queue = queues[step % len(queues)]
            ok, spent = await _timed(producer, message, queue)
            sends.append({"queue": queue, "ok": ok, "ms": spent})
            said = "true" if ok else "false"
            lines.append(row(_COLUMNS, queue.broker_name, queue.queue_id, said, round(spent)))
    counted = [each["ms"] for each in sends[1:]] or [
        sends[0]["ms"]
    ]  # without the first one, which connects
    average = sum(float(str(each)) for each in counted) / len(counted)
    lines.append(f"Avg RT: {average:.2f}")
    return Shown(lines, {"sends": sends, "average_ms": average})


async def _timed(producer: Producer, message: Message, queue: MessageQueue) -> tuple[bool, float]:
    started = time.perf_counter()
    try:
        await producer.send(message, queue=queue)
    except MQError:
        ok = False
    else:
        ok = True
    return ok, (time.perf_counter() - started) * 1000


@admin_command(
    "sendMsgStatus",
    flags.text(
        "-b",
        "--brokerName",
        "broker",
        help="Broker name; messages go to the topic of the same name.",
        required=True,
    ),
    flags.number("-s", "--messageSize", "size", default=128, help="Bytes of each body."),
    flags.number("-c", "--count", default=50, least=1, help="Number of messages."),
)
async def send_status(admin: Admin, *, broker: str, size: int, count: int) -> Shown:
    """Send messages to a broker and show the receipts."""
    await admin.topics.route(broker)
    lines, receipts = [], []
    async with _producer(admin, "PID_SMSC") as producer:
        await producer.send(Message(broker, b"x" * 16))
        for _ in range(count):
            started = time.perf_counter()
            receipt = await producer.send(Message(broker, b"x" * size))
            spent = round((time.perf_counter() - started) * 1000)
            lines.append(f"rt={spent}ms, SendResult={java_text.receipt_text(receipt)}")
            receipts.append(receipt)
    return Shown(lines, receipts)


@admin_command(
    "clusterRT",
    _AMOUNT,
    _SIZE,
    flags.CLUSTER,
    flags.INTERVAL,
    flags.truth("-p", "--printLog", "as_log", default=False, help="Print lines for a log."),
    flags.text("-m", "--machineRoom", "room", help="Machine room to print in the log."),
)
async def cluster_times(
    admin: Admin, *, amount: int, size: int, cluster: str | None, as_log: bool, room: str | None
) -> Shown:
    """Measure sends to every broker, in ms.

    Once; --watch repeats it.
    """
    pattern = "%-24s  %-24s  %-4s  %-8s  %-8s"
    lines = [row(pattern, "#Cluster Name", "#Broker Name", "#RT", "#successCount", "#failCount")]
    places = await admin.brokers.masters(cluster)
    data = []
    async with _producer(admin, "pocketmq_admin_cluster") as producer:

        async def measure(broker: str) -> tuple[int, int, float]:
            queue = MessageQueue(broker, broker, 0)
            done = [
                await _timed(producer, Message(broker, b"a" * size), queue) for _ in range(amount)
            ]
            good = sum(ok for ok, _ in done)
            counted = [spent for _, spent in done[1:]] or [done[0][1]]
            return good, amount - good, sum(counted) / len(counted)

        results = await asyncio.gather(*(measure(place.broker) for place in places))
    for place, (good, bad, average) in zip(places, results, strict=True):
        where = (place.cluster, place.broker)
        if as_log:
            at = when(admin.now_ms())
            parts = (at, room or "noname", *where, f"{average:.0f}")
            lines.append("|".join(("", *parts, "")))
        else:
            lines.append(row(pattern, *where, f"{average:.2f}", good, bad))
        data.append({"place": place, "ms": average, "sent": good, "failed": bad})
    return Shown(lines, {"at": when(admin.now_ms()), "brokers": data})
