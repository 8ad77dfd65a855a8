"""Commands about accounts of 4.x brokers with access control."""

from pocketmq.admin.admin import Admin
from pocketmq.cli.admin.flags import BROKER, CLUSTER, one_target, text, truth
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, row, told, when
from pocketmq.cli.secret_input import read_secret
from pocketmq.protocol.bodies.access import Account

_COLUMNS = "%-16s  %-22s  %-22s  %-20s  %-22s  %-22s"
_KEY = text("-a", "--accessKey", "key", help="Account.", required=True)


def _names(given: str | None) -> list[str] | None:
    if given is None:
        return None
    return [name.strip() for name in given.split(",") if name.strip()]


@admin_command(
    "updateAclConfig",
    _KEY,
    text("-s", "--secretKey", "secret", help="Its password; - to be asked for it."),
    text("--secretKeyFile", "secret_file", help="File whose first line is its password."),
    text("-w", "--whiteRemoteAddress", "white", help="From where it need not sign."),
    text("-i", "--defaultTopicPerm", "topic_perm", help="DENY, PUB, SUB or PUB|SUB."),
    text("-u", "--defaultGroupPerm", "group_perm", help="DENY or SUB."),
    text("-t", "--topicPerms", "topics", help="Such as orders=PUB|SUB,secrets=DENY."),
    text("-g", "--groupPerms", "groups", help="Such as billing=SUB."),
    truth("-m", "--admin", "is_admin", default=False, help="It may do everything."),
    BROKER,
    CLUSTER,
)
async def update(
    admin: Admin,
    *,
    key: str,
    secret: str | None,
    secret_file: str | None,
    white: str | None,
    topic_perm: str | None,
    group_perm: str | None,
    topics: str | None,
    groups: str | None,
    is_admin: bool,
    address: str | None,
    cluster: str | None,
) -> Shown:
    """Make or change an account on one 4.x broker, or on all masters of a cluster."""
    one_target(cluster, address)
    secret = read_secret(
        "secret", secret, secret_file, flag="-s", safe="--secretKeyFile", confirm=True
    )
    account = Account(
        access_key=key,
        secret_key=secret,
        white_remote_address=white,
        admin=is_admin,
        default_topic_perm=topic_perm,
        default_group_perm=group_perm,
        topic_perms=_names(topics),
        group_perms=_names(groups),
    )
    done = (await admin.accounts.put(account, cluster, address)).some()
    lines = [
        f"create or update plain access config to {each.place.address} success." for each in done
    ]
    data = {"account": key, "brokers": [each.place for each in done]}
    return Shown(lines, data, told(done.missing))


@admin_command("deleteAclConfig", _KEY, BROKER, CLUSTER, asks="Delete account {key}?")
async def delete(admin: Admin, *, key: str, address: str | None, cluster: str | None) -> Shown:
    """Delete an account from one 4.x broker, or from all masters of a cluster."""
    one_target(cluster, address)
    done = (await admin.accounts.delete(key, cluster, address)).some()
    lines = [
        f"delete plain access config account from {each.place.address} success." for each in done
    ]
    data = {"account": key, "brokers": [each.place for each in done]}
    return Shown([*lines, f"account's accesskey is:{key}"], data, told(done.missing))


@admin_command(
    "updateGlobalWhiteAddr",
    text("-g", "--globalWhiteRemoteAddresses", "white", help="Such as 10.0.0.*.", required=True),
    text("-p", "--aclFileFullPath", "file", help="One of the broker's files."),
    BROKER,
    CLUSTER,
    asks="Let everybody in from {white} without a signature?",
)
async def trust(
    admin: Admin, *, white: str, file: str | None, address: str | None, cluster: str | None
) -> Shown:
    """Set the addresses from where nobody has to sign, on 4.x brokers."""
    one_target(cluster, address)
    done = (await admin.accounts.trust(_names(white) or [], cluster, address, file=file)).some()
    lines = [
        f"update global white remote addresses to {each.place.address} success." for each in done
    ]
    data = {"addresses": _names(white), "brokers": [each.place for each in done]}
    return Shown(lines, data, told(done.missing))


@admin_command("clusterAclConfigVersion", BROKER, CLUSTER)
async def version(admin: Admin, *, address: str | None, cluster: str | None) -> Shown:
    """Show how often and when the access files of 4.x brokers were changed."""
    one_target(cluster, address)
    found = (await admin.accounts.versions(cluster, address)).some()
    heads = ("#Cluster Name", "#Broker Name", "#Broker Addr", "#AclFilePath")
    lines = [row(_COLUMNS, *heads, "#AclConfigVersionNum", "#AclLastUpdateTime")]
    for each in found:
        where = (each.value.cluster, each.value.broker, each.place.address)
        lines += [
            row(_COLUMNS, *where, name, state.counter, when(state.timestamp))
            for name, state in each.value.files.items()
        ]
    what = "broker" if address is not None else "cluster"
    lines.append(f"get {what}'s plain access config version success.")
    return Shown(lines, {each.place.address: each.value for each in found}, told(found.missing))
