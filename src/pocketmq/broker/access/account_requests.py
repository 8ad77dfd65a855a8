"""Requests that manage the accounts of 4.x (50–54): changes go to the file and apply at once."""

import logging

import msgspec

from pocketmq.broker.access.account_files import AccountFiles
from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import InvalidInput, ResponseCode, server_error
from pocketmq.net import Connection
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.json_values import encode_body
from pocketmq.protocol.requests import access

logger = logging.getLogger("pocketmq.broker")

_UPDATE_FAILED, _DELETE_FAILED, _WHITE_FAILED = 209, 210, 211  # 4.x; 5.x uses them for others


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
    return _changed(state, files, request)


def delete_account(state: BrokerState, _: Connection, request: Command) -> Command:
    """Delete an account."""
    files = _files(state, _DELETE_FAILED)
    key = request.header(access.DeleteAccessConfigRequest).access_key
    if not files.remove(key, state.batch.now_ms):
        remark = f"The accessKey[{key}] corresponding to accessConfig has been deleted failed."
        raise server_error(_DELETE_FAILED, remark)
    return _changed(state, files, request)


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
    return _changed(state, files, request)


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


def _changed(state: BrokerState, files: AccountFiles, request: Command) -> Command:
    if state.gate is not None:
        state.gate.accounts = files.accounts
    logger.info("access file changed by %s", request.ext.get("AccessKey", "a white-listed address"))
    return request.reply(ResponseCode.SUCCESS)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: put_account,
    RequestCode.DELETE_ACL_CONFIG: delete_account,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: version,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: set_white_addresses,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: list_accounts,
}
