"""What a popped and acknowledged message costs the broker.

The broker runs in a process of its own with its data on disk. Cost is the processor time of the
broker's process for each message, beside that of pulling the same messages in the same run, 32 at a
time: what POP adds is knowing of every message who has it.

python -m benchmarks.popping
"""

import json
import selectors
import time
from collections.abc import Callable

from benchmarks.broker import QUEUES, Client, Process, broker, pull_frame, send_frames
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.handles import PopQueue, read_message_offsets
from pocketmq.protocol.requests.pop import bits_of

BACKLOG = 24_576
ROUNDS = 3
WAITING = 200


def pop_frame(opaque: int, count: int, poll_ms: int = 0, group: str = "poppers") -> bytes:
    fields = {
        "consumerGroup": group, "topic": "orders", "queueId": "-1", "maxMsgNums": str(count),
        "invisibleTime": "60000", "pollTime": str(poll_ms), "bornTime": "0", "initMode": "0",
        "expType": "TAG", "exp": "*", "order": "false", "bname": "broker-a",
    }  # fmt: skip
    return Command.request(200050, opaque, fields).encode()


Places = dict[PopQueue, tuple[int, ...]]


def batch_ack(answer: Command, places: Places) -> list[bytes]:
    ext = answer.ext
    acks = [
        {
            "c": "poppers", "t": "orders", "r": "0", "so": offsets[0], "q": queue.queue_id,
            "rq": 0, "pt": int(ext["popTime"]), "it": 60000, "b": bits_of(offsets, offsets[0]),
        }
        for queue, offsets in places.items()
    ]  # fmt: skip
    body = json.dumps({"brokerName": "broker-a", "acks": acks}).encode()
    return [Command.request(200151, 1, None, body).encode()]


def single_acks(answer: Command, places: Places) -> list[bytes]:
    pop_time = answer.ext["popTime"]
    return [
        Command.request(
            200051,
            offset + 8,
            {
                "consumerGroup": "poppers", "topic": "orders", "queueId": str(queue.queue_id),
                "extraInfo": f"{each[0]} {pop_time} 60000 0 0 broker-a {queue.queue_id} {offset}",
                "offset": str(offset), "bname": "broker-a",
            },
        ).encode()
        for queue, each in places.items()
        for offset in each
    ]  # fmt: skip


def fill(process: Process) -> int:
    """Send a backlog in batches; give how many messages it has."""
    client, sent = Client(process.port), 0
    frames = send_frames(256)
    while sent < BACKLOG:
        client.socket.sendall(b"".join(frames))
        answers = 0
        while answers < QUEUES:
            answers += client.receive()
        sent += 256 * QUEUES
    client.socket.close()
    return sent


def drain(
    process: Process, count: int, messages: int, acks: Callable[[Command, Places], list[bytes]]
) -> tuple[float, float]:
    """Pop and acknowledge everything; give messages a second, and CPU µs for each."""
    client, reader = Client(process.port), FrameReader()
    frame = pop_frame(1, count)
    used, started, done = process.cpu(), time.perf_counter(), 0
    while done < messages:
        (answer,) = exchange(client, reader, [frame])
        assert answer.code == 0, answer.remark
        places = read_message_offsets(answer.ext["msgOffsetInfo"])
        exchange(client, reader, acks(answer, places))
        done += sum(map(len, places.values()))
    client.socket.close()
    return done / (time.perf_counter() - started), (process.cpu() - used) / done * 1e6


def exchange(client: Client, reader: FrameReader, frames: list[bytes]) -> list[Command]:
    client.socket.sendall(b"".join(frames))
    answers: list[Command] = []
    while len(answers) < len(frames):
        answers += map(read_command, reader.feed(client.socket.recv(1 << 20)))
    assert all(answer.code == 0 for answer in answers), answers[0].remark
    return answers


def pulled(process: Process) -> float:
    """Return the CPU µs of pulling a message, 32 at a time."""
    client = Client(process.port)
    used, done = process.cpu(), 0
    for offset in range(0, BACKLOG // QUEUES - 32, 32):
        for queue in range(QUEUES):
            client.socket.sendall(pull_frame(queue, offset, 32))
            while not client.receive():
                pass
            done += 32
    client.socket.close()
    return (process.cpu() - used) / done * 1e6


def waiting_members(process: Process, messages: int) -> tuple[float, float]:
    """Let many wait, send one message after another: send, pop and ack of each together."""
    chooser = selectors.DefaultSelector()
    members = [Client(process.port) for _ in range(WAITING)]
    readers = {member.socket: FrameReader() for member in members}
    for member in members:
        member.socket.sendall(pop_frame(7, 1, 60_000, "poppers"))
        chooser.register(member.socket, selectors.EVENT_READ)
    sender, frame = Client(process.port), send_frames()[0]
    used, started, done = process.cpu(), time.perf_counter(), 0
    sent = 0
    while done < messages:
        while sent - done < 64 and sent < messages:
            sender.socket.sendall(frame)
            sent += 1
        for key, _ in chooser.select(0.01):
            peer = key.fileobj
            assert peer in readers
            for found in readers[peer].feed(peer.recv(1 << 20)):
                answer = read_command(found)
                if answer.opaque == 7:
                    places = read_message_offsets(answer.ext["msgOffsetInfo"])
                    next_pop = pop_frame(7, 1, 60_000, "poppers")
                    peer.sendall(b"".join(single_acks(answer, places)) + next_pop)
                    done += 1
    result = done / (time.perf_counter() - started), (process.cpu() - used) / done * 1e6
    for member in (*members, sender):
        member.socket.close()
    return result


def main() -> None:
    print(f"{'':44}{'a second':>12}{'CPU µs':>9}{'× pulled':>10}", flush=True)
    for settings in ((), ("flushDiskType=SYNC_FLUSH",)):
        synced = ", synced" if settings else ""
        with broker(*settings) as process:
            fill(process)
            plain = pulled(process)
            drain(process, 32, BACKLOG, batch_ack)
            for name, count, acks in (
                ("32 at once, acknowledged together", 32, batch_ack),
                ("32 at once, acknowledged one by one", 32, single_acks),
                ("one at a time", 1, single_acks),
            ):
                rounds = range(ROUNDS if count > 1 else 1)
                best = [drain(process, count, fill(process), acks) for _ in rounds]
                rate, cost = max(r for r, _ in best), min(c for _, c in best)
                print(f"{name + synced:44}{rate:12,.0f}{cost:9.2f}{cost / plain:10.1f}", flush=True)
            rate, cost = waiting_members(process, 8192)
            name = f"sent to one of {WAITING} who wait, acknowledged{synced}"
            print(f"{name:44}{rate:12,.0f}{cost:9.2f}{cost / plain:10.1f}", flush=True)
            print(f"memory {process.anonymous():.0f} MB", flush=True)


if __name__ == "__main__":
    main()
