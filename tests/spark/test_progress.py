"""Progress for show: nothing about it can stop a stream; and lag, read from a query's progress."""

import logging

import pytest

from pocketmq.model import MessageQueue
from pocketmq.spark.options import Reach
from pocketmq.spark.progress import ProgressPublisher, stream_lag

A0, A1 = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-a", 1)


def test_a_cluster_that_does_not_answer_is_left_in_peace(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    progress = ProgressPublisher(Reach(name_servers="127.0.0.1:1"), "g", clock=lambda: now)
    with caplog.at_level(logging.WARNING, "pocketmq.spark"):
        progress.publish({A0: 5})
        progress.publish({A0: 6})
        assert caplog.text.count("progress commit failed: group=g") == 1
        now += 6
        progress.publish({A0: 6})
        assert caplog.text.count("progress commit failed: group=g") == 2
    progress.close()


def test_lag_is_what_a_query_s_progress_says() -> None:
    reached = {
        "orders": {"broker-a": {"0": 4, "1": 9}},
        "@begin": {"orders": {"broker-a": {"0": 0}}},
    }
    latest = {"orders": {"broker-a": {"0": 10, "1": 10}}, "@lag": {"total": 7, "max": 6}}
    source = {"endOffset": reached, "latestOffset": latest}
    other = {"endOffset": 3, "latestOffset": None}
    lag = stream_lag({"sources": [source, other]})
    assert (lag.total, lag.worst, lag.queues) == (7, 6, {A0: 6, A1: 1})
    assert stream_lag({"sources": [other]}).total == 0
