"""Messages with keys for the tests of the key index, and the plainest way to find them."""

from pathlib import Path
from typing import Any

from pocketmq.protocol import RecordView
from pocketmq.store import Flusher, MessageStore, StoreOptions
from pocketmq.store.disk import FileSystem
from pocketmq.store.key_index import FAN, KeyIndex
from tests.store.messages import put

MODULUS = 536_870_909
ALWAYS = (0, 1 << 62)


def text(unique: str | None = None, keys: str | None = None) -> bytes:
    raw = "" if unique is None else f"UNIQ_KEY\x01{unique}\x02"
    return (raw if keys is None else f"{raw}KEYS\x01{keys}\x02").encode()


def open_store(
    path: Path | None,
    *,
    disk: FileSystem | None = None,
    segment_size: int = 1 << 20,
    modulus: int = MODULUS,
    run_words: int = 16,
    fan: int = FAN,
    flusher: Flusher | None = None,
) -> MessageStore:
    """Open a store whose index makes runs of few words."""
    options = StoreOptions(segment_size=segment_size)
    store = MessageStore.open(path, options, disk=disk, flusher=flusher)
    store._keys = KeyIndex(
        store.disk,
        store.log,
        store._flusher.submit,
        modulus=modulus,
        recovered_end=store.recovered.tail,
        run_words=run_words,
        fan=fan,
    )
    return store


def found(store: MessageStore, key: str, *, topic: str = "T", unique: bool = False) -> list[bytes]:
    """Return the bodies of all messages with a key."""
    records = store.find_by_key(topic, key, *ALWAYS, 1000, unique=unique)
    return [RecordView(record, 0).stored_body for record in records]


def keys_of(properties: bytes, *, unique: bool) -> set[bytes]:
    """Read what a message can be found by, in the plainest way."""
    values = {}
    for piece in properties.split(b"\x02"):
        name, _, value = piece.partition(b"\x01")
        if value:
            values[name] = value
    keys = {values[b"UNIQ_KEY"]} if b"UNIQ_KEY" in values else set()
    return keys if unique else keys | set(values.get(b"KEYS", b"").split(b" ")) - {b""}


def expected(
    store: MessageStore, topic: str, key: str, begin: int, end: int, limit: int, *, unique: bool
) -> list[int]:
    """Return the positions a query must find, by looking at every record of the log."""
    positions: list[int] = []
    start = store.log.first
    while True:
        records, following = store.walk(start, 100)
        for position, _, queue_id, offset, time, name, properties in records:
            queue = store.queue(topic, queue_id)
            if (
                name == topic.encode()
                and key.encode() in keys_of(properties, unique=unique)
                and begin <= time <= end
                and queue is not None
                and queue.min_offset <= offset < queue.next_offset
                and queue.position(offset) == position
            ):
                positions.append(position)
        if following == start:
            return positions[-limit:] if limit > 0 else []
        start = following


HOSTILE = [
    b"",
    b"\x02",
    b"KEYS",
    b"KEYS\x01",
    b"KEYS\x01\x02",
    b"KEYS\x01a",
    b"\x02\x02KEYS\x01a\x02\x02",
    b"KEYS\x01a\x02KEYS\x01b\x02",
    b"KEYS\x01a\x02KEYS\x01\x02",
    b"KEYS\x01a\x02UNIQ_KEY\x01a\x02",
    b"XKEYS\x01a\x02",
    b"X\x01KEYS\x01a\x02",
    b"KEYS\x01\x01a\x02",
    b"KEYS\x01 \x02",
    b"KEYS\x01 a \x02UNIQ_KEY\x01 a \x02",
    b"KEYS\x01a\tb\x02",
    b"KEYS\x01\xff\xfe a\x02",
    b"UNIQ_KEY\x01\xc3\x28\x02",
    b"UNIQ_KEY\x01a",
    b"UNIQ_KEYS\x01a\x02",
    b"UNIQ_KEY\x01a b\x02",
    b"KEYS\x01" + b"a " * 16000,
    b"KEYS\x01" + b" ".join(b"%d" % number for number in range(5000)),
]


def run_files(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "keys").iterdir())


def fill(store: MessageStore, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        put(store, "T", b"%d" % number, text=text(f"id-{number}", f"k{number % 10}"))


def all_there(store: MessageStore, count: int) -> None:
    for number in range(0, count, 7):
        assert found(store, f"id-{number}") == [b"%d" % number]
    assert found(store, "k5") == [b"%d" % number for number in range(5, count, 10)]


class LaterFlusher(Flusher):
    """Runs jobs when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[tuple[Any, Any]] = []

    def submit(self, job: Any, outcome: Any) -> None:
        self.jobs.append((job, outcome))

    def work(self, most: int = 1 << 30) -> int:
        done = 0
        while self.jobs and done < most:
            super().submit(*self.jobs.pop(0))
            done += 1
        return done

    def close(self) -> None:
        self.work()
