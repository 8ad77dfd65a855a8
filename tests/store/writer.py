"""A process that appends for ever and prints what it was promised; it is meant to be killed."""

import sys
from pathlib import Path

from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.store import MessageStore, StoreOptions
from tests.store.messages import NOW_MS, record


def main(path: str, run: str) -> None:
    options = StoreOptions(segment_size=200_000, checkpoint_bytes=300_000, sync_interval=0.0)
    store = MessageStore.open(Path(path), options)
    number = 0
    while True:
        lines = []
        for _ in range(8):
            queue_id = number % 3
            queue = store.make_queue("T", queue_id)
            names = [f"{run}-{number}-{n}" for n in range(1 + number % 4)]
            contents = [name.encode().ljust(300 * (number % 7), b".") for name in names]
            if number % 2:
                body = encode_batch([BatchEntry(content, b"k\x01v\x02") for content in contents])
                like = record("T", b"", queue_id=queue_id)
                if number % 4 == 1:
                    offset = store.append_inner(queue, body, like, 0, NOW_MS).queue_offset
                else:
                    offset = store.append_batch(queue, body, like, NOW_MS).queue_offset
            else:
                records = [record("T", content, queue_id=queue_id) for content in contents]
                offset = store.append(queue, records, [0] * len(records), NOW_MS).queue_offset
            lines += [f"{queue_id} {offset + n} {name}" for n, name in enumerate(names)]
            number += 1
        store.write()
        store.metadata.save_documents("run", {run: b"%d" % number})
        print("\n".join(lines), f"\nsaved {number}", flush=True)
        store.maintain(float(number))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
