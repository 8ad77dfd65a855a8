"""An archive of the classes that Spark loads: with it a JVM starts in half the CPU time.

`python -m tests.spark.archive` makes it, once. CI does so while something else is checked; making it
takes as long as two or three sessions without it. Java itself checks that the archive fits: one of
another Java, or of other jars, is ignored.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pocketmq import Cluster
from pocketmq.errors import CannotStart
from pocketmq.pipelines.copy import CopySettings, copy_topics
from pocketmq.pipelines.ingest import IngestSettings, ingest
from pocketmq.spark import spark_session
from tests.spark.topics import send

ARCHIVE = Path(__file__).parents[2] / "build" / "spark-classes.jsa"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for a Java that lives for seconds."""
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"


def quick_java() -> str:
    """Return the options for a Java of a test, with the archive if there is one."""
    if not ARCHIVE.exists():
        return QUICK
    return f"{QUICK} -XX:SharedArchiveFile={ARCHIVE} {_QUIET}"


def make(folder: Path) -> None:
    """Run what most tests of Spark run, and have Java archive its classes when it ends."""
    draft = folder / "classes.jsa"
    options = f"{QUICK} -Xss4m -XX:ArchiveClassesAtExit={draft} {_QUIET}"
    with Cluster() as cluster:
        topic = cluster.create_topic("orders", queues=2)
        cluster.create_topic("copied", queues=2)
        send(cluster, topic, range(10))
        spark = spark_session(
            master="local[2,2]", config={"spark.driver.extraJavaOptions": options}
        )
        ingest(spark, cluster.address, [topic], str(folder / "lake"), IngestSettings(once=True))
        copy_topics(
            spark, cluster.address, [topic], to_name_server=cluster.address,
            checkpoint=str(folder / "state"), settings=CopySettings(to_topic="copied", once=True),
        )  # fmt: skip
        spark.read.parquet(str(folder / "lake" / "data")).groupBy("queueId").count().collect()
        gateway: Any = spark.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    draft.replace(ARCHIVE)


if __name__ == "__main__":
    try:
        ARCHIVE.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=ARCHIVE.parent) as place:
            make(Path(place))
    except (CannotStart, OSError) as error:
        print(f"Spark's classes are not archived: {error}", file=sys.stderr)
