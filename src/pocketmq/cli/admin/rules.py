"""Commands for the rules of clusters with access control (5.x)."""

from pocketmq.admin.access import rules_for
from pocketmq.admin.admin import Admin
from pocketmq.admin.gathered import Gathered
from pocketmq.cli.admin.flags import BROKER, CLUSTER, names_in, one_target, text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, changed, row, told
from pocketmq.errors import Absent
from pocketmq.protocol.requests.access import Acl

_COLUMNS = "%-16s  %-10s  %-22s  %-20s  %-24s  %-10s"
_HEAD = row(_COLUMNS, "#Subject", "#PolicyType", "#Resource", "#Actions", "#SourceIp", "#Decision")
_SUBJECT = text("-s", "--subject", help="Subject, such as User:alice.", required=True)
_RESOURCES = text(
    "-r", "--resources", help="Resources, such as Topic:orders,Group:*.", required=True
)
_ACTIONS = text("-a", "--actions", help="Actions, such as Pub,Sub.", required=True)
_DECISION = text("-d", "--decision", help="Allow or Deny.", required=True)
_SOURCES = text(
    "-i", "--sourceIp", "sources", help="Only from these addresses, such as 10.0.0.0/8."
)


def _done(verb: str, done: Gathered[None], subject: str) -> Shown:
    return changed(done, f"{verb} acl to {{}} success.", subject=subject)


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
    """Create the rules of a subject.

    On one broker, or on all of a cluster.
    """
    one_target(cluster, address)
    addresses = names_in(sources) or None
    rules = rules_for(subject, names_in(resources), names_in(actions), decision, addresses)
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
    """Change or add rules of a subject."""
    one_target(cluster, address)
    addresses = names_in(sources) or None
    rules = rules_for(subject, names_in(resources), names_in(actions), decision, addresses)
    return _done("update", await admin.access.update_rules(rules, cluster, address), subject)


@admin_command(
    "deleteAcl",
    _SUBJECT,
    text("-r", "--resources", "resource", help="Only the rules for this resource."),
    BROKER,
    CLUSTER,
    asks="Delete the rules of {subject}?",
)
async def delete(
    admin: Admin, *, subject: str, resource: str | None, address: str | None, cluster: str | None
) -> Shown:
    """Delete the rules of a subject."""
    one_target(cluster, address)
    done = await admin.access.delete_rules(subject, resource, cluster, address)
    return _done("delete", done, subject)


@admin_command("getAcl", _SUBJECT, BROKER, CLUSTER)
async def get(admin: Admin, *, subject: str, address: str | None, cluster: str | None) -> Shown:
    """Show the rules of a subject on each broker."""
    one_target(cluster, address)
    found = (await admin.access.rules(subject, cluster, address)).some()
    known = [rules for rules in found.values() if rules is not None]
    if not known:
        raise Absent("rule of", subject)
    lines = [line for rules in known for line in (_HEAD, *_lines(rules))]
    return Shown(lines, known, told(found.missing))


@admin_command(
    "listAcl",
    text("-s", "--subject", help="Only subjects that contain this."),
    text("-r", "--resource", help="Only resources that contain this."),
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
    """List the rules of each broker."""
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
    text("-f", "--fromBroker", "source", help="Address of the broker to copy from.", required=True),
    text(
        "-t", "--toBroker", "destination", help="Address of the broker to copy to.", required=True
    ),
    text("-s", "--subjects", help="Subjects, separated by commas.  [default: all]"),
)
async def copy(admin: Admin, *, source: str, destination: str, subjects: str | None) -> Shown:
    """Copy rules from one broker to another."""
    copied = await admin.access.copy_rules(source, destination, names_in(subjects))
    lines = [f"copy acl of {name} from {source} to {destination} success." for name in copied]
    return Shown(lines, copied)
