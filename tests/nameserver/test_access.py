"""A name server with access control, over real sockets: strangers read routes and change nothing."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pocketmq.errors import InvalidInput
from pocketmq.nameserver import NameServer, NameServerConfig
from pocketmq.nameserver.access_control import RIGHTS, NeededRight
from pocketmq.nameserver.server import HANDLERS
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.signature import SigningUser, sign
from tests.nameserver.wire import Peer, broker_fields, running, topics

ROOT, SECRET = "root", "a long secret"
GUARDED = NameServerConfig(
    authentication_enabled=True,
    init_authentication_user=json.dumps({"username": ROOT, "password": SECRET}),
)
Request = tuple[int, dict[str, str], bytes]
ROUTE: Request = (105, {"topic": "t"}, b"")

CHANGES: dict[str, Request] = {
    "wipe write permission": (205, {"brokerName": "b"}, b""),
    "add write permission": (327, {"brokerName": "b"}, b""),
    "delete a topic": (216, {"topic": "t"}, b""),
    "make a topic": (217, {"topic": "new"}, b'{"queueDatas":[],"brokerDatas":[]}'),
    "unregister a broker": (104, broker_fields("b", 0, "b:1"), b""),
    "register a known broker elsewhere": (
        103,
        broker_fields("b", 0, "6.6.6.6:1"),
        topics("t", "u"),
    ),
    "register a new broker": (103, broker_fields("evil", 0, "6.6.6.6:1"), topics("t", "u")),
    "keep a broker alive": (904, broker_fields("b", 0, "b:1"), b""),
    "ask for a broker's version": (322, broker_fields("b", 0, "b:1"), b""),
    "set a value": (100, {"namespace": "n", "key": "k", "value": "v"}, b""),
    "delete a value": (102, {"namespace": "n", "key": "k"}, b""),
    "read a value": (101, {"namespace": "n", "key": "k"}, b""),
    "list values": (219, {"namespace": "n"}, b""),
    "change settings": (318, {}, b"orderMessageEnable=true\n"),
    "read settings": (319, {}, b""),
}


def signed(request: Request, user: str = ROOT, secret: str = SECRET) -> Request:
    code, fields, body = request
    fields = dict(fields)
    sign(SigningUser(user, secret.encode()), code, fields, body)
    return code, fields, body


@asynccontextmanager
async def guarded(
    config: NameServerConfig = GUARDED,
) -> AsyncIterator[tuple[NameServer, Peer, Peer]]:
    """Run a name server with one broker `b`; a stranger is connected, too."""
    async with running(config) as server:
        broker, stranger = await Peer.to(server), await Peer.to(server, "127.0.0.2")
        registration = (103, broker_fields("b", 0, "b:1"), topics("t", "u"))
        assert (await broker.ask(*signed(registration))).code == 0
        yield server, broker, stranger
        await broker.close()
        await stranger.close()


@pytest.mark.parametrize("name", CHANGES)
async def test_who_does_not_sign_changes_nothing(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    code, fields, body = CHANGES[name]
    async with guarded() as (_, _, stranger):
        before = (await stranger.ask(*ROUTE)).body
        answer = await stranger.ask(code, fields, body)
        assert answer.code == 16
        assert str(answer.remark).startswith(
            f"{RequestCode(code).name} needs the signature of a super user of this name server"
        )
        assert str(answer.remark).endswith("; the request is not signed")
        assert (await stranger.ask(*ROUTE)).body == before
        assert f"{RequestCode(code).name} ({code}) was refused with code 16" in caplog.text
        assert SECRET not in caplog.text


def forged(request: Request) -> dict[str, Request]:
    """Return a request with signatures that must not count."""
    code, fields, body = request
    good = signed(request)[1]
    return {
        "another's secret": signed(request, ROOT, "guessed"),
        "no secret": signed(request, ROOT, ""),
        "an unknown user": signed(request, "mallory", SECRET),
        "an altered body": (code, good, body + b" "),
        "an added field": (code, good | {"extra": "x"}, body),
        "a request of another code": (code, signed((106, fields, body))[1], body),
    }


@pytest.mark.parametrize("name", CHANGES)
async def test_a_bad_signature_changes_nothing(name: str) -> None:
    async with guarded() as (_, _, stranger):
        before = (await stranger.ask(*ROUTE)).body
        for attack, request in forged(CHANGES[name]).items():
            answer = await stranger.ask(*request)
            assert answer.code == 16, attack
            assert "is unknown, or the signature is wrong" in str(answer.remark)
        assert (await stranger.ask(*ROUTE)).body == before


@pytest.mark.parametrize("name", [each for each in CHANGES if "known broker elsewhere" not in each])
async def test_a_super_user_is_let_in_everywhere(name: str) -> None:
    async with guarded() as (_, _, stranger):
        assert (await stranger.ask(*signed(CHANGES["set a value"]))).code == 0
        assert (await stranger.ask(*signed(CHANGES[name]))).code == 0


async def test_a_live_brokers_name_is_not_taken_over_by_a_super_user_either() -> None:
    """A captured registration that is sent again from elsewhere is one, too."""
    async with guarded() as (_, _, stranger):
        answer = await stranger.ask(*signed(CHANGES["register a known broker elsewhere"]))
        assert answer.code == 16
        assert "is registered by b:1, which is alive" in str(answer.remark)
        again = (103, broker_fields("b", 0, "b:1"), topics("t", "u"))
        assert (await stranger.ask(*signed(again))).code == 16


async def test_each_served_code_is_open_to_strangers_only_if_it_reads_routes() -> None:
    assert HANDLERS.keys() == RIGHTS.keys()  # each has a stated right
    async with guarded() as (_, _, stranger):
        for code, right in RIGHTS.items():
            answer = await stranger.ask(code)
            assert (answer.code == 16) == (right is not NeededRight.READ), RequestCode(code)
            if right is NeededRight.READ:  # clients sign with users that only brokers know
                of_brokers = await stranger.ask(*signed((code, {}, b""), "alice", "x"))
                assert of_brokers.code != 16


async def test_a_code_without_a_stated_right_is_for_super_users_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def handler(state: object, connection: object, request: Command) -> Command:
        return request.reply(0)

    monkeypatch.setitem(HANDLERS, 999, handler)
    async with guarded() as (_, _, stranger):
        assert (await stranger.ask(999)).code == 16
        assert (await stranger.ask(*signed((999, {}, b"")))).code == 0


async def test_the_order_of_topics_is_no_secret() -> None:
    async with guarded() as (_, _, stranger):
        put = (100, {"namespace": "ORDER_TOPIC_CONFIG", "key": "t", "value": "b:4"}, b"")
        assert (await stranger.ask(*signed(put))).code == 0
        assert (await stranger.ask(219, {"namespace": "ORDER_TOPIC_CONFIG"})).code == 0
        assert (await stranger.ask(100, put[1])).code == 16


async def test_a_field_that_is_there_twice_is_checked_as_it_is_used() -> None:
    async with guarded() as (_, _, stranger):
        stranger.opaque += 1
        text = (
            f'{{"code":219,"flag":0,"language":"JAVA","opaque":{stranger.opaque},"version":513,'
            '"extFields":{"namespace":"ORDER_TOPIC_CONFIG","namespace":"secrets"}}'
        ).encode()
        size = 4 + len(text)
        stranger.writer.write(size.to_bytes(4, "big") + len(text).to_bytes(4, "big") + text)
        answer = await stranger.receive()
        assert answer.code in {16, 22}
        if answer.code == 22:
            assert "secrets" not in str(answer.remark)


class TestTrustedAddresses:
    CONFIG = NameServerConfig(
        authentication_enabled=True,
        init_authentication_user=GUARDED.init_authentication_user,
        trusted_broker_addresses="10.0.0.1, 127.0.0.16/28",
    )

    async def test_brokers_there_register_without_a_signature_and_may_do_nothing_else(self) -> None:
        async with guarded(self.CONFIG) as (server, _, stranger):
            java = await Peer.to(server, "127.0.0.17")
            assert (await java.register("java", 0, "j:1", "t", "v")).code == 0
            assert (await java.ask(904, broker_fields("java", 0, "j:1"))).code == 0
            assert (await java.ask(322, broker_fields("java", 0, "j:1"))).code == 0
            assert (await java.ask(105, {"topic": "v"})).code == 0
            for name in ("wipe write permission", "delete a topic", "change settings"):
                assert (await java.ask(*CHANGES[name])).code == 16
            refused = await java.ask(*CHANGES["register a known broker elsewhere"])
            assert "which is alive" in str(refused.remark)
            assert (await java.ask(*CHANGES["unregister a broker"])).code == 16
            assert (await java.ask(104, broker_fields("java", 0, "j:1"))).code == 0
            assert (await stranger.register("java", 0, "j:1", "t", "v")).code == 16
            await java.close()

    async def test_a_signature_that_nobody_here_knows_does_no_harm_there(self) -> None:
        async with guarded(self.CONFIG) as (server, _, _):
            java = await Peer.to(server, "127.0.0.17")
            registration = (103, broker_fields("java", 0, "j:1"), topics("t", "v"))
            assert (await java.ask(*signed(registration, "its-own-user", "x"))).code == 0
            await java.close()

    def test_what_is_no_address_is_refused_at_the_start(self) -> None:
        with pytest.raises(InvalidInput, match="not a list of addresses"):
            NameServerConfig(trusted_broker_addresses="nowhere")


class TestUsersFile:
    def write(self, path: Path, *users: dict[str, str]) -> None:
        """Replace the file, as careful editors do."""
        beside = path.with_suffix(".new")
        beside.touch(mode=0o600)
        beside.write_text(json.dumps(users))
        beside.replace(path)

    def config(self, path: Path, *, reads: bool = False) -> NameServerConfig:
        return NameServerConfig(
            authentication_enabled=True,
            init_authentication_user=GUARDED.init_authentication_user,
            read_authentication_enabled=reads,
            authentication_users_file=str(path),
        )

    async def test_users_come_and_go_with_it(self, tmp_path: Path) -> None:
        path = tmp_path / "users.json"
        admin = {"username": "ann", "password": "one", "userType": "Super"}
        self.write(path, admin)
        wipe = CHANGES["wipe write permission"]
        async with guarded(self.config(path)) as (_, _, stranger):
            assert (await stranger.ask(*signed(wipe, "ann", "one"))).code == 0
            self.write(path, admin | {"password": "another"})
            assert (await stranger.ask(*signed(wipe, "ann", "one"))).code == 16
            assert (await stranger.ask(*signed(wipe, "ann", "another"))).code == 0
            self.write(path, admin | {"userStatus": "disable"})
            assert (await stranger.ask(*signed(wipe, "ann", "one"))).code == 16
            assert (await stranger.ask(*signed(wipe))).code == 0
            root = {"username": ROOT, "password": SECRET, "userStatus": "disable"}
            self.write(path, root)  # the file counts before the settings
            assert (await stranger.ask(*signed(wipe))).code == 16

    async def test_a_broken_file_changes_nothing_and_is_told_without_its_content(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = tmp_path / "users.json"
        self.write(path, {"username": "ann", "password": "hunter2", "userType": "Super"})
        wipe = CHANGES["wipe write permission"]
        async with guarded(self.config(path)) as (_, _, stranger):
            path.write_text('[{"username":"ann","password":"hunter2"')
            assert (await stranger.ask(*signed(wipe, "ann", "hunter2"))).code == 0
            assert "is not a JSON array of objects; keeping the users read before" in caplog.text
            assert "hunter2" not in caplog.text

    async def test_normal_users_read_where_reading_needs_a_signature(self, tmp_path: Path) -> None:
        path = tmp_path / "users.json"
        self.write(path, {"username": "bob", "password": "two"})
        async with guarded(self.config(path, reads=True)) as (_, _, stranger):
            refused = await stranger.ask(*ROUTE)
            assert (refused.code, refused.remark) == (
                16,
                (
                    "GET_ROUTEINFO_BY_TOPIC needs the signature of a user of this name server; "
                    "the request is not signed"
                ),
            )
            assert (await stranger.ask(*signed(ROUTE, "bob", "two"))).code == 0
            assert (await stranger.ask(*signed(ROUTE))).code == 0
            denied = await stranger.ask(*signed(CHANGES["delete a topic"], "bob", "two"))
            assert denied.code == 16
            assert "user 'bob' is a normal user" in str(denied.remark)

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            ("{}", "is not a JSON array of objects"),
            ('[{"username":"a"}]', "needs a username and a password"),
            (
                '[{"username":"a","password":"x","userType":"King"}]',
                "needs userType Super or Normal",
            ),
            (
                '[{"username":"a","password":"x","usertype":"Super"}]',
                "has an unknown field; allowed: ",
            ),
            ('[{"username":"a","password":"x"},{"username":"a","password":"y"}]', "is a duplicate"),
        ],
    )
    async def test_a_file_that_is_wrong_at_the_start_is_refused(
        self, tmp_path: Path, content: str, told: str
    ) -> None:
        path = tmp_path / "users.json"
        path.write_text(content)
        with pytest.raises(InvalidInput, match=told):
            await NameServer(self.config(path)).start("127.0.0.1", 0)

    async def test_a_file_that_others_can_read_is_warned_about(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = tmp_path / "users.json"
        self.write(path)
        path.chmod(0o644)
        async with running(self.config(path)):
            assert "can be read by other users of this machine" in caplog.text


def test_access_control_that_lets_nobody_register_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no broker could register"):
        NameServer(NameServerConfig(authentication_enabled=True))
    with pytest.raises(InvalidInput, match="needs authenticationEnabled=true"):
        NameServerConfig(read_authentication_enabled=True)


async def test_access_control_is_neither_shown_nor_changed_over_the_wire() -> None:
    async with guarded() as (_, _, stranger):
        shown = await stranger.ask(*signed(CHANGES["read settings"]))
        assert SECRET.encode() not in shown.body
        assert b"initAuthenticationUser=***" in shown.body
        for key in ("authenticationEnabled", "trustedBrokerAddresses", "authenticationUsersFile"):
            change: Request = (318, {}, f"{key}=\n".encode())
            assert (await stranger.ask(*signed(change))).code == 16
        assert SECRET not in repr(GUARDED)
