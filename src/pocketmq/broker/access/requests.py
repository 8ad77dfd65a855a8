"""Requests that manage access control, in Java's codes and words.

Users and rules of 5.x (3001–3010), and the accounts of 4.x (50–54), whose changes go to their file
and apply at once.
"""

import logging

import msgspec

from pocketmq.broker.access.account_files import AccountFiles
from pocketmq.broker.access.users import UserType, refused, subject_of, user_of
from pocketmq.broker.saving import save_changes
from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import InvalidInput, ResponseCode, server_error
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, decode_body, encode_body
from pocketmq.protocol.requests import access
from pocketmq.protocol.signature import ACCESS_KEY

logger = logging.getLogger("pocketmq.broker")

_BLANK_NAME = "The username is blank"
_NO_RULES = (  # Java does not catch this one, and so names its class
    "org.apache.rocketmq.auth.authorization.exception.AuthorizationException: "
    "The body of acl is null"
)
_UPDATE_FAILED, _DELETE_FAILED, _WHITE_FAILED = 209, 210, 211  # 4.x; 5.x uses them for others
_ONLY_SUPER = "The super user can only be {} by super user"


def create_user(state: BrokerState, _: Connection, request: Command) -> Command:
    """Add a user; only a super user can add a super user."""
    user = _named_user(request)
    if UserType.named(user.user_type) is UserType.SUPER and not _by_super(state, request):
        raise server_error(ResponseCode.SYSTEM_ERROR, _ONLY_SUPER.format("create"))
    state.users.create(user, state.batch.now_ms)
    return _changed(state, request, f"user {user.username} created")


def update_user(state: BrokerState, _: Connection, request: Command) -> Command:
    """Change a user; only a super user can change a super user, or make a user one."""
    user = _named_user(request)
    if UserType.named(user.user_type) is UserType.SUPER and not _by_super(state, request):
        raise server_error(ResponseCode.SYSTEM_ERROR, _ONLY_SUPER.format("update"))
    _spare_super(state, request, user.username or "")
    state.users.update(user, state.batch.now_ms)
    return _changed(state, request, f"user {user.username} updated")


def delete_user(state: BrokerState, _: Connection, request: Command) -> Command:
    """Delete a user with all rules; succeeds also for an unknown user."""
    name = request.header(access.DeleteUserRequest).username
    if not (name or "").strip():
        raise refused("username can not be blank")
    assert name is not None
    _spare_super(state, request, name)
    if state.users.remove(name, state.batch.now_ms):
        state.acls.remove(subject_of(name), state.batch.now_ms)
    return _changed(state, request, f"user {name} deleted")


def get_user(state: BrokerState, _: Connection, request: Command) -> Command:
    """Answer with a user; without a body if there is none."""
    name = request.header(access.GetUserRequest).username
    if not (name or "").strip():
        raise server_error(ResponseCode.INVALID_PARAMETER, _BLANK_NAME)
    user = state.users.get(name or "")
    return request.reply(ResponseCode.SUCCESS, body=b"" if user is None else encode_body(user))


def list_users(state: BrokerState, _: Connection, request: Command) -> Command:
    """Answer with the users whose name contains a text."""
    part = request.header(access.ListUsersRequest).filter or ""
    users = [user for name, user in sorted(state.users.entries.items()) if part.strip() in name]
    return request.reply(ResponseCode.SUCCESS, body=encode_body(users) if users else b"")


def set_acl(state: BrokerState, _: Connection, request: Command) -> Command:
    """Add rules to a user's, or change them: creating and updating are the same, as in Java."""
    acl = decode_body(request.body, access.Acl) if request.body else access.Acl()
    if not acl.policies:
        raise server_error(ResponseCode.SYSTEM_ERROR, _NO_RULES)
    subject = acl.subject if user_of(acl.subject) is not None else None
    subject = subject or request.header(access.CreateAclRequest).subject
    if user_of(subject) is None:
        remark = "An system error occurred, please try again later."
        raise server_error(ResponseCode.SYSTEM_ERROR, remark)
    name = _existing(state, subject, in_full=True)
    state.acls.merge(subject_of(name), acl, state.batch.now_ms)
    return _changed(state, request, f"rules of user {name} changed")


def delete_acl(state: BrokerState, _: Connection, request: Command) -> Command:
    """Delete a user's rule for a resource, or all rules."""
    header = request.header(access.DeleteAclRequest)
    name = _existing(state, header.subject)
    kind, resource = header.policy_type, header.resource
    state.acls.cut(subject_of(name), kind, resource, state.batch.now_ms)
    return _changed(state, request, f"rules of user {name} changed")


def get_acl(state: BrokerState, _: Connection, request: Command) -> Command:
    """Answer with a user's rules; without a body if there are none."""
    name = _existing(state, request.header(access.GetAclRequest).subject)
    acl = state.acls.get(subject_of(name))
    return request.reply(ResponseCode.SUCCESS, body=b"" if acl is None else encode_body(acl))


def list_acls(state: BrokerState, _: Connection, request: Command) -> Command:
    """Answer with the rules of subjects that contain one text, for resources with another."""
    header = request.header(access.ListAclsRequest)
    subject_part = (header.subject_filter or "").strip()
    resource_part = (header.resource_filter or "").strip()
    found = []
    for subject, acl in sorted(state.acls.entries.items()):
        if subject_part in subject:
            part = "" if resource_part in subject else resource_part
            policies = _with(acl.policies or [], part)
            if policies:
                found.append(msgspec.structs.replace(acl, policies=policies))
    return request.reply(ResponseCode.SUCCESS, body=encode_body(found) if found else b"")


