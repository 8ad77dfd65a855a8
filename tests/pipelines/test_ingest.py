"""Topics to Parquet: once each, by day, with what cannot be read kept aside."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import dataset

import pocketmq as mq
from pocketmq.errors import InvalidInput, PipelineFailed
from pocketmq.pipelines.ingest import IngestProgress, IngestSettings, compact, ingest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id BIGINT, amount DOUBLE, at TIMESTAMP, topic STRING"
ONCE = IngestSettings(once=True)


def send(cluster: mq.Cluster, topic: str, bodies: Sequence[bytes]) -> None:
    with mq.Producer(cluster.address, group="ingest-test", send_timeout=30.0) as producer:
        producer.send_batch([mq.Message(topic, body, tag="t", keys=["k"]) for body in bodies])


def rows(place: Path, kind: str = "data") -> list[dict[str, Any]]:
    """Read what anybody would see, without Spark."""
    if not (place / kind).exists():
        return []
    table = dataset.dataset(
        place / kind, partitioning="hive", exclude_invalid_files=True
    ).to_table()
    return table.to_pylist()  # type: ignore[no-any-return]


def test_every_message_is_there_once_and_a_second_run_goes_on(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    told: list[IngestProgress] = []
    send(cluster, topic, [b"%d" % n for n in range(300)])
    first = ingest(spark, cluster.address, [topic], tmp_path, ONCE, progress=told.append)
    assert (first.rows, first.bad, first.late) == (300, 0, 0)
    assert (told[-1].rows, told[-1].batches) == (300, first.batches)
    send(cluster, topic, [b"%d" % n for n in range(300, 350)])
    second = ingest(spark, cluster.address, [topic], tmp_path, ONCE)
    assert second.rows == 50
    found = rows(tmp_path)
    assert sorted(int(row["body"]) for row in found) == list(range(350))
    assert {row["topic"] for row in found} == {topic}
    assert {row["tags"] for row in found} == {"t"}
    assert len({(row["brokerName"], row["queueId"], row["queueOffset"]) for row in found}) == 350


def test_bodies_become_columns_and_bad_ones_are_kept_with_the_reason(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    bad = {
        b"": "the body is empty",
        b"{": "not JSON",
        b"\xff{}": "not UTF-8 at byte 0",
        b'[{"id": 1}]': "a JSON list, not an object",
        b"42": "a JSON number, not an object",
        b"null": "a JSON null, not an object",
        b'{"id": "seven"}': 'id is "seven", not bigint',
        b'{"id": 1, "at": "soon"}': 'at is "soon", not timestamp',
    }
    good = [{"id": 1, "amount": 2.5, "at": "2026-01-02T03:04:05Z", "topic": "theirs"}, {"id": 2}]
    send(cluster, topic, [*(json.dumps(one).encode() for one in good), *(b for b in bad if b)])
    settings = IngestSettings(once=True, schema=SCHEMA, day_from="at")
    done = ingest(spark, cluster.address, [topic], tmp_path, settings)
    assert (done.rows, done.bad) == (2, len(bad) - 1)
    found = sorted(rows(tmp_path), key=lambda row: row["id"])
    assert [(r["id"], r["amount"], r["body_topic"], r["topic"]) for r in found] == [
        (1, 2.5, "theirs", topic),
        (2, None, None, topic),
    ]
    assert str(found[0]["day"]) == "2026-01-02"
    kept = {row["body"]: row["reason"] for row in rows(tmp_path, "bad")}
    assert set(kept) == set(bad) - {b""}
    for body, reason in kept.items():
        assert reason.startswith(bad[body])


def test_a_late_message_is_filed_under_its_own_day(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    def at(day: str) -> bytes:
        return json.dumps({"id": 1, "at": f"{day}T12:00:00Z"}).encode()

    settings = IngestSettings(once=True, schema=SCHEMA, day_from="at")
    send(cluster, topic, [at("2026-03-02"), at("2026-03-03")])
    first = ingest(spark, cluster.address, [topic], tmp_path, settings)
    send(cluster, topic, [at("2026-03-01"), at("2026-03-03"), at("2026-03-04")])
    second = ingest(spark, cluster.address, [topic], tmp_path, settings)
    assert [(one.rows, one.late) for one in (first, second)] == [(2, 0), (3, 1)]
    days = sorted(str(row["day"])[8:10] for row in rows(tmp_path))
    assert days == ["01", "02", "03", "03", "04"]


def test_a_batch_that_is_repeated_replaces_what_it_had_written(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    """As after a crash between the batch's files and the note that it is done."""
    send(cluster, topic, [b"%d" % n for n in range(40)])
    ingest(spark, cluster.address, [topic], tmp_path, ONCE)
    commits = tmp_path / "checkpoint" / "commits"
    for name in ("0", ".0.crc"):
        (commits / name).unlink(missing_ok=True)
    send(cluster, topic, [b"%d" % n for n in range(40, 60)])
    again = ingest(spark, cluster.address, [topic], tmp_path, ONCE)
    assert again.rows == 60  # the first batch once more, and the new messages
    assert sorted(int(row["body"]) for row in rows(tmp_path)) == list(range(60))


