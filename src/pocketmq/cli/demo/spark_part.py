"""Spark's part in the demo: messages to Parquet, rebalances to a report.

A session takes long to start, so it starts in the background during the play. Without Spark a
consumer of ours reads the events, and only the Parquet files are missing.
"""

import logging
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pocketmq import MQError, PullConsumer
from pocketmq.cli.demo.member import EVENTS, TOPIC
from pocketmq.errors import CannotStart
from pocketmq.pipelines.health import Observations
from pocketmq.pipelines.health.observed import DECODERS, BadLine, decoded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("pocketmq.demo")

_PATIENCE = 120.0
SCHEMA = "number BIGINT, customer STRING, amount DOUBLE, sent DOUBLE"


class SparkInBackground:
    """A session that a thread starts and warms up during the play."""

    def __init__(self) -> None:
        self._address = ""
        self._started = threading.Event()
        self._ready_to_warm_up = threading.Event()
        self._session: SparkSession | None = None
        self._problem: MQError | None = None
        self._thread = threading.Thread(target=self._start, name="demo-spark", daemon=True)
        self._thread.start()

    def _start(self) -> None:
        try:
            from pocketmq.spark.engine import TUNED, spark_session

            # Compile quickly: the session is too short for optimisation to pay off.
            java = f"{TUNED['spark.driver.extraJavaOptions']} -XX:TieredStopAtLevel=1"
            config = {"spark.driver.extraJavaOptions": java, "spark.driver.memory": "1g"}
            self._session = spark_session("pocketmq demo", config=config)
            self._started.set()
            self._warm_up(self._session)
        except MQError as problem:
            self._problem = problem
        except ImportError as problem:
            reason = f"{problem.name} is not installed; pip install 'pocketmq[spark]'"
            self._problem = CannotStart("Spark", reason)
        except Exception as problem:  # py4j and Java raise all kinds
            logger.exception("the Spark session failed")
            self._problem = CannotStart("Spark", f"{type(problem).__name__}, see demo.log")
        finally:
            self._started.set()

    def warm_up_with(self, address: str) -> None:
        """Set the cluster to warm up with: the first query of a session is the slowest."""
        self._address = address
        self._ready_to_warm_up.set()

    def _warm_up(self, spark: "SparkSession") -> None:
        self._ready_to_warm_up.wait()
        if not self._address:
            return
        # A broker may be killed meanwhile, as part of the play.
        with tempfile.TemporaryDirectory(prefix="pocketmq-demo-") as place, suppress(MQError):
            ingest_orders(spark, self._address, Path(place) / "parquet")

    def session(self) -> "SparkSession":
        """Wait for the session; raises `CannotStart` if it failed."""
        self._ready_to_warm_up.set()
        self._thread.join()
        if self._problem is not None:
            raise self._problem
        assert self._session is not None
        return self._session

    def stop(self) -> None:
        """Stop the session once it has started: Java would outlive an abandoned one."""
        self._started.wait(_PATIENCE)
        self._ready_to_warm_up.set()
        if self._session is not None:
            self._session.stop()


def ingest_orders(spark: "SparkSession", address: str, place: Path) -> set[int]:
    """Copy the orders to Parquet, and return the numbers of those stored."""
    from pocketmq.pipelines.ingest import IngestSettings, compact, ingest, ingested_values

    settings = IngestSettings(once=True, schema=SCHEMA)
    ingest(spark, address, [TOPIC], place, settings)
    compact(place)
    return set(ingested_values(place, "number"))


def events_by_spark(spark: "SparkSession", address: str, observed: Observations) -> Observations:
    """Return the observations with the rebalance events of the topic, read by Spark."""
    from pocketmq.pipelines.health.observed import read_topics

    return read_topics(spark, observed, name_server=address, topics={"events": EVENTS})


def events_by_ourselves(address: str, observed: Observations) -> Observations:
    """Return the observations with the rebalance events, read without Spark."""
    bad: list[BadLine] = []
    lines: list[tuple[str, bytes]] = []
    with PullConsumer(address, group="demo-report") as consumer:
        queues = consumer.queues(EVENTS)
        consumer.assign(queues)
        for queue in queues:
            consumer.seek_to_begin(queue)
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < 1.5:
            messages = consumer.poll(0.5)
            lines += [
                (f"{m.broker_name}:{m.queue_id} offset {m.queue_offset}", m.body) for m in messages
            ]
            if messages:
                quiet_since = time.monotonic()
    events = list(decoded(lines, DECODERS["events"], bad))
    return Observations([*observed.events, *events], observed.offsets, observed.deliveries, bad)
