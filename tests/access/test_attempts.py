"""Everything somebody may try against access control and TLS, and the answer each attempt gets."""

from pathlib import Path

from tests.access.attempts import (
    ACCESS_FILE,
    ACCOUNT_ATTEMPTS,
    ACCOUNTS,
    USER_ATTEMPTS,
    USER_SETUP,
    USERS,
    Answer,
    Attempt,
    carried_out,
    create_topic,
    sign,
)
from tests.broker.running import client, running

ROOT = '{"username":"root","password":"root-secret"}'


def expected(attempts: list[Attempt]) -> dict[str, Answer]:
    assert len({attempt.name for attempt in attempts}) == len(attempts)
    return {attempt.name: attempt.answer for attempt in attempts}


async def test_every_attempt_on_users_and_rules_gets_javas_answer() -> None:
    async with (
        running(
            authentication_enabled=True, authorization_enabled=True, init_authentication_user=ROOT
        ) as (_, address),
        client(address) as connected,
    ):
        for code, fields, body in USER_SETUP:
            answer = await connected.ask(code, sign(fields, body, "root", USERS["root"]), body)
            assert answer.code == 0, answer.remark
        assert await carried_out(connected, USER_ATTEMPTS, USERS) == expected(USER_ATTEMPTS)


async def test_every_attempt_on_accounts_gets_javas_answer(tmp_path: Path) -> None:
    file = tmp_path / "plain_acl.yml"
    file.write_text(ACCESS_FILE)
    async with (
        running(acl_enable=True, acl_file=str(file)) as (_, address),
        client(address) as connected,
    ):
        for topic in ("orders", "inbox", "outbox", "other"):
            code, fields, body = create_topic(topic)
            answer = await connected.ask(code, sign(fields, body, "rootkey1", "rootsecret"), body)
            assert answer.code == 0, answer.remark
        found = await carried_out(connected, ACCOUNT_ATTEMPTS, ACCOUNTS)
        assert found == expected(ACCOUNT_ATTEMPTS)
