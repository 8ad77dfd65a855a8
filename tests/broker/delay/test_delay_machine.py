"""Whatever is sent, whenever the broker dies: each delayed message comes once, in time, in order."""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pocketmq.broker.delay.delivery import DeliveryBudget
from pocketmq.errors import StoreFull
from pocketmq.protocol.property_text import decode_properties
from pocketmq.store.disk import Disk, DiskFile, StoredFile
from tests.broker.delayed import START_MS, Waiting, key_of

pytestmark = pytest.mark.timeout(600)  # hundreds of stores: minutes on a busy machine

QUEUES = range(3)
DELAYS_MS = {1: 1000, 2: 2000, 3: 5000}
SEGMENT = 16_384


class Fault:
    """Refuses to write to the log once, in so many writes."""

    def __init__(self) -> None:
        self.after: int | None = None

    def strike(self) -> None:
        if self.after is not None:
            self.after -= 1
            if self.after < 0:
                self.after = None
                raise OSError(28, "no space left on device")


class FaultyFile:
    """A file of the log whose writes may be refused."""

    def __init__(self, file: StoredFile, fault: Fault) -> None:
        self._file = file
        self._fault = fault

    def write(self, position: int, data: bytes) -> None:
        self._fault.strike()
        self._file.write(position, data)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


class FaultyDisk(Disk):
    """A disk on which writes to the log may be refused."""

    def __init__(self, root: Path, fault: Fault) -> None:
        super().__init__(root)
        self._fault = fault

    def create(self, name: str, size: int) -> StoredFile:
        return self._watched(name, super().create(name, size))

    def open(self, name: str) -> StoredFile:
        return self._watched(name, super().open(name))

    def _watched(self, name: str, file: StoredFile) -> StoredFile:
        assert isinstance(file, DiskFile)
        return FaultyFile(file, self._fault) if name.startswith("commitlog") else file  # type: ignore[return-value]


class DelayMachine(RuleBasedStateMachine):
    """A broker's delayed messages under sends, ticks, saves, full disks, kills and restarts."""

    broker: Waiting

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.fault = Fault()
        self.sent: dict[int, list[tuple[str, int]]] = {level: [] for level in DELAYS_MS}
        self.open(START_MS)

    def open(self, now_ms: int) -> None:
        path = Path(self.folder.name)
        disk = FaultyDisk(path, self.fault)
        self.broker = Waiting(path, now_ms=now_ms, disk=disk, segment_size=SEGMENT)

    @rule(level=st.sampled_from([*DELAYS_MS]), queue_id=st.sampled_from(QUEUES), twin=st.booleans())
    def send(self, level: int, queue_id: int, twin: bool) -> None:
        key = f"twin-{queue_id}" if twin else str(sum(map(len, self.sent.values())))
        self.broker.send(level, key, queue_id)
        self.sent[level].append((key, self.broker.now_ms + DELAYS_MS[level]))

    @rule(ms=st.sampled_from([1, 300, 999, 1000, 2500]))
    def wait(self, ms: int) -> None:
        self.broker.now_ms += ms

    @rule(messages=st.integers(1, 6))
    def deliver(self, messages: int) -> None:
        assert self.broker.deliver(DeliveryBudget(messages, 4096)).error is None

    @rule(writes=st.integers(0, 2), messages=st.integers(1, 60))
    def deliver_to_a_disk_that_refuses(self, writes: int, messages: int) -> None:
        self.fault.after = writes
        error = self.broker.deliver(DeliveryBudget(messages, 1 << 20)).error
        assert error is None or isinstance(error, StoreFull)
        self.fault.after = None

    @rule()
    def save(self) -> None:
        self.broker.save()

    @rule()
    def checkpoint(self) -> None:
        self.broker.store.checkpoint()

    @rule(ms=st.sampled_from([0, 700, 5000]))
    def kill(self, ms: int) -> None:
        self.broker.kill()
        self.open(self.broker.now_ms + ms)

    @rule(messages=st.integers(1, 6))
    def kill_while_delivering(self, messages: int) -> None:
        broker = self.broker
        with suppress(StoreFull):
            broker.queues._append_due(broker.now_ms, DeliveryBudget(messages, 4096), [])
        self.kill(0)

    @rule(ms=st.sampled_from([0, 700, 5000]))
    def restart(self, ms: int) -> None:
        self.broker.save()
        self.broker.store.close()
        self.open(self.broker.now_ms + ms)

    @precondition(lambda self: hasattr(self, "broker"))
    @invariant()
    def nothing_is_early_twice_or_out_of_order(self) -> None:
        for level, delivered in self.delivered().items():
            expected = self.sent[level][: len(delivered)]
            assert [key for key, _ in delivered] == [key for key, _ in expected]
            for (_, stored_ms), (_, due_ms) in zip(delivered, expected, strict=True):
                assert stored_ms >= due_ms
            assert self.broker.progress.offset(level) == len(delivered)

    def delivered(self) -> dict[int, list[tuple[str, int]]]:
        """What came out of each level, in the order of the log: keys and moments."""
        found: dict[int, list[tuple[int, str, int]]] = {level: [] for level in DELAYS_MS}
        for queue_id in QUEUES:
            for record in self.broker.records("T", queue_id):
                level = int(decode_properties(record.property_bytes)["DELAY"])
                entry = record.commit_log_offset, key_of(record), record.store_timestamp_ms
                found[level].append(entry)
        return {
            level: [(key, stored) for _, key, stored in sorted(entries)]
            for level, entries in found.items()
        }

    def teardown(self) -> None:
        if not hasattr(self, "broker"):
            return
        self.broker.now_ms += 5000
        assert self.broker.deliver(DeliveryBudget(100_000, 1 << 30)).error is None
        delivered = self.delivered()
        self.broker.store.close()
        self.folder.cleanup()
        assert {level: [key for key, _ in entries] for level, entries in delivered.items()} == {
            level: [key for key, _ in entries] for level, entries in self.sent.items()
        }


TestDelayMachine = DelayMachine.TestCase
TestDelayMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
