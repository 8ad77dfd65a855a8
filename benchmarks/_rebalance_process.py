"""A member of a group, or the producer that feeds it, in a process of its own.

The one argument is JSON with its settings. A process says `ready` when it is loaded and begins at
`start` on standard input, so that loading is not measured. Lines with times are in nanoseconds of
the machine's monotonic clock, which all processes share:

    ready                       loaded
    joining TIME                the member begins to start
    joined TIME CLIENT_ID       its start has returned
    took TIME QUEUE …           queues were assigned; a queue is `broker:number`
    lost TIME QUEUE …           queues were revoked
    got TIME QUEUE OFFSET       a handler begins a message
    end QUEUE OFFSET            it has finished it
    leaving TIME                at `leave`, the member begins to close
    left TIME
    sent QUEUE OFFSET           the producer's message was acknowledged
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from pocketmq.balance.profile import JAVA_V5, V5
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.errors import MQError
from pocketmq.model import ConsumeFromWhere, Message, MessageQueue, sort_queues
from pocketmq.model.rebalance_event import RebalanceEvent
from pocketmq.protocol import ReceivedMessage

now = time.monotonic_ns


def say(*words: object) -> None:
    """Write a line at once: what was written stays when the process is killed."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def hear(word: str) -> None:
    """Wait for a line on standard input; an end of it means that the parent is gone."""
    line = await asyncio.to_thread(sys.stdin.readline)
    if line.strip() != word:
        raise SystemExit(1)


def named(queue: MessageQueue) -> str:
    return f"{queue.broker_name}:{queue.queue_id}"


class Member:
    """A consumer that writes down what it gets and owns."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._pause = settings["handler_ms"] / 1000
        self._topic: str = settings["topic"]
        self._told = 0
        self._consumer = PushConsumer(
            settings["name_server"],
            group=settings["group"],
            instance_name=settings["name"],
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            profile=JAVA_V5 if settings["java_pauses"] else V5,
            history_size=10_000,
            **settings["options"],
        )
        self._consumer.subscribe(self._topic, "*", self._handle)
        self._consumer.on_assigned(self._tell)
        self._consumer.on_revoked(self._tell)

    async def _handle(self, message: ReceivedMessage) -> None:
        place = f"{message.broker_name}:{message.queue_id} {message.queue_offset}"
        say("got", now(), place)
        if self._pause:
            await asyncio.sleep(self._pause)
        say("end", place)

    async def _tell(self, _: Sequence[MessageQueue]) -> None:
        """Write down the changes since, with the times of the rebalances that made them."""
        events = [each for each in self._consumer.history if each.topic == self._topic]
        ahead = now() - time.time_ns()
        for event in events[self._told :]:
            self._tell_event(event, ahead)
        self._told = len(events)

    def _tell_event(self, event: RebalanceEvent, ahead: int) -> None:
        def at(wall: float) -> int:
            return int(wall * 1e9) + ahead

        known = set()
        for each in event.handovers:
            if each.giver == event.client_id and each.stopped is not None:
                say("lost", at(each.stopped), named(each.queue))
            elif each.heir == event.client_id and each.started is not None:
                say("took", at(each.started), named(each.queue))
            else:
                continue
            known.add(named(each.queue))
        decided = event.started + event.asked
        revoked = [name for name in map(named, event.revoked) if name not in known]
        assigned = [name for name in event.assigned if name not in known]
        if revoked:
            say("lost", at(decided), *revoked)
        if assigned:
            say("took", at(decided + event.carried_out), *assigned)

    async def run(self) -> None:
        say("ready")
        await hear("start")
        say("joining", now())
        await self._consumer.start()
        say("joined", now(), self._consumer.session.client_id)
        await hear("leave")
        say("leaving", now())
        await self._consumer.close()
        say("left", now())


async def produce(settings: dict[str, Any]) -> None:
    """Send `rate` messages a second to each queue, until `leave`."""
    loop = asyncio.get_running_loop()
    topic, pause = settings["topic"], 1 / settings["rate"]

    async def feed(queue: MessageQueue, begin: float) -> None:
        number = 0
        while not stopping.is_set():
            await asyncio.sleep(begin + number * pause - loop.time())
            number += 1
            try:
                receipt = await producer.send(Message(topic, b"%d" % number), queue=queue)
            except MQError as error:
                print(f"not sent: {error}", file=sys.stderr)
            else:
                say("sent", named(queue), receipt.queue_offset)

    stopping = asyncio.Event()
    async with Producer(settings["name_server"], group="feeder") as producer:
        queues = sort_queues(set(await producer.queues(topic)))
        say("ready")
        await hear("start")
        # Queue by queue, a little apart: bursts of all queues at once would measure the bursts.
        begin = loop.time()
        feeds = [
            asyncio.create_task(feed(queue, begin + pause * place / len(queues)))
            for place, queue in enumerate(queues)
        ]
        await hear("leave")
        stopping.set()
        await asyncio.gather(*feeds)
    say("left", now())


if __name__ == "__main__":
    chosen = json.loads(sys.argv[1])
    asyncio.run(produce(chosen) if chosen["role"] == "producer" else Member(chosen).run())
