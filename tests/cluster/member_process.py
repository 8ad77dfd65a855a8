"""A member of a group in a process of its own: says what it holds and what it handled.

python -m tests.cluster.member_process NAME_SERVER GROUP TOPIC [orderly]

Lines on stdout: `holds BROKER:ID …` after each change, `got KEY` for each message. Ends in order
when its standard input is closed.
"""

import sys
import threading

from pocketmq import ConsumeFromWhere, PushConsumer, ReceivedMessage

_lock = threading.Lock()


def say(line: str) -> None:
    with _lock:
        print(line, flush=True)


def main() -> None:
    address, group, topic, *how = sys.argv[1:]
    consumer = PushConsumer(
        address,
        group=group,
        orderly="orderly" in how,
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        start_wait=10.0,
        stop_wait=5.0,
    )

    telling = threading.Lock()

    def handle(message: ReceivedMessage) -> None:
        say(f"got {message.keys[0]}")

    def changed(_: object) -> None:
        with telling:  # who looks first also says it first
            held = consumer.assignment().get(topic, ())
            say("holds " + " ".join(f"{queue.broker_name}:{queue.queue_id}" for queue in held))

    consumer.subscribe(topic, "*", handle)
    consumer.on_assigned(changed)
    consumer.on_revoked(changed)
    with consumer:
        changed(None)
        sys.stdin.read()


if __name__ == "__main__":
    main()
