"""The key index against the log itself, through crashes, damage and deletion."""

from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from pocketmq.protocol.record_scan import RecordView
from pocketmq.store import key_index_stretch
from pocketmq.store.key_index import FAN
from tests.store.faults import MortalDisk, ProcessEnded, abandon
from tests.store.keyed import ALWAYS, HOSTILE, MODULUS, expected, open_store, text
from tests.store.messages import NOW_MS, put


class IndexAgainstLog(RuleBasedStateMachine):
    """Whatever happens, a query gives what a look at every record of the log gives."""

    @initialize(
        run_words=st.integers(1, 40),
        segment_size=st.sampled_from([4096, 9000]),
        modulus=st.sampled_from([MODULUS, 1, 5]),
        fan=st.integers(2, 4),
    )
    def begin(self, run_words: int, segment_size: int, modulus: int, fan: int) -> None:
        key_index_stretch._WINDOW, self.window = 1500, key_index_stretch._WINDOW
        self.path = Path(mkdtemp())
        self.time = NOW_MS
        self.options: dict[str, Any] = {
            "run_words": run_words,
            "segment_size": segment_size,
            "modulus": modulus,
            "fan": fan,
        }
        self.reopen()

    def reopen(self) -> None:
        self.disk = MortalDisk(self.path)
        self.store = open_store(self.path, disk=self.disk, **self.options)

    def die(self) -> None:
        store = self.store
        abandon(store)
        store.keys.close()
        self.reopen()

    def attempt(self, action: Any) -> None:
        try:
            action()
        except ProcessEnded:
            self.die()

    @rule(
        topic=st.sampled_from(["A", "B"]),
        queue_id=st.integers(0, 1),
        properties=st.one_of(
            st.builds(
                text,
                st.sampled_from(["x", "y", None]),
                st.sampled_from(["x", "y z", "z", "x x", None]),
            ),
            st.sampled_from(HOSTILE[:21]),
        ),
        size=st.sampled_from([0, 0, 0, 300, 5000]),
        count=st.integers(1, 12),
        later=st.integers(-1, 3),
    )
    def append(
        self, topic: str, queue_id: int, properties: bytes, size: int, count: int, later: int
    ) -> None:
        self.time += later
        bodies = [bytes(size)] * count
        self.attempt(
            lambda: put(
                self.store, topic, *bodies, queue_id=queue_id, now_ms=self.time, text=properties
            )
        )

    @rule(seconds=st.sampled_from([0.0, 0.0, 0.05]))
    def catch_up(self, seconds: float) -> None:
        self.attempt(lambda: self.store.keys.catch_up(seconds))

    @rule()
    def merge_all(self) -> None:
        def merge() -> None:
            for _ in range(FAN):
                self.store.keys.catch_up(0.01)

        self.attempt(merge)

    @rule(files=st.integers(1, 3))
    def drop(self, files: int) -> None:
        def drop() -> None:
            self.store.checkpoint()
            for _ in range(files):
                self.store.drop_first_segment()

        self.attempt(drop)

    @rule(topic=st.sampled_from(["A", "B"]))
    def delete_topic(self, topic: str) -> None:
        self.attempt(lambda: self.store.delete_topic(topic))

    @precondition(lambda self: self.disk.steps_left is None)
    @rule(steps=st.integers(1, 40), torn=st.integers(0, 1000))
    def let_the_end_come(self, steps: int, torn: int) -> None:
        self.disk.steps_left, self.disk.torn = steps, torn

    @rule()
    def end_now(self) -> None:
        self.die()

    @rule()
    def restart_cleanly(self) -> None:
        def restart() -> None:
            self.store.close()
            self.reopen()

        self.attempt(restart)

    @rule(number=st.integers(0, 1 << 16), flip=st.booleans())
    def damage_a_run(self, number: int, flip: bool) -> None:
        self.die()
        store = self.store
        names = sorted(self.disk.sizes("keys"))
        abandon(store)
        store.keys.close()
        if names:
            path = self.path / "keys" / names[number % len(names)]
            raw = bytearray(path.read_bytes())
            if flip and len(raw) > 64:
                raw[number % 64] ^= 1
                path.write_bytes(raw)
            else:
                path.unlink()
        self.reopen()

    @rule(
        topic=st.sampled_from(["A", "B", "C"]),
        key=st.sampled_from(["x", "y", "z", "a", "b", "a b", "y z", ""]),
        before=st.integers(0, 10),
        after=st.integers(0, 10),
        limit=st.sampled_from([1, 2, 5, 64]),
        unique=st.booleans(),
    )
    def query(
        self, topic: str, key: str, before: int, after: int, limit: int, unique: bool
    ) -> None:
        begin, end = NOW_MS - before, self.time - 5 + after
        if before == 10:
            begin, end = ALWAYS

        def ask() -> None:
            records = self.store.find_by_key(topic, key, begin, end, limit, unique=unique)
            positions = [RecordView(record, 0).commit_log_offset for record in records]
            assert positions == expected(self.store, topic, key, begin, end, limit, unique=unique)

        self.attempt(ask)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.disk.steps_left = None
            for key in ("x", "y", "z", "a"):
                self.query("A", key, 10, 0, 64, False)
            self.store.close()
            rmtree(self.path)
            key_index_stretch._WINDOW = self.window


TestIndexAgainstLog = IndexAgainstLog.TestCase
TestIndexAgainstLog.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
