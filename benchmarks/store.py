"""What the store costs, and that it costs the same whatever it holds.

First the hot path: CPU time of appending, reading and recovering. Then the curve: the same work in
stores with more and more topics and messages, as ratios to the smallest. `--full` goes up to
10 000 topics of 8 queues and takes about ten minutes; `--sizes 100x8x1,1000x8x10` (topics, queues,
million messages) chooses.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.record_scan import tags_code
from pocketmq.protocol.records import Record
from pocketmq.store import MessageStore, QueueIndex

NOW_MS = 1_700_000_000_000
HOST = bytes(8)
BODY = b"x" * 100
TEXT = b"UNIQ_KEY\x017F0000010A2B18B4AAC2000000010000\x02WAIT\x01true\x02TAGS\x01TagA\x02"
Size = tuple[int, int, float]
"""Topics, queues of each, million messages in all."""
SMALL: list[Size] = [(10, 8, 0.2), (100, 8, 0.4), (1000, 8, 0.8)]
FULL: list[Size] = [(10, 8, 1.0), (100, 8, 2.0), (1000, 8, 5.0), (10_000, 8, 20.0)]


def record(topic: bytes, queue_id: int) -> Record:
    return Record(
        topic=topic,
        body=BODY,
        property_bytes=TEXT,
        queue_id=queue_id,
        flag=0,
        sys_flag=0,
        born_timestamp_ms=NOW_MS,
        born_host=HOST,
        reconsume_times=0,
    )


def best(work: Callable[[], int], repeat: int = 9) -> float:
    """Return microseconds of CPU for each message, the best of several tries."""
    found = 1e9
    for _ in range(repeat):
        start = time.process_time()
        count = work()
        found = min(found, (time.process_time() - start) / count * 1e6)
    return found


def append_singles(store: MessageStore, queues: list[QueueIndex], turns: int) -> int:
    topic = queues[0].topic.encode()
    for _ in range(turns):
        for number in range(64):
            queue = queues[number % len(queues)]
            made = record(topic, queue.queue_id)
            store.append(queue, (made,), (tags_code(made.property_bytes),), NOW_MS)
        store.write()
    return 64 * turns


def append_batches(store: MessageStore, queue: QueueIndex, size: int, turns: int) -> int:
    body = encode_batch([BatchEntry(BODY, TEXT)] * size)
    like = record(queue.topic.encode(), queue.queue_id)
    for _ in range(turns):
        store.append_batch(queue, body, like, NOW_MS)
        store.write()
    return size * turns


def read(store: MessageStore, queue: QueueIndex, count: int, total: int) -> int:
    offset = queue.min_offset
    end = offset + total
    while offset < end:
        offset = store.read(queue, offset, count, 1 << 30).next_offset
    return total


def show(what: str, cost: float) -> None:
    print(f"{what:40} {cost:6.2f} µs", flush=True)


def hot_path(folder: Path) -> None:
    """Measure, then end without closing, as a process that is killed."""
    store = MessageStore.open(folder)
    queues = [store.make_queue("BenchTopic", queue_id) for queue_id in range(8)]
    show("append one at a time, 64 a turn", best(lambda: append_singles(store, queues, 100)))
    for count in (32, 1024):
        cost = best(partial(read, store, queues[0], count, 4096))
        show(f"read {count} at a time, 8 queues mixed", cost)
    for size in (32, 256):
        cost = best(partial(append_batches, store, queues[1], size, 8192 // size))
        show(f"append batches of {size}", cost)
    os._exit(0)


def recover(folder: Path) -> None:
    start = time.process_time()
    store = MessageStore.open(folder)
    spent = time.process_time() - start
    assert store.recovered.damage == []
    show("recover", spent / store.recovered.records * 1e6)
    queue = store.make_queue("BenchTopic", 0)
    show("read 1024 of an earlier run", best(partial(read, store, queue, 1024, 4096)))
    store.close()


def anonymous_memory() -> float:
    """Return the megabytes of this process that are no file's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return 0.0


def fill(folder: Path, size: Size) -> dict[str, float]:
    """Spread messages evenly over all queues, in batches; give what each costs."""
    topics, queues, millions = size
    before = anonymous_memory()
    store = MessageStore.open(folder)
    each = max(1, int(millions * 1e6) // (topics * queues))
    count = min(each, 32)
    body = encode_batch([BatchEntry(BODY, TEXT)] * count)
    rounds = max(1, each // count)
    start = time.process_time()
    for turn in range(rounds):
        for number in range(topics):
            name = f"topic-{number:05d}"
            for queue_id in range(queues):
                like = record(name.encode(), queue_id)
                store.append_batch(store.make_queue(name, queue_id), body, like, NOW_MS)
            store.write()
            if not number % 100:
                store.maintain(turn * topics / 1000 + number / 1000)
    spent = time.process_time() - start
    memory = anonymous_memory() - before
    store.close()
    return {"fill µs": spent / (rounds * count * topics * queues) * 1e6, "MB, all in use": memory}


def use(folder: Path, size: Size) -> dict[str, float]:
    """Open a store and work with a few of its queues."""
    topics, queues, _ = size
    before = anonymous_memory()
    start, wall = time.process_time(), time.perf_counter()
    store = MessageStore.open(folder)
    found = {
        "start, ms": (time.perf_counter() - wall) * 1e3,
        "CPU ms": (time.process_time() - start) * 1e3,
        "MB": anonymous_memory() - before,
    }
    chosen = [
        store.make_queue(f"topic-{number:05d}", number % queues)
        for number in range(0, topics, max(1, topics // 8))
    ]
    total = min(1024, chosen[0].next_offset)
    found["pull µs"] = best(lambda: sum(read(store, queue, 32, total) for queue in chosen))
    found["append µs"] = best(lambda: sum(append_singles(store, [q], 20) for q in chosen))
    store.close()
    return found


def curve(sizes: list[Size], folder: Path) -> None:
    smallest: dict[str, float] = {}
    for number, size in enumerate(sizes):
        found: dict[str, float] = {}
        for part in (fill, use):
            with get_context("spawn").Pool(1) as pool:  # each begins with an empty heap
                found |= pool.apply(part, (folder / str(number), size))
        if not smallest:
            smallest = found
            print(
                f"\n{'topics × queues':>16}{'messages':>10}" + "".join(map("{:>17}".format, found))
            )
        cells = [f"{value:.2f} ×{value / smallest[name]:.1f}" for name, value in found.items()]
        topics, queues, millions = size
        row = f"{topics:>12} × {queues}{millions:>9}M" + "".join(map("{:>17}".format, cells))
        print(row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="up to 10 000 topics of 8 queues")
    parser.add_argument("--sizes", help="TOPICSxQUEUESxMILLIONS,…")
    parser.add_argument("--folder", type=Path, help="where the stores are made, and left")
    chosen = parser.parse_args()
    sizes: list[Size] = FULL if chosen.full else SMALL
    if chosen.sizes:
        parts = [one.split("x") for one in chosen.sizes.split(",")]
        sizes = [(int(topics), int(queues), float(millions)) for topics, queues, millions in parts]
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        for part in (hot_path, recover):
            process = get_context("spawn").Process(target=part, args=(folder / "hot",))
            process.start()
            process.join()
        curve(sizes, folder)


if __name__ == "__main__":
    main()
