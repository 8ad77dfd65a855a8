"""Write docs/reference/errors.md from the error tree; `--check` only compares."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from pocketmq import errors

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"
HEAD = """# Errors

All errors are subclasses of `pocketmq.errors.MQError`. Flags show what a caller can do: `retryable`
(a retry may succeed), `refresh_route` (refresh the route first), `outcome_unknown`
(the request may have taken effect). Every error can be pickled, and has its values as attributes.
`python tools/errors_page.py` writes this page.

| error | when | flags |
|---|---|---|
"""
FLAGS = ("retryable", "refresh_route", "outcome_unknown")


def tree(cls: type[errors.MQError], depth: int = 0) -> Iterator[tuple[type[errors.MQError], int]]:
    """Walk the tree, siblings by name."""
    yield cls, depth
    for child in sorted(cls.__subclasses__(), key=lambda child: child.__name__):
        if child.__name__ in errors.__all__:
            yield from tree(child, depth + 1)


def page() -> str:
    """Return the page's text."""
    rows = []
    for cls, depth in tree(errors.MQError):
        flags = ", ".join(flag for flag in FLAGS if getattr(cls, flag) is True)
        first_line = (inspect.getdoc(cls) or "").splitlines()[0]
        rows.append(f"| {'– ' * depth}`{cls.__name__}` | {first_line} | {flags} |")
    return HEAD + "\n".join(rows) + "\n"


def main() -> int:
    """Write or check."""
    if "--check" in sys.argv:
        return 0 if PAGE.read_text() == page() else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
