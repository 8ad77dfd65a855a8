"""The Spark source with a topic of `queue.type=BatchCQ`: ranges begin and end inside of batches."""

from pocketmq.embedded import Cluster
from tests import batch_topics


def test_ranges_cut_through_batches() -> None:
    with Cluster() as cluster:
        batch_topics.scan_with_spark(cluster.address)
