"""Errors of queries that PySpark logs leave the log of later tests as it is."""

import logging

import pytest

pytestmark = pytest.mark.xdist_group("query loggers")  # the second test is about the first one


def test_pyspark_has_logged_an_error_of_a_query() -> None:
    spark_log = pytest.importorskip("pyspark.logger")
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        spark_log.PySparkLogger.getLogger(name).propagate = False


def test_the_log_of_the_next_test_is_as_always(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("pocketmq").warning("as always")
    assert caplog.text.startswith("WARNING"), caplog.text
