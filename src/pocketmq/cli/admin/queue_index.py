"""`queryCq`: a look into the index of a queue."""

import click

from pocketmq.admin.admin import Admin
from pocketmq.cli.admin.flags import TOPIC, number, text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import java_word, pretty_json
from pocketmq.cli.admin.shown import Shown
from pocketmq.protocol.requests.reading import ConsumeQueueEntry

_BAR = "=" * 38


@admin_command(
    "queryCq",
    TOPIC,
    click.option("-q", "--queue", type=click.IntRange(0), required=True, help="Queue."),
    click.option("-i", "--index", type=click.IntRange(0), required=True, help="First entry."),
    number("-c", "--count", default=10, least=1, help="So many entries."),
    text("-b", "--broker", "address", help="Broker's address; else the topic's first."),
    text("-g", "--consumer", "group", help="What this group's filter does with them."),
)
async def query(
    admin: Admin,
    *,
    topic: str,
    queue: int,
    index: int,
    count: int,
    address: str | None,
    group: str | None,
) -> Shown:
    """Show entries of a queue's index, and what a group's filter does with them."""
    if address is None:
        address = (await admin.topics.places(topic))[0].address
    page = await admin.topics.index(topic, address, queue, index, count, group=group)
    lines: list[str] = []
    if page.subscription_data is not None:
        lines += ["Subscription data:", pretty_json(page.subscription_data), _BAR]
    if page.filter_data is not None:
        lines += ["Filter data:", page.filter_data, _BAR]
    lines.append("Queue data:")
    lines += [f"max: {page.max_queue_index}, min: {page.min_queue_index}", _BAR]
    for step, each in enumerate(page.queue_data or ()):
        lines += [f"idx: {index + step}", _entry(each), _BAR]
    return Shown(lines, page)


def _entry(entry: ConsumeQueueEntry) -> str:
    return (
        f"ConsumeQueueData{{physicOffset={entry.physic_offset}, "
        f"physicSize={entry.physic_size}, tagsCode={entry.tags_code}, "
        f"extendDataJson='{java_word(entry.extend_data_json)}', "
        f"bitMap='{java_word(entry.bit_map)}', eval={java_word(entry.eval)}, "
        f"msg='{java_word(entry.msg)}'}}"
    )


COMMANDS = {"queryCq": query}
