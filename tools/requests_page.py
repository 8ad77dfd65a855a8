"""Write docs/reference/requests.md from the catalogue of requests; `--check` only compares."""

import sys
from pathlib import Path
from typing import Any

from pocketmq.broker.access.needs_by_code import NEEDS
from pocketmq.broker.by_code import HANDLERS
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.catalogue import REQUESTS
from pocketmq.protocol.header import Header
from pocketmq.protocol.request import Form, NoHeader

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "requests.md"
HEAD = """# Requests

Every request code of RocketMQ 5.5.0 and 4.9 with the types that read and write it: headers and
bodies are in `pocketmq.protocol.requests`, some bodies in `pocketmq.model`. A word in small letters
is a body that is not one JSON value. A name in *italics* is a request that PocketMQ
neither sends nor carries out. `pocketmq.protocol.catalogue.request_of(code)` returns the same from
Python; `python tools/requests_page.py` writes this page.

The last column is what a request to a broker [with access control](../how-to/guard-a-cluster.md)
needs: actions on resources, of which `/` means one will do; in brackets, fields that may be left
out. "Record" is the topic of the record at the place that is named.

| code | name | served by | header | body | response header | response body | needs |
|---|---|---|---|---|---|---|---|
"""
IN_WORDS = {
    RequestCode.HEART_BEAT: "Sub: consumer groups and topics announced",
    RequestCode.UNREGISTER_CLIENT: "Sub: [consumerGroup]",
    RequestCode.CHECK_CLIENT_CONFIG: "Sub: group and topic of the body",
    RequestCode.QUERY_ASSIGNMENT: "Sub/Get: topic and group of the body",
    RequestCode.LOCK_BATCH_MQ: "Sub: group and topics of the body",
    RequestCode.UNLOCK_BATCH_MQ: "Sub: group and topics of the body",
    RequestCode.BATCH_ACK_MESSAGE: "Sub: topics and groups of the body",
    RequestCode.END_TRANSACTION: "Pub: [topic], record",
    RequestCode.SEND_REPLY_MESSAGE: "Pub: topic, unless it is the cluster's for replies",
    RequestCode.SEND_REPLY_MESSAGE_V2: "Pub: topic, unless it is the cluster's for replies",
}
FIELDS = (
    "topic", "b", "a", "group", "consumerGroup", "groupName", "compareGroup", "filterGroups",
    "topicList", "srcGroup", "destGroup",
)  # fmt: skip


def needs(code: RequestCode) -> str:
    """Return what a request to a broker needs."""
    rule = NEEDS.get(code)
    if rule is None or code not in HANDLERS:
        return ""
    if code in IN_WORDS:
        return IN_WORDS[code]
    given = rule.read(Command.request(code, 0, {key: key for key in FIELDS}), "cluster")
    by_actions: dict[str, list[str]] = {}
    for need in given:
        named = "topic" if code in SENDS else str(need.resource.name)
        shown = f"[{named}]" if named in OPTIONAL.get(code, ()) else named
        by_actions.setdefault("/".join(need.actions), []).append(shown)
    if rule.position is not None:
        by_actions.setdefault("/".join(rule.on_record), []).append("record")
    return "; ".join(f"{actions}: {', '.join(names)}" for actions, names in by_actions.items())


SENDS = {RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
OPTIONAL = {
    RequestCode.VIEW_MESSAGE_BY_ID: ("topic",),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: ("topic",),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: ("topic",),
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: ("topic",),
    RequestCode.QUERY_CONSUME_QUEUE: ("consumerGroup",),
    RequestCode.QUERY_CORRECTION_OFFSET: ("filterGroups",),
    RequestCode.GET_CONSUME_STATS: ("topic", "topicList"),
    RequestCode.CLONE_GROUP_OFFSET: ("topic",),
}


def header(kind: type[Header]) -> str:
    """Return the name of a header's type, or nothing if there are no fields."""
    return "" if kind is NoHeader else f"`{kind.__name__}`"


def body(form: Form[Any]) -> str:
    """Return the name of a body's type, or a form in words."""
    return form.name if form.json is None else f"`{form.name}`"


def page() -> str:
    """Return the page's text."""
    rows = []
    for code in RequestCode:
        row = REQUESTS[code]
        peers = ", ".join(sorted(peer.value for peer in row.served_by))
        name = f"*{code.name}*" if row.foreign else code.name
        types = f"{header(row.header)} | {body(row.body)} | {header(row.answer)}"
        types = f"{types} | {body(row.result)}"
        rows.append(f"| {code.value} | {name} | {peers} | {types} | {needs(code)} |")
    return HEAD + "\n".join(rows) + "\n"


def main() -> int:
    """Write or check."""
    if "--check" in sys.argv:
        return 0 if PAGE.read_text() == page() else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
