"""Commands about what users may do on clusters with access control (5.x)."""

from pocketmq.admin.access import rules_for
from pocketmq.admin.admin import Admin
from pocketmq.admin.gathered import Gathered
from pocketmq.cli.admin.flags import BROKER, CLUSTER, one_target, text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, row, told
from pocketmq.errors import Absent
from pocketmq.protocol.bodies.access import Acl

_COLUMNS = "%-16s  %-10s  %-22s  %-20s  %-24s  %-10s"
_HEAD = row(_COLUMNS, "#Subject", "#PolicyType", "#Resource", "#Actions", "#SourceIp", "#Decision")
_SUBJECT = text("-s", "--subject", help="Such as User:alice.", required=True)
_RESOURCES = text("-r", "--resources", help="Such as Topic:orders,Group:*.", required=True)
_ACTIONS = text("-a", "--actions", help="Such as Pub,Sub.", required=True)
_DECISION = text("-d", "--decision", help="Allow or Deny.", required=True)
_SOURCES = text("-i", "--sourceIp", "sources", help="Addresses, such as 10.0.0.0/8.")


def _names(given: str | None) -> list[str]:
    return [name.strip() for name in (given or "").split(",") if name.strip()]


def _done(verb: str, done: Gathered[None], subject: str) -> Shown:
    lines = [f"{verb} acl to {each.place.address} success." for each in done.some()]
    data = {"subject": subject, "brokers": [each.place for each in done]}
    return Shown(lines, data, told(done.missing))


def _lines(rules: Acl) -> list[str]:
    if not rules.policies:
        return [row(_COLUMNS, rules.subject, "", "", "", "", "")]
    return [
        row(
            _COLUMNS,
            rules.subject,
            policy.policy_type,
            entry.resource,
            _java_list(entry.actions),
            _java_list(entry.source_ips),
            entry.decision,
        )
        for policy in rules.policies
        for entry in policy.entries or ()
    ]


def _java_list(values: list[str] | None) -> str:
    return "null" if values is None else f"[{', '.join(values)}]"


@admin_command("createAcl", _SUBJECT, _RESOURCES, _ACTIONS, _DECISION, _SOURCES, BROKER, CLUSTER)
async def create(
    admin: Admin,
    *,
    subject: str,
    resources: str,
    actions: str,
    decision: str,
    sources: str | None,
    address: str | None,
    cluster: str | None,
) -> Shown:
    """Give a subject rules on one broker, or on all of a cluster."""
    one_target(cluster, address)
    addresses = _names(sources) or None
    rules = rules_for(subject, _names(resources), _names(actions), decision, addresses)
    return _done("create", await admin.access.create_rules(rules, cluster, address), subject)


@admin_command("updateAcl", _SUBJECT, _RESOURCES, _ACTIONS, _DECISION, _SOURCES, BROKER, CLUSTER)
async def update(
    admin: Admin,
    *,
    subject: str,
    resources: str,
    actions: str,
    decision: str,
    sources: str | None,
    address: str | None,
    cluster: str | None,
) -> Shown:
    """Change a subject's rules for some resources, or add them."""
    one_target(cluster, address)
    addresses = _names(sources) or None
    rules = rules_for(subject, _names(resources), _names(actions), decision, addresses)
    return _done("update", await admin.access.update_rules(rules, cluster, address), subject)


@admin_command(
    "deleteAcl",
    _SUBJECT,
    text("-r", "--resources", "resource", help="One resource."),
    BROKER,
    CLUSTER,
    asks="Delete the rules of {subject}?",
)
async def delete(
    admin: Admin, *, subject: str, resource: str | None, address: str | None, cluster: str | None
) -> Shown:
    """Delete a subject's rules, or those for one resource."""
    one_target(cluster, address)
    done = await admin.access.delete_rules(subject, resource, cluster, address)
    return _done("delete", done, subject)


@admin_command("getAcl", _SUBJECT, BROKER, CLUSTER)
async def get(admin: Admin, *, subject: str, address: str | None, cluster: str | None) -> Shown:
    """Show a subject's rules as each broker knows them."""
    one_target(cluster, address)
    found = (await admin.access.rules(subject, cluster, address)).some()
    known = [rules for rules in found.values() if rules is not None]
    if not known:
        raise Absent("rules of", subject)
    lines = [line for rules in known for line in (_HEAD, *_lines(rules))]
    return Shown(lines, known, told(found.missing))


@admin_command(
    "listAcl",
    text("-s", "--subject", help="Part of the subjects."),
    text("-r", "--resource", help="Part of the resources."),
    BROKER,
    CLUSTER,
)
async def list_rules(
    admin: Admin,
    *,
    subject: str | None,
    resource: str | None,
    address: str | None,
    cluster: str | None,
) -> Shown:
    """Show all rules as each broker knows them."""
    one_target(cluster, address)
    found = (await admin.access.all_rules(subject, resource, cluster, address)).some()
    lines: list[str] = []
    for each in found:
        if each.value:
            lines += [_HEAD, *(line for rules in each.value for line in _lines(rules))]
    data = {each.place.broker: each.value for each in found}
    return Shown(lines, data, told(found.missing))


@admin_command(
    "copyAcl",
    text("-f", "--fromBroker", "source", help="Broker to copy from.", required=True),
    text("-t", "--toBroker", "destination", help="Broker to copy to.", required=True),
    text("-s", "--subjects", help="Some subjects, joined by commas."),
)
async def copy(admin: Admin, *, source: str, destination: str, subjects: str | None) -> Shown:
    """Copy rules from one broker to another."""
    copied = await admin.access.copy_rules(source, destination, _names(subjects))
    lines = [f"copy acl of {name} from {source} to {destination} success." for name in copied]
    return Shown(lines, copied)