def test_a_continuous_run_ends_when_asked(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    stop = threading.Event()
    send(cluster, topic, [b"a", b"b", b"c"])

    def enough(now: IngestProgress) -> None:
        if now.rows == 3:
            send(cluster, topic, [b"d"])
        if now.rows >= 4:
            stop.set()

    sent: list[int] = []

    def once_each(now: IngestProgress) -> None:
        if now.rows not in sent:
            sent.append(now.rows)
            enough(now)

    settings = IngestSettings(every=0.1)
    done = ingest(
        spark, cluster.address, [topic], tmp_path, settings, progress=once_each, stop=stop
    )
    assert done.rows == 4
    assert sorted(row["body"] for row in rows(tmp_path)) == [b"a", b"b", b"c", b"d"]


def test_a_schema_is_inferred_once_and_remembered(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    settings = IngestSettings(once=True, schema="infer")
    send(cluster, topic, [b'{"a": 1, "b": "x"}', b'{"a": 2, "c": [1.5]}', b"no json"])
    first = ingest(spark, cluster.address, [topic], tmp_path, settings)
    assert (first.rows, first.bad) == (2, 1)
    send(cluster, topic, [b'{"a": 3, "new": true}'])
    ingest(spark, cluster.address, [topic], tmp_path, settings)
    found = sorted(rows(tmp_path), key=lambda row: row["a"])
    assert [(row["a"], row["b"], row["c"]) for row in found] == [
        (1, "x", None),
        (2, None, [1.5]),
        (3, None, None),
    ]
    with pytest.raises(InvalidInput, match="was started with another schema"):
        ingest(spark, cluster.address, [topic], tmp_path, IngestSettings(once=True, schema="z INT"))


def test_small_files_are_merged_and_nothing_else_changes(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    for first in range(0, 30, 10):
        send(cluster, topic, [b"%d" % n for n in range(first, first + 10)])
        ingest(spark, cluster.address, [topic], tmp_path, ONCE)
    before = rows(tmp_path)
    files = list(tmp_path.glob("data/**/*.parquet"))
    assert len(files) >= 3
    days = len({row["day"] for row in before})  # two if midnight comes while this runs
    done = compact(tmp_path)
    assert (done.partitions, done.files_before, done.files_after, done.rows) == (
        days,
        len(files),
        days,
        30,
    )
    assert len(list(tmp_path.glob("data/**/*.parquet"))) == days
    place = ("brokerName", "queueId", "queueOffset")
    without_batch = [
        sorted(({**row, "batch": 0, "properties": None} for row in some), key=lambda r: [r[p] for p in place])
        for some in (before, rows(tmp_path))
    ]  # fmt: skip
    assert without_batch[0] == without_batch[1]
    send(cluster, topic, [b"30"])
    ingest(spark, cluster.address, [topic], tmp_path, ONCE)
    assert sorted(int(row["body"]) for row in rows(tmp_path)) == list(range(31))


def test_what_cannot_be_is_told_in_one_line(
    spark: "SparkSession", cluster: mq.Cluster, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="at least one topic"):
        ingest(spark, cluster.address, [], tmp_path, ONCE)
    with pytest.raises(InvalidInput, match="is not a schema"):
        ingest(spark, cluster.address, ["t"], tmp_path, IngestSettings(schema="id NUMBERISH"))
    with pytest.raises(InvalidInput, match="choose one of store, born"):
        ingest(spark, cluster.address, ["t"], tmp_path / "2", IngestSettings(day_from="id"))
    with pytest.raises(InvalidInput, match="is not the directory of an ingestion"):
        compact(tmp_path / "3")
    settings = IngestSettings(once=True, options={"retryTimeout": "10ms"})
    with pytest.raises(PipelineFailed) as failed:
        ingest(spark, "127.0.0.1:1", ["t"], tmp_path / "4", settings)
    assert "\n" not in str(failed.value)
    assert "127.0.0.1:1" in str(failed.value)


def test_any_file_system_that_spark_reaches_will_do(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    """A mount table of Hadoop's stands for a file system that is none of this machine's."""
    lake = tmp_path / "lake"
    (lake / "orders" / "data" / ".spark-staging-1").mkdir(parents=True)
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set(f"fs.viewfs.mounttable.{topic}.link./lake", lake.as_uri())
    place = f"viewfs://{topic}/lake/orders"
    once = IngestSettings(once=True, schema="id BIGINT")
    send(cluster, topic, [b'{"id": 1}', b'{"id": 2}', b"torn"])
    first = ingest(spark, cluster.address, [topic], place, once)
    send(cluster, topic, [b'{"id": 3}'])
    second = ingest(spark, cluster.address, [topic], place, once)
    assert (first.rows, first.bad, second.rows, second.bad) == (2, 1, 1, 0)
    assert sorted(row["id"] for row in rows(lake / "orders")) == [1, 2, 3]
    assert [row["body"] for row in rows(lake / "orders", "bad")] == [b"torn"]
    assert list((lake / "orders" / "data").glob(".spark-staging-*")) == []
    assert not Path(f"viewfs:/{topic}").exists()
    with pytest.raises(InvalidInput, match="was started with another schema; see viewfs://"):
        ingest(spark, cluster.address, [topic], place, IngestSettings(once=True, schema="n STRING"))
    with pytest.raises(InvalidInput, match="only local files are merged"):
        compact(place)
    other = f"viewfs://{topic}/other"  # not mounted, so read-only
    with pytest.raises(InvalidInput, match=f"cannot write to {other}: .+"):
        ingest(spark, cluster.address, [topic], other, once)


def test_an_unknown_file_system_is_refused(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match='cannot reach nosuch://x/y: No FileSystem for scheme "'):
        ingest(spark, cluster.address, [topic], "nosuch://x/y", ONCE)
    with pytest.raises(InvalidInput, match=r"cannot reach viewfs://none/y: .*Empty Mount table"):
        ingest(spark, cluster.address, [topic], "viewfs://none/y", ONCE)
    with pytest.raises(InvalidInput, match="cannot write to file://elsewhere/y: Wrong FS"):
        ingest(spark, cluster.address, [topic], "file://elsewhere/y", ONCE)
    send(cluster, topic, [b"x"])
    assert ingest(spark, cluster.address, [topic], tmp_path.as_uri(), ONCE).rows == 1
    assert [row["body"] for row in rows(tmp_path)] == [b"x"]
