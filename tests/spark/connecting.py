"""A program that uses topics by way of Spark Connect, and prints what came of it as JSON."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pocketmq.errors import InvalidInput
from pocketmq.pipelines.copy import CopySettings, copy_topics
from pocketmq.pipelines.ingest import ingest
from pocketmq.spark.engine import java_home
from pocketmq.spark.progress import stream_lag

Told = dict[str, Any]


def reading(spark: Any, address: str) -> Told:
    """Read, found by name and filtered, and by SQL."""
    source = {"nameServer": address, "subscribe": "orders"}
    rows = spark.read.format("rocketmq").options(**source).load()
    view = f"USING rocketmq OPTIONS (nameServer '{address}', subscribe 'orders')"
    spark.sql(f"CREATE TEMPORARY VIEW orders {view}").count()
    try:
        spark.read.format("rocketmq").options(**source, subscribr="x").load().count()
    except Exception as error:  # noqa: BLE001 - looked at by the test
        wrong = str(error)
    return {
        "read": rows.count(),
        "first": rows.where("queueOffset < 5").count(),
        "by sql": spark.sql("SELECT * FROM orders").count(),
        "wrong": "option 'subscribr' is unknown" in wrong,
    }


def writing(spark: Any, address: str, folder: Path) -> Told:
    """Write at once, as a stream, exactly once; count what is there after each."""
    out = {"nameServer": address, "topic": "out"}
    stream = spark.readStream.format("rocketmq").options(
        nameServer=address, subscribe="orders", startingOffsets="earliest", maxOffsetsPerTrigger=30
    )

    def there() -> int:
        rows = spark.read.format("rocketmq").options(nameServer=address, subscribe="out").load()
        return int(rows.count())

    ten = spark.range(10).selectExpr("CAST(id AS STRING) AS body")
    ten.write.format("rocketmq").options(**out).mode("append").save()
    found: Told = {"written": there()}
    for name, more in (("streamed", {}), ("exactly once", {"exactlyOnce": "true"})):
        writer = stream.load().select("body").writeStream.format("rocketmq")
        writer = writer.options(**out, **more).option("checkpointLocation", f"{folder}/{name}")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(100)
        found[name] = there()
    found["lag"] = [stream_lag(each).total for each in query.recentProgress][-1]
    return found


def pipelines(spark: Any, address: str, folder: Path) -> Told:
    """Copy, and be refused an ingestion."""
    copied = copy_topics(
        spark,
        address,
        ["orders"],
        to_name_server=address,
        checkpoint=folder / "copy",
        settings=CopySettings(to_topic="copied", once=True),
    )
    try:
        ingest(spark, address, ["orders"], folder / "lake")
    except InvalidInput as error:
        refused = str(error)
    return {"copied": copied.messages, "refused": refused}


def main(address: str, folder: str) -> None:
    os.environ |= {"JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark: Any = SparkSession.builder.remote("local[2]").getOrCreate()
    told = reading(spark, address)
    told |= writing(spark, address, Path(folder))
    told |= pipelines(spark, address, Path(folder))
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
