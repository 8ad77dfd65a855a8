"""Settings for all tests: a slow or busy machine must not fail what is right."""

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Wall-clock limits for one example say more about the machine than about the code. Tests that
# promise speed measure processor time themselves, and every test has pytest's timeout.
settings.register_profile(
    "steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("steady")

SHARE_A_SESSION = {"spark", "pipelines"}
"""Folders whose tests use one Spark session."""
WITH_PROCESSES = {"test_connect.py", "test_processes.py", "test_standalone.py"}
"""Files of these folders that start Java themselves, and have nothing of that session."""
SPREAD = {"test_schedules.py"}
"""Files whose tests have nothing in common that would be costly to make twice."""


def pytest_configure(config: pytest.Config) -> None:
    """Have Ctrl-C mean in the workers of a parallel run what it means elsewhere."""
    if hasattr(config, "workerinput"):
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests together, in a parallel run, that share a cluster or a Spark session."""
    for item in items:
        if item.path.name in WITH_PROCESSES:
            item.add_marker(pytest.mark.xdist_group("spark processes"))
        elif item.path.parent.name in SHARE_A_SESSION:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif item.path.name not in SPREAD:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Give the one session that all tests share: two cores, compiled once and not again."""
    pytest.importorskip("pyspark")
    from pocketmq.spark import spark_session
    from pocketmq.spark.engine import stop_session

    session = spark_session(
        "pocketmq tests",
        master="local[2,2]",  # a task that fails is tried twice
        config={
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xss4m",
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
        },
    )
    yield session
    stop_session(session)
