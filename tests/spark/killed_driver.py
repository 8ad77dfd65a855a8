"""What tasks and driver do for one micro-batch, in a process that is killed.

python -m tests.spark.killed_driver ADDRESS TOPIC FAULT DIRECTORY
"""

import sys
from pathlib import Path

import pyarrow as pa

from pocketmq.spark.exactly_once import ExactlyOnceWriter, Prepared
from tests.spark.faulty_sink import FaultyWriter
from tests.spark.test_moving import BODIES, QUERY, writer_to


def prepared(writer: ExactlyOnceWriter) -> Prepared:
    """Stage the rows of the micro-batch."""
    batch = pa.record_batch([pa.array(BODIES)], names=["body"])
    return writer.prepare(writer._sender(), QUERY, 0, iter([batch]), 1)


def main(address: str, topic: str, fault: str, work: str) -> None:
    plan = writer_to(address, topic, Path(work) / "ledger").plan
    writer = FaultyWriter(plan, (fault,), Path(work), 0)
    writer.commit([prepared(writer)], 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
