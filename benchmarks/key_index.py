"""What finding by key costs: taking records in, merging runs, and queries as the log grows.

The baseline of taking in is a plain walk over the same records that looks at no key; that of a
query is the query among the fewest messages. Times are of the processor, not of the clock.
`python -m benchmarks.key_index --full` goes on to ten million messages.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from pocketmq.protocol.record_scan import scan_records
from pocketmq.protocol.records import Record, pack_record
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.disk import Disk
from pocketmq.store.flusher import Flusher
from pocketmq.store.key_index import KeyIndex, KeyQuery

NOW_MS = 1_700_000_000_000
MODULUS = 536_870_909
BATCH = 10_000
SIZES = (10_000, 100_000, 1_000_000)
FULL_SIZES = (*SIZES, 10_000_000)


def unique_key(number: int) -> str:
    return f"7F0000010A2B18B4AAC2{number:012X}"


def key(number: int) -> str:
    return f"order-{number:08d}"


class Log:
    """A commit log that grows, with an index beside it."""

    def __init__(self, root: Path) -> None:
        self.disk = Disk(root)
        self.log = CommitLog(self.disk, 128 << 20)
        self.log.segments.load()
        self.log.begin(0, 0)
        self.index = KeyIndex(
            self.disk,
            self.log,
            Flusher().submit,
            modulus=MODULUS,
            recovered_end=0,
        )
        self.count = 0

    def grow(self, count: int, more: str) -> None:
        log = self.log
        for number in range(self.count, self.count + count):
            text = f"UNIQ_KEY\x01{unique_key(number)}\x02KEYS\x01{key(number)}\x02{more}".encode()
            record = Record(
                topic=b"BenchTopic", body=bytes(100), property_bytes=text, born_timestamp_ms=NOW_MS
            )
            data = pack_record(record, number, log.tail, NOW_MS + number // 50, bytes(8))
            if log.tail + len(data) > log.limit:
                log.write()
                log.make_room(len(data))
                data = pack_record(record, number, log.tail, NOW_MS + number // 50, bytes(8))
            log.pending.append(data)
            log.tail += len(data)
        log.write()
        self.count += count

    def walk(self, start: int) -> None:
        segment = self.log.segments.at(start)
        assert segment is not None
        stop = min(segment.end, self.log.written) - segment.start
        for _ in scan_records(segment.view, start - segment.start, stop):
            pass


def anonymous_memory() -> float:
    """Return megabytes that are not mapped from a file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    return 0.0


def microseconds(work: float, count: int) -> float:
    return work / count * 1e6


def take_in(root: Path, more: str) -> tuple[float, float]:
    """Return the cost of a message, taken in and merely walked over: the best of many batches."""
    bench = Log(root)
    taken: list[float] = []
    walked: list[float] = []
    for _ in range(20):
        start = bench.log.tail
        bench.grow(BATCH, more)
        began = process_time()
        bench.index.catch_up()
        taken.append(process_time() - began)
        began = process_time()
        bench.walk(start)
        walked.append(process_time() - began)
    bench.index.close()
    return microseconds(min(taken), BATCH), microseconds(min(walked), BATCH)


def query_cost(bench: Log) -> float:
    """Return milliseconds for a query, of keys from all over the log."""
    count = 50
    began = process_time()
    for step in range(count):
        number = bench.count * step // count
        query = KeyQuery(topic="BenchTopic", key=key(number), limit=64)
        found = bench.index.find(query)
        assert len(found) == 1
    return (process_time() - began) / count * 1e3


def main() -> None:
    print(f"{'properties':<28}{'µs/message':>12}{'of a walk':>11}")
    for name, more in (("unique key, one key", ""), ("and three more", "WAIT\x01true\x02" * 3)):
        with TemporaryDirectory() as folder:
            cost, walk = take_in(Path(folder), more)
        print(f"{name:<28}{cost:>12.2f}{cost / walk:>11.2f}")
    full = "--full" in sys.argv
    print(f"\n{'messages':>10}{'µs/message':>12}{'tidying':>9}{'runs':>6}", end="")
    print(f"{'MB files':>10}{'MB memory':>11}{'ms/query':>10}{'ratio':>7}")
    with TemporaryDirectory() as folder:
        bench = Log(Path(folder))
        base = 0.0
        taking = tidying = 0.0
        for size in FULL_SIZES if full else SIZES:
            while bench.count < size:
                bench.grow(min(BATCH, size - bench.count), "")
                began = process_time()
                bench.index.catch_up()
                taking += process_time() - began
                began = process_time()
                bench.index.catch_up(0.001)
                tidying += process_time() - began
            began = process_time()
            bench.index.catch_up(60.0)
            tidying += process_time() - began
            query = query_cost(bench)
            base = base or query
            files = bench.disk.sizes("keys")
            print(
                f"{size:>10}{microseconds(taking, size):>12.2f}{microseconds(tidying, size):>9.2f}"
                f"{len(files):>6}{sum(files.values()) / 1e6:>10.1f}{anonymous_memory():>11.0f}"
                f"{query:>10.3f}{query / base:>7.1f}",
                flush=True,
            )
        bench.index.close()


if __name__ == "__main__":
    main()
