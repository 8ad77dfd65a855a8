"""A benchmark for tests: notes which path it runs on."""

import os

from benchmarks._paths import note

if __name__ == "__main__":
    pure = os.environ.get("POCKETMQ_PURE") == "1"
    print("shown")
    for cost in (5.0, 3.0, 4.0):
        note("pure" if pure else "native", cost)
    note("both", 6.0 if pure else 2.0)
