"""The sweep for overdue messages: what a concurrent handler does not finish goes to the broker.

The rule is `balance.consumer.expiry`. When a handler got a message is told only now, from the
calls under way, so that it costs nothing while all is well.
"""

import logging

from pocketmq.balance.consumer.expiry import SWEEP_DELAY_LEVEL, ExpirySweep
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.push.calls import Call
from pocketmq.client.push.work_room import WorkRoom

logger = logging.getLogger("pocketmq.client")


async def sweep(room: WorkRoom) -> None:
    """Send back what is overdue in all queues; what cannot be sent is tried again next time."""
    consuming = room.consuming
    now = consuming.now()
    for job, seconds in room.under_way():
        if isinstance(job, Call):
            job.held.process.mark_started(job.messages, now - seconds)
    for held in list(consuming.held().values()):
        if not held.dropped:
            await _sweep_queue(room, held)


async def _sweep_queue(room: WorkRoom, held: HeldQueue) -> None:
    consuming = room.consuming
    timeout = consuming.options.consume_timeout
    overdue = ExpirySweep(held.process, timeout)
    while (message := overdue.next(consuming.now())) is not None:
        broker = held.queue.broker_name
        if not await room.sending_back.send_back(message, SWEEP_DELAY_LEVEL, broker):
            return
        logger.warning(
            "group %s: message %s is being handled for more than %g s and comes again later",
            consuming.group, message.message_id, timeout,
        )  # fmt: skip
        overdue.sent(message, consuming.now())
        held.made_room()
