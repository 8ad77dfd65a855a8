"""The accounts of 4.x by admin requests (50–54): changes go to the file and count at once."""

import logging

import msgspec

from pocketmq.broker.access.account_file import AccountFile
from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import InvalidInput, ResponseCode, server_error
from pocketmq.net import Connection
from pocketmq.protocol.bodies.access import Account, AccountTable
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.headers.auth_49 import (
    CreateAccessConfigRequest,
    DeleteAccessConfigRequest,
    GetBrokerAclVersionResponse,
)
from pocketmq.protocol.json_values import encode_body

logger = logging.getLogger("pocketmq.broker")

_UPDATE_FAILED, _DELETE_FAILED, _WHITE_FAILED = 209, 210, 211  # 4.x; 5.x uses them for others


def put_account(state: BrokerState, _: Connection, request: Command) -> Command:
    """Add an account, or change what is given of one."""
    file = _file(state, _UPDATE_FAILED)
    header = request.header(CreateAccessConfigRequest)
    account = Account(
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
        file.put(account, state.turn.now_ms)
    except InvalidInput as error:
        raise server_error(_UPDATE_FAILED, str(error)) from error
    return _changed(state, file, request)


def delete_account(state: BrokerState, _: Connection, request: Command) -> Command:
    """Forget an account."""
    file = _file(state, _DELETE_FAILED)
    key = request.header(DeleteAccessConfigRequest).access_key
    if not file.remove(key, state.turn.now_ms):
        remark = f"The accessKey[{key}] corresponding to accessConfig has been deleted failed."
        raise server_error(_DELETE_FAILED, remark)
    return _changed(state, file, request)


def set_white_addresses(state: BrokerState, _: Connection, request: Command) -> Command:
    """Replace the addresses from where nobody is asked.

    There is one file; tools may leave out which they mean, though Java's header says they must not.
    """
    file = _file(state, _WHITE_FAILED)
    listed = _listed(request.ext.get("globalWhiteAddrs"))
    if listed is None:
        raise server_error(_WHITE_FAILED, "The globalWhiteAddresses[null] has been updated failed.")
    try:
        file.set_white(listed, state.turn.now_ms)
    except InvalidInput as error:
        raise server_error(_WHITE_FAILED, str(error)) from error
    return _changed(state, file, request)


def version(state: BrokerState, _: Connection, request: Command) -> Command:
    """Tell how often the access file was changed."""
    file = _file(state, ResponseCode.SYSTEM_ERROR)
    current = encode_body(file.version).decode()
    header = GetBrokerAclVersionResponse(
        version=current,
        all_acl_file_version=msgspec.json.encode({file.path.name: msgspec.Raw(current)}).decode(),
        broker_name=state.config.broker_name,
        broker_addr=state.address,
        cluster_name=state.config.broker_cluster_name,
    )
    return request.reply(ResponseCode.SUCCESS, None, header)


def list_accounts(state: BrokerState, _: Connection, request: Command) -> Command:
    """Give every account, with its secret, as Java does: for admins only."""
    file = _file(state, ResponseCode.SYSTEM_ERROR)
    table = AccountTable(global_white_addrs=file.white, plain_access_configs=file.listed)
    return request.reply(ResponseCode.SUCCESS, body=encode_body(table))


def _file(state: BrokerState, code: int) -> AccountFile:
    if state.account_file is None:
        raise server_error(
            code, "this broker has no access file; aclEnable and aclFile give it one"
        )
    return state.account_file


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _changed(state: BrokerState, file: AccountFile, request: Command) -> Command:
    if state.gate is not None:
        state.gate.accounts = file.accounts
    logger.info(
        "the access file was changed by %s", request.ext.get("AccessKey", "a white address")
    )
    return request.reply(ResponseCode.SUCCESS)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: put_account,
    RequestCode.DELETE_ACL_CONFIG: delete_account,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: version,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: set_white_addresses,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: list_accounts,
}
