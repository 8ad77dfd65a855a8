"""`pocketmq store check`: one look at a broker's directory, and an exit code that says it all."""

import json
from pathlib import Path

import pytest

from pocketmq.cli import run
from pocketmq.protocol.records import Record
from pocketmq.store import MessageStore, StoreOptions


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    path = tmp_path / "broker-0"
    store = MessageStore.open(path, StoreOptions(segment_size=4096))
    record = Record(topic=b"T", body=b"x", queue_id=0)
    store.append(store.make_queue("T", 0), [record], [0], 1_700_000_000_000)
    store.close()
    return path


def test_a_sound_store_is_told_part_by_part(
    broker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["store", "check", str(broker.parent)]) == 0
    first, metadata, log, queues, keys, last = capsys.readouterr().out.splitlines()
    assert first == f"store {broker}"
    assert metadata.startswith("  metadata   format 1, checkpoint at byte ")
    assert log.startswith("  log        1 files of 4096 bytes, 1 records, stored from 2023-11-1")
    assert queues == "  queues     1 queues of 1 topics, 1 messages"
    assert keys.startswith("  key index  0 runs, ")
    assert last == "sound"


def test_damage_ends_with_1_until_it_is_repaired(
    broker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (broker / "meta.sqlite").unlink()
    assert run(["store", "check", str(broker)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert "error    metadata: meta.sqlite is missing: topics, groups and offsets are in it" in told
    assert told[-1] == "damaged"
    assert run(["store", "check", "--repair", str(broker)]) == 0
    both = capsys.readouterr()
    assert both.out.splitlines()[-1] == "sound"
    assert "rebuilt from the commit log: T" in both.err
    assert (broker / "before-repair-1").is_dir()


@pytest.mark.damaged_store
def test_programs_get_json(broker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (broker / "meta.sqlite").write_bytes(b"nonsense")
    assert run(["store", "check", "--json", str(broker)]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["path"] == str(broker)
    assert {each["severity"] for each in report["findings"]} == {"error"}


def test_what_is_no_store_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["store", "check", str(tmp_path)]) == 2
    assert "holds no store" in capsys.readouterr().err


def test_a_store_in_use_is_not_touched(broker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = MessageStore.open(broker)
    assert run(["store", "check", "--repair", str(broker)]) in {1, 2}
    assert str(broker) in capsys.readouterr().err
    store.close()
