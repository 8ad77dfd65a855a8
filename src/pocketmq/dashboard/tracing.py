"""A message's trace as steps that people read. Pure."""

import msgspec

from pocketmq.admin.messages import TraceEvent
from pocketmq.protocol.trace_text import (
    Traced,
    TracedDelivery,
    TracedEnd,
    TracedHandling,
    TracedRecall,
    TracedSend,
)


class Step(msgspec.Struct, frozen=True):
    """One thing that happened; times are milliseconds, 0 if it was not told when."""

    time_ms: int
    what: str
    group: str
    client: str
    cost_ms: int | None
    ok: bool


def steps(events: list[TraceEvent]) -> list[Step]:
    """Give the steps, oldest first."""
    made = [_step(each.event, each.client_host) for each in events]
    return sorted(made, key=lambda step: step.time_ms)


def _step(event: Traced, client: str) -> Step:
    match event:
        case TracedSend():
            what = f"sent to {event.topic}"
            return Step(event.time_ms, what, event.group, client, event.cost_ms, event.ok)
        case TracedDelivery():
            again = f", try {event.retries + 1}" if event.retries else ""
            what = f"handed to a handler{again}"
            return Step(event.time_ms, what, event.group, client, None, True)
        case TracedHandling():
            what = f"handler came back: {event.handled_as.name.lower().replace('_', ' ')}"
            return Step(event.time_ms, what, event.group, client, event.cost_ms, event.ok)
        case TracedEnd():
            asked = ", asked by the broker" if event.from_check else ""
            what = f"transaction ended: {event.state.name.lower()}{asked}"
            return Step(event.time_ms, what, event.group, client, None, True)
        case TracedRecall():
            return Step(event.time_ms, "taken back", event.group, client, None, event.ok)
