"""How to read everything that a broker keeps in its store, for a check of the store.

Every kind of document has a line here; `tests/broker/test_stored_forms.py` fails for one that has
none. Tag codes of delayed messages depend on the broker's levels, which a check does not know.
"""

from pathlib import Path

import msgspec

from pocketmq.broker.access.users import AclTable, UserTable
from pocketmq.broker.appending import tag_rules
from pocketmq.broker.assignment import RequestModeTable
from pocketmq.broker.delay_progress import DelayProgress
from pocketmq.broker.delay_rules import real_place
from pocketmq.broker.delays import delay_tag_rules
from pocketmq.broker.groups import ForbiddenTable, GroupTable
from pocketmq.broker.half_messages import KIND as TRANSACTIONS
from pocketmq.broker.half_messages import SavedStates
from pocketmq.broker.half_states import unpack_states
from pocketmq.broker.kept_settings import KIND as SETTING
from pocketmq.broker.name_rules import topic_fault
from pocketmq.broker.pop.keeping import SavedPops
from pocketmq.broker.pop.popping import KIND as POPS
from pocketmq.broker.timer_queue import KIND as TIMERS
from pocketmq.broker.timer_queue import SavedTimers
from pocketmq.broker.timers import timer_tag_rules
from pocketmq.broker.topics import MAX_QUEUES, TopicTable
from pocketmq.broker.transaction_checks import half_tag_rules
from pocketmq.model.group_config import GroupConfig
from pocketmq.model.topic_config import TopicConfig
from pocketmq.protocol.bodies.access import Acl, User
from pocketmq.protocol.json_values import decode_body
from pocketmq.store.check_values import CheckReport, StoredForms
from pocketmq.store.checking import check_store
from pocketmq.store.repair import Repaired, repair_store


def _read_states(_: str, document: bytes) -> None:
    unpack_states(msgspec.json.decode(document, type=SavedStates).states)


def _waits_for(properties: bytes) -> tuple[str, int] | None:
    """Return a place that may be: properties have no checksum."""
    place = real_place(properties)
    if place is None or topic_fault(place[0]) is not None or place[1] >= MAX_QUEUES:
        return None
    return place


FORMS = StoredForms(
    documents={
        TopicTable.kind: lambda _, document: decode_body(document, TopicConfig),
        GroupTable.kind: lambda _, document: decode_body(document, GroupConfig),
        UserTable.kind: lambda _, document: decode_body(document, User),
        AclTable.kind: lambda _, document: decode_body(document, Acl),
        ForbiddenTable.kind: lambda key, document: ForbiddenTable().load([(key, document)]),
        RequestModeTable.kind: lambda key, document: RequestModeTable().load([(key, document)]),
        DelayProgress.kind: lambda key, document: DelayProgress().load([(key, document)], 0),
        SETTING: lambda _, document: msgspec.json.decode(document, type=str),
        POPS: lambda _, document: msgspec.msgpack.decode(document, type=SavedPops),
        TIMERS: lambda _, document: msgspec.json.decode(document, type=SavedTimers),
        TRANSACTIONS: _read_states,
    },
    tag_rules={**tag_rules(), **half_tag_rules(), **timer_tag_rules()}
    | dict.fromkeys(delay_tag_rules("1s")),
    waits_for=_waits_for,
)


def check_broker_store(path: Path) -> CheckReport:
    """Check a store, and everything that a broker keeps in it; see `check_store`."""
    return check_store(path, FORMS)


def repair_broker_store(path: Path) -> Repaired:
    """Repair a store; documents that a broker could not read are left out; see `repair_store`."""
    return repair_store(path, FORMS)
