"""What a transaction costs the broker: a half message, its end, and the message that is seen.

The broker runs in a process of its own with its data on disk; a client keeps a number of
transactions under way. Cost is the processor time of the broker's process, beside that of two plain
sends in the same run: a transaction is two requests.

python -m benchmarks.transactions
"""

import time

from benchmarks.broker import BODY, FIELDS, PROPERTIES, QUEUES, Client, broker, measure, send_frames
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader

SECONDS = 0.7
ROUNDS = 4
HALF = f"{PROPERTIES}TRAN_MSG\1true\2PGROUP\1shop\2"


def half_frames() -> list[bytes]:
    fields = FIELDS | {"m": "false", "i": HALF, "f": "4"}
    return [
        Command.request(310, queue, fields | {"e": str(queue)}, BODY).encode()
        for queue in range(QUEUES)
    ]


def end_frame(answer: Command, what: int) -> bytes:
    fields = {
        "producerGroup": "shop", "tranStateTableOffset": answer.ext["queueOffset"],
        "commitLogOffset": str(int(answer.ext["msgId"][-16:], 16)), "commitOrRollback": str(what),
        "fromTransactionCheck": "false", "msgId": "K", "transactionId": "K",
    }  # fmt: skip
    return Command.request(37, answer.opaque, fields).encode()


def exchange(client: Client, reader: FrameReader, frames: list[bytes]) -> list[Command]:
    client.socket.sendall(b"".join(frames))
    answers: list[Command] = []
    while len(answers) < len(frames):
        answers += map(read_command, reader.feed(client.socket.recv(1 << 20)))
    assert all(answer.code == 0 for answer in answers), answers[0].remark
    return answers


def measure_transactions(port: int, cpu: object, depth: int, what: int) -> tuple[float, float]:
    """Return transactions a second, and CPU µs for each."""
    assert callable(cpu)
    client, reader = Client(port), FrameReader()
    frames = [half_frames()[n % QUEUES] for n in range(depth)]
    rates, costs = [], []
    for _ in range(ROUNDS):
        used, started, done = cpu(), time.perf_counter(), 0
        while time.perf_counter() - started < SECONDS:
            halves = exchange(client, reader, frames)
            exchange(client, reader, [end_frame(half, what) for half in halves])
            done += depth
        costs.append((cpu() - used) / done * 1e6)
        rates.append(done / (time.perf_counter() - started))
    client.socket.close()
    return max(rates), min(costs)


def main() -> None:
    print(f"{'':34}{'a second':>12}{'CPU µs':>9}{'× two plain sends':>20}", flush=True)
    for settings in ((), ("flushDiskType=SYNC_FLUSH",)):
        synced = ", synced" if settings else ""
        with broker(*settings) as process:
            for depth in (1, 64):
                _, plain = measure(process, send_frames(), depth)
                for name, what in (("commit", 8), ("roll back", 12)):
                    rate, cost = measure_transactions(process.port, process.cpu, depth, what)
                    times = cost / plain / 2
                    label = f"{name}, {depth} under way{synced}"
                    print(f"{label:34}{rate:12,.0f}{cost:9.2f}{times:20.2f}", flush=True)


if __name__ == "__main__":
    main()
