"""The SQLite file: what is committed is there, whole or not at all; another's file is refused."""

import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import StoreCorrupt, StoreFailed
from pocketmq.store.metadata import FORMAT, Checkpoint, Metadata
from tests.own_time import own_time


def test_documents_survive(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path / "m")
    metadata.save_documents("topic", {"a": b"1", "b": b"2", "c": b""})
    metadata.save_documents("topic", {"a": None, "b": b"\x00\xff", "missing": None})
    metadata.save_documents("group", {"a": b"other"})
    metadata.close()
    again = Metadata(tmp_path / "m")
    assert sorted(again.documents("topic")) == [("b", b"\x00\xff"), ("c", b"")]
    assert again.documents("group") == [("a", b"other")]
    assert again.documents("unknown") == []
    again.close()


def test_consumer_offsets_survive(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path / "m")
    metadata.save_consumer_offsets([("t", "g", 0, 5), ("t", "g", 1, 2**62), ("t", "h", 0, 1)])
    metadata.save_consumer_offsets([("t", "g", 0, 3)])
    metadata.save_consumer_offsets([("u", "h", 0, 9)], gone=[("t", "h"), ("u", "h")])
    metadata.close()
    again = Metadata(tmp_path / "m")
    assert sorted(again.consumer_offsets()) == [
        ("t", "g", 0, 3),
        ("t", "g", 1, 2**62),
        ("u", "h", 0, 9),
    ]
    again.close()


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.binary(max_size=9), max_size=5))
def test_any_text_can_be_a_key(documents: dict[str, bytes]) -> None:
    metadata = Metadata(None)
    metadata.save_documents("kind", dict(documents))
    assert dict(metadata.documents("kind")) == documents
    metadata.close()


def test_numbers_are_kept_under_names(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path / "m")
    assert metadata.number("position") is None
    metadata.set_number("position", 2**62)
    metadata.close()
    again = Metadata(tmp_path / "m")
    assert again.number("position") == 2**62
    again.close()


def test_a_failure_half_way_leaves_nothing(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path / "m")
    metadata.save_documents("kind", {"a": b"before"})
    with pytest.raises(StoreFailed):
        metadata.save_consumer_offsets([("t", "g", 0, 1), ("t", "g", 0, None)])  # type: ignore[list-item]
    with suppress(ZeroDivisionError), metadata._transaction() as connection:
        connection.execute("delete from document")
        raise ZeroDivisionError
    assert metadata.consumer_offsets() == []
    assert metadata.documents("kind") == [("a", b"before")]
    metadata.save_documents("kind", {"a": b"after"})
    assert metadata.documents("kind") == [("a", b"after")]
    metadata.close()


def test_a_checkpoint_moves_as_a_whole(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path / "m")
    metadata.save_checkpoint(
        Checkpoint(
            position=100,
            next_number=3,
            index_end=640,
            queues=[(1, "A", 0, 0, 5), (2, "B", 0, 0, 6)],
            extents=[(0, 0, 32, 1, 0), (0, 640, 32, 2, 0), (0, 1280, 64, 1, 32)],
        )
    )
    metadata.save_checkpoint(
        Checkpoint(
            position=200,
            next_number=3,
            index_end=1280,
            queues=[(1, "A", 0, 1, 9)],
            gone_queues=[2],
            extents=[(0, 640, 32, 0, 0)],
        )
    )
    assert [metadata.number(n) for n in ("position", "next_number", "index_end")] == [200, 3, 1280]
    assert metadata.topics() == ["A"]
    assert metadata.queues_of("A") == [(1, "A", 0, 1, 9)]
    assert metadata.queues_of("B") == []
    assert metadata.extents_of(1) == [(0, 0, 32, 1, 0), (0, 1280, 64, 1, 32)]
    assert metadata.extents_of(0) == [(0, 640, 32, 0, 0)]
    metadata.close()


def test_a_deletion_is_known_until_a_checkpoint_has_passed_it(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path / "m")
    metadata.delete_topic("T", 50)
    metadata.delete_topic("T", 60)
    metadata.save_checkpoint(Checkpoint(position=60, next_number=1, index_end=0))
    assert metadata.deleted_topics() == {"T": 60}
    metadata.save_checkpoint(Checkpoint(position=61, next_number=1, index_end=0))
    assert metadata.deleted_topics() == {}
    metadata.close()


def test_several_threads_write_one_after_another(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path / "m")

    def save(thread: int) -> None:
        for number in range(20):
            metadata.save_documents(
                "kind", {f"{thread}-{number}": b"x", f"{thread}": b"%d" % number}
            )

    threads = [threading.Thread(target=save, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        metadata.documents("kind")  # a reader is not disturbed
    for thread in threads:
        thread.join()
    documents = dict(metadata.documents("kind"))
    assert len(documents) == 84
    assert {documents[str(n)] for n in range(4)} == {b"19"}
    metadata.close()


def test_the_file_can_be_read_with_sqlite_while_in_use(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path / "m")
    metadata.save_documents("topic", {"a": b"1"})
    other = sqlite3.connect(tmp_path / "m")
    assert other.execute("select kind, key, value from document").fetchall() == [
        ("topic", "a", b"1")
    ]
    other.close()
    metadata.close()


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    Metadata(tmp_path / "m").close()
    with sqlite3.connect(tmp_path / "m") as connection:
        connection.execute(f"pragma user_version = {FORMAT + 1}")
    connection.close()
    before = (tmp_path / "m").read_bytes()
    with pytest.raises(
        StoreCorrupt, match=f"newer PocketMQ .format {FORMAT + 1}, this one reads 1"
    ):
        Metadata(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "m") as connection:
        connection.execute("create table photos (x)")
    connection.close()
    before = (tmp_path / "m").read_bytes()
    with pytest.raises(StoreCorrupt, match="not a PocketMQ store"):
        Metadata(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"not a database" * 100)
    with pytest.raises(StoreCorrupt, match="damaged: file is not a database"):
        Metadata(tmp_path / "m")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="unable to open"):
        Metadata(tmp_path / "missing" / "m")


def test_another_program_that_holds_the_file_does_not_hold_up_the_broker(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path / "meta.sqlite")
    with closing(sqlite3.connect(tmp_path / "meta.sqlite", isolation_level=None)) as other:
        other.execute("begin immediate")
        before = own_time()
        with pytest.raises(StoreFailed, match="locked"):
            metadata.save_documents("topic", {"T": b"{}"})
        assert own_time() - before < 3
        other.execute("rollback")
    metadata.save_documents("topic", {"T": b"{}"})
    assert metadata.documents("topic") == [("T", b"{}")]
    metadata.close()
