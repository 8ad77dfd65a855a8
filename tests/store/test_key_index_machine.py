"""The key index against the log itself, through crashes, damage and deletion."""

from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from pocketmq.protocol import RecordView
from pocketmq.store import key_index_stretch
from tests.store.faults import MortalDisk, ProcessEnded, abandon
from tests.store.keyed import ALWAYS, HOSTILE, MODULUS, expected, open_store, text
from tests.store.messages import NOW_MS, put

pytestmark = pytest.mark.timeout(600)  # hundreds of stores: minutes on a busy machine


class IndexAgainstLog(RuleBasedStateMachine):
    """Whatever happens, a query gives what a look at every record of the log gives."""

    @initialize(
        run_words=st.integers(1, 8),
        segment_size=st.sampled_from([4096, 9000]),
        modulus=st.sampled_from([MODULUS, 1, 5]),
        fan=st.integers(2, 3),
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
        rounds=st.integers(1, 8),
        index=st.sampled_from([None, 0.0, 0.05]),
        later=st.integers(-1, 3),
    )
    def append(
        self,
        topic: str,
        queue_id: int,
        properties: bytes,
        size: int,
        rounds: int,
        index: float | None,
        later: int,
    ) -> None:
        self.time += later

        def append() -> None:
            for count in range(rounds):
                bodies = [bytes(size)] * (1 + count % 3)
                put(
                    self.store, topic, *bodies, queue_id=queue_id, now_ms=self.time, text=properties
                )
                if index is not None:
                    self.store.keys.catch_up(index)

        self.attempt(append)

    @rule(seconds=st.sampled_from([0.0, 0.05]))
    def catch_up(self, seconds: float) -> None:
        self.attempt(lambda: self.store.keys.catch_up(seconds))

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

    @rule(how=st.sampled_from(["cleanly", "killed", "flip", "unlink"]), number=st.integers(0, 999))
    def restart(self, how: str, number: int) -> None:
        store = self.store
        with suppress(ProcessEnded):
            if how == "cleanly":
                store.close()
        abandon(store)
        store.keys.close()
        names = sorted(self.disk.sizes("keys"))
        if names and how in ("flip", "unlink"):
            path = self.path / "keys" / names[number % len(names)]
            raw = bytearray(path.read_bytes())
            path.unlink()
            if how == "flip" and len(raw) > 64:
                raw[number % 64] ^= 1
                path.write_bytes(raw)
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
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
