"""List functions, classes, methods and imports that nothing uses; fail if there are any.

Fields and constants are left out: the wire format has many that only a peer reads.
"""

import sys

from vulture import Vulture  # type: ignore[import-untyped]

WATCHED = {"class", "function", "import", "method", "property", "unreachable_code"}
# Called by a library, not by us.
CALLED_FROM_OUTSIDE = ["pytest_*", "visit_*"]


def main() -> int:
    """Scan the tree and report."""
    scanner = Vulture(ignore_names=CALLED_FROM_OUTSIDE)
    scanner.scavenge(["src", "tests", "benchmarks", "tools"])
    dead = [item for item in scanner.get_unused_code() if item.typ in WATCHED]
    for item in dead:
        print(f"{item.filename}:{item.first_lineno}: nothing uses {item.typ} {item.name}")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
