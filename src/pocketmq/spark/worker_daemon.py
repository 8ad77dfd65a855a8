"""Spark's daemon of Python workers, quiet about workers that Spark has hung up on.

Spark starts this module instead of its own where `spark.python.daemon.module` names it.
"""

if __name__ == "__main__":
    from pyspark import daemon

    from pocketmq.spark.hung_up import be_quiet

    be_quiet()
    daemon.manager()
