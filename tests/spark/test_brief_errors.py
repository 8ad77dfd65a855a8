"""Errors of ours as one line in Spark's processes; options checked before anything is planned."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pocketmq.errors import InvalidInput, OptionInvalid
from pocketmq.spark.brief_errors import HIDE, brief_rows, in_brief
from pocketmq.spark.given_options import check_options, check_source

HERE = {"nameServer": "127.0.0.1:9876", "subscribe": "orders"}


def failing(error: Exception) -> Iterator[int]:
    yield 1
    raise error


@pytest.mark.parametrize("error", [InvalidInput("ours"), ValueError("another")])
def test_errors_stay_what_they_are_and_nothing_is_hidden_in_a_user_s_process(
    error: Exception,
) -> None:
    @in_brief
    def call(one: int, *, two: int) -> int:
        """Say hello."""
        if two:
            raise error
        return one

    assert call(5, two=0) == 5
    assert call.__doc__ == "Say hello."
    with pytest.raises(type(error)):
        call(5, two=1)
    rows = brief_rows(failing(error))
    assert next(rows) == 1
    with pytest.raises(type(error)):
        next(rows)
    assert HIDE not in os.environ


IN_WORKER = """
import os, sys
from importlib.machinery import ModuleSpec
sys.modules["__main__"].__spec__ = ModuleSpec(sys.argv[1], None)
from pocketmq.errors import InvalidInput
from pocketmq.spark.brief_errors import HIDE, in_brief

def call():
    raise {"ours": InvalidInput("no"), "another": ValueError("no")}[sys.argv[2]]

try:
    in_brief(call)()
except (InvalidInput, ValueError):
    print(os.environ.get(HIDE))
"""


@pytest.mark.parametrize(
    ("program", "error", "hidden"),
    [
        ("pyspark.daemon", "ours", "1"),
        ("pyspark.sql.worker.plan_data_source_read", "ours", "1"),
        ("pocketmq.spark.worker_daemon", "ours", "1"),
        ("pyspark.daemon", "another", "None"),
        ("mine", "ours", "None"),
    ],
)
def test_in_a_process_of_spark_s_the_traceback_is_hidden(
    program: str, error: str, hidden: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IN_WORKER, program, error],
        capture_output=True,
        text=True,
        check=True,
        env={name: value for name, value in os.environ.items() if name != HIDE},
    )
    assert ended.stdout.strip() == hidden


def test_names_and_values_are_checked_for_source_and_sink_alike() -> None:
    check_options(
        HERE | {"batchSize": "1m", "checkpointLocation": "/x", "MAXOFFSETSPERTRIGGER": "5"}
    )
    check_options({})
    for more, reason in (
        ({"batchSiz": "1m"}, "did you mean 'batchSize'"),
        ({"exactlyOnce": "perhaps"}, "must be true or false"),
        ({"startingOffsets": "soon"}, "must be earliest, latest or JSON"),
    ):
        with pytest.raises(OptionInvalid, match=reason):
            check_options(HERE | more)


def test_a_read_is_checked_as_far_as_batches_and_streams_agree() -> None:
    check_source(HERE | {"startingOffsets": "latest"})
    check_source(HERE | {"endingOffsets": "latest"})
    for given, reason in (
        (
            {"nameServer": "h:1"},
            r"'subscribe' is missing; set it, or 'subscribePattern' or 'assign'$",
        ),
        (HERE | {"assign": '{"t": {"b": [0]}}'}, "cannot be combined with"),
        (HERE | {"endingOffsets": "earliest"}, "must not be earliest"),
        (
            HERE | {"maxOffsetsPerTrigger": "5", "endingOffsets": "latest"},
            "is not available for a batch",
        ),
    ):
        with pytest.raises(OptionInvalid, match=reason):
            check_source(given)
    with pytest.raises(OptionInvalid, match="there are no options at all"):
        check_source({"path": "/warehouse/t"})