def _with(policies: list[access.Policy], part: str) -> list[access.Policy]:
    left = []
    for policy in policies:
        entries = [entry for entry in policy.entries or () if part in (entry.resource or "")]
        if entries:
            left.append(msgspec.structs.replace(policy, entries=entries))
    return left


def _named_user(request: Command) -> access.User:
    name = request.header(access.CreateUserRequest).username
    if not name:
        raise server_error(ResponseCode.INVALID_PARAMETER, _BLANK_NAME)
    return msgspec.structs.replace(decode_body(request.body, access.User), username=name)


def _by_super(state: BrokerState, request: Command) -> bool:
    """Return whether a super user asks; a request without a name needed no authentication."""
    name = request.ext.get(ACCESS_KEY)
    return not name or state.users.is_super(name)


def _spare_super(state: BrokerState, request: Command, name: str) -> None:
    if state.users.is_super(name) and not _by_super(state, request):
        raise refused(_ONLY_SUPER.format("update"))


def _existing(state: BrokerState, subject: str | None, *, in_full: bool = False) -> str:
    name = user_of(subject)
    if name is None:
        raise refused("The subject is null.")
    if name not in state.users:
        shown = f"The subject of {subject_of(name)} is not exist." if in_full else None
        raise refused(shown or "The subject is not exist.")
    return name


def _changed(state: BrokerState, request: Command, what: str) -> Command:
    save_changes(state)
    logger.info("%s, by %s", what, request.ext.get(ACCESS_KEY, "an unauthenticated client"))
    return request.reply(ResponseCode.SUCCESS)


def put_account(state: BrokerState, _: Connection, request: Command) -> Command:
    """Add an account, or change the fields that are set."""
    files = _files(state, _UPDATE_FAILED)
    header = request.header(access.CreateAccessConfigRequest)
    account = access.Account(
        access_key=header.access_key,
        secret_key=header.secret_key,
        white_remote_address=header.white_remote_address,
        admin=header.admin,
        default_topic_perm=header.default_topic_perm,
        default_group_perm=header.default_group_perm,
        topic_perms=_listed(header.topic_perms),
        group_perms=_listed(header.group_perms),
    )
    try:
        files.put(account, state.batch.now_ms)
    except InvalidInput as error:
        raise server_error(_UPDATE_FAILED, str(error)) from error
    return _file_changed(state, files, request)


def delete_account(state: BrokerState, _: Connection, request: Command) -> Command:
    """Delete an account."""
    files = _files(state, _DELETE_FAILED)
    key = request.header(access.DeleteAccessConfigRequest).access_key
    if not files.remove(key, state.batch.now_ms):
        remark = f"The accessKey[{key}] corresponding to accessConfig has been deleted failed."
        raise server_error(_DELETE_FAILED, remark)
    return _file_changed(state, files, request)


def set_white_addresses(state: BrokerState, _: Connection, request: Command) -> Command:
    """Replace the addresses that need no authentication.

    Tools may leave out the file, though Java's header requires it.
    """
    files = _files(state, _WHITE_FAILED)
    listed = _listed(request.ext.get("globalWhiteAddrs"))
    if listed is None:
        raise server_error(_WHITE_FAILED, "The globalWhiteAddresses[null] has been updated failed.")
    try:
        path = request.ext.get("aclFileFullPath", "")
        files.set_white(listed, path, state.batch.now_ms)
    except InvalidInput as error:
        raise server_error(_WHITE_FAILED, str(error)) from error
    return _file_changed(state, files, request)


def version(state: BrokerState, _: Connection, request: Command) -> Command:
    """Answer with the versions of the access files."""
    files = _files(state, ResponseCode.SYSTEM_ERROR)
    current = encode_body(files.own.version).decode()
    every = {path: msgspec.Raw(encode_body(each)) for path, each in files.versions.items()}
    header = access.GetBrokerAclVersionResponse(
        version=current,
        all_acl_file_version=msgspec.json.encode(every).decode(),
        broker_name=state.config.broker_name,
        broker_addr=state.address,
        cluster_name=state.config.broker_cluster_name,
    )
    return request.reply(ResponseCode.SUCCESS, None, header)


def list_accounts(state: BrokerState, _: Connection, request: Command) -> Command:
    """Answer with every account and its secret, as Java does: for admins only."""
    files = _files(state, ResponseCode.SYSTEM_ERROR)
    table = access.AccountTable(global_white_addrs=files.white, plain_access_configs=files.listed)
    return request.reply(ResponseCode.SUCCESS, body=encode_body(table))


def _files(state: BrokerState, code: int) -> AccountFiles:
    if state.account_files is None:
        raise server_error(code, "this broker has no access file; set aclEnable and aclFile")
    return state.account_files


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _file_changed(state: BrokerState, files: AccountFiles, request: Command) -> Command:
    if state.gate is not None:
        state.gate.accounts = files.accounts
    logger.info("access file changed by %s", request.ext.get("AccessKey", "a white-listed address"))
    return request.reply(ResponseCode.SUCCESS)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.AUTH_CREATE_USER: create_user,
    RequestCode.AUTH_UPDATE_USER: update_user,
    RequestCode.AUTH_DELETE_USER: delete_user,
    RequestCode.AUTH_GET_USER: get_user,
    RequestCode.AUTH_LIST_USER: list_users,
    RequestCode.AUTH_CREATE_ACL: set_acl,
    RequestCode.AUTH_UPDATE_ACL: set_acl,
    RequestCode.AUTH_DELETE_ACL: delete_acl,
    RequestCode.AUTH_GET_ACL: get_acl,
    RequestCode.AUTH_LIST_ACL: list_acls,
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: put_account,
    RequestCode.DELETE_ACL_CONFIG: delete_account,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: version,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: set_white_addresses,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: list_accounts,
}
