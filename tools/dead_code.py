"""List functions, classes, methods and imports that nothing uses; fail if there are any.

Fields and constants are left out: the wire format has many that only a peer reads.
"""

import sys

from vulture import Vulture  # type: ignore[import-untyped]

WATCHED = {"class", "function", "import", "method", "property", "unreachable_code"}
# Called by a library, not by us (and the steps of Hypothesis state machines, by their decorators).
CALLED_FROM_OUTSIDE = [
    "list_commands", "get_command", "resolve_command", "format_commands", "parse_args",  # click
    "shell_complete",
    "connection_made", "connection_lost", "data_received", "eof_received",  # asyncio
    "get_buffer", "buffer_updated",
    "pause_writing", "resume_writing",
    "_condition",  # concurrent.futures: of its futures
    "pytest_*", "rocketmq*", "teardown",  # pytest: hooks, fixtures we offer; Hypothesis
    "_split_scope", "remove_node",  # pytest-xdist: of schedulers
    "__getattr__", "__dir__",  # Python: of modules
    "streamReader", "streamWriter", "pushFilters",  # Spark: of data sources
    "capture_signals",  # uvicorn
    "do_POST", "log_message",  # http.server
    "kick",  # Taskiq: of brokers
    "unusual",  # the native core: of calls
    "getDefaultReadLimit", "reportLatestOffset", "prepareForTriggerAvailableNow", "onQueryStarted",
]  # fmt: skip


def main() -> int:
    """Scan the tree and report."""
    scanner = Vulture(
        ignore_names=CALLED_FROM_OUTSIDE,
        ignore_decorators=[
            *("@rule", "@invariant", "@initialize", "@precondition"),
            *("@atexit.register", "@pytest.fixture", "@*.on_revoked", "@*.on_assigned"),
            *("@ui.page", "@admin_command", "@broker.task"),
        ],
    )
    scanner.scavenge(["src", "tests", "benchmarks", "tools"])
    dead = [item for item in scanner.get_unused_code() if item.typ in WATCHED]
    for item in dead:
        print(f"{item.filename}:{item.first_lineno}: nothing uses {item.typ} {item.name}")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
