"""Leaves these tests out where the extra `grpc` is not installed."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("grpc") else ["test_*.py"]
