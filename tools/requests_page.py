"""Write docs/reference/requests.md from the catalogue of requests; `--check` only compares."""

import sys
from pathlib import Path

from pocketmq.protocol.bodies.by_code import BodyForm
from pocketmq.protocol.catalogue import request_kind
from pocketmq.protocol.codes import RequestCode

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "requests.md"
HEAD = """# Requests

Every request code of RocketMQ 5.5.0 and 4.9 with the types that read and write it: headers are in
`pocketmq.protocol.headers`, bodies in `pocketmq.protocol.bodies` and `pocketmq.model`. A word in
small letters is a body that is not one JSON value. `pocketmq.protocol.catalogue.request_kind(code)`
gives the same from Python; `python tools/requests_page.py` writes this page.

| code | name | served by | request header | request body | response header | response body |
|---|---|---|---|---|---|---|
"""


def name(kind: object) -> str:
    """Show a type by its name, a form in words, nothing as nothing."""
    if kind is None or kind is BodyForm.NONE:
        return ""
    if isinstance(kind, BodyForm):
        return kind.name.lower().replace("_", " ")
    return f"`{kind.__name__}`" if isinstance(kind, type) else f"`{kind}`"


def page() -> str:
    """Give the page's text."""
    rows = []
    for code in RequestCode:
        kind = request_kind(code)
        peers = ", ".join(sorted(peer.value for peer in kind.served_by))
        parts = (
            kind.request_header,
            kind.request_body,
            kind.response_header,
            kind.response_body,
        )
        types = " | ".join(name(part) for part in parts)
        rows.append(f"| {code.value} | {code.name} | {peers} | {types} |")
    return HEAD + "\n".join(rows) + "\n"


def main() -> int:
    """Write or check."""
    if "--check" in sys.argv:
        return 0 if PAGE.read_text() == page() else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
