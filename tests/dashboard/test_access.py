"""Users, rules, settings of a guarded cluster, and what members report; no secret is shown."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pocketmq import aio
from pocketmq.dashboard.access_view import AccessView, RuleRow, UserRow
from pocketmq.dashboard.actions.access import RuleChange
from pocketmq.dashboard.desk import Actions
from pocketmq.dashboard.pages.broker import is_secret, known_setting, shown
from pocketmq.dashboard.views import Views
from pocketmq.embedded.aio import Cluster
from pocketmq.errors import InvalidInput
from pocketmq.protocol.requests.access import User

GUARDED: dict[str, str | bool] = {
    "authenticationEnabled": True,
    "authorizationEnabled": True,
    "initAuthenticationUser": '{"username":"root","password":"root-secret"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"root","secretKey":"root-secret"}',
}
ROOT = aio.Credentials(access_key="root", secret_key="root-secret")
BOTH = ("broker-0", "broker-1")


@asynccontextmanager
async def guarded() -> AsyncIterator[tuple[Actions, Views, Cluster]]:
    async with (
        Cluster(brokers=2, config=GUARDED) as cluster,
        aio.Admin(cluster.address, credentials=ROOT) as admin,
    ):
        views = Views(admin)
        yield Actions(admin, views, allowed=True), views, cluster
        await views.close()


async def seen(views: Views) -> AccessView:
    await views.access().sample()
    assert views.access().problem is None
    view = views.access().value
    assert view is not None
    return view


async def test_users_and_rules_are_made_changed_and_deleted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "pocketmq.dashboard.actions")
    async with guarded() as (actions, views, cluster):
        act = actions.access
        alice = User(username="alice", password="her secret", user_type="Normal")
        assert await act.create_user("me", alice) == 2
        view = await seen(views)
        assert UserRow("alice", "Normal", "enable", BOTH) in view.users
        changed = User(
            username="alice", password="new secret", user_type="Super", user_status="disable"
        )
        assert await act.change_user("me", changed) == 2
        assert UserRow("alice", "Super", "disable", BOTH) in (await seen(views)).users
        enabled = User(username="alice", password="", user_type="Super", user_status="enable")
        assert await act.change_user("me", enabled) == 2
        alice_now = aio.Credentials(access_key="alice", secret_key="new secret")
        async with aio.Admin(cluster.address, credentials=alice_now) as her:
            assert len((await her.access.users()).all()) == 2, "the password has stayed"
        rule = RuleChange("User:alice", ["Topic:orders"], ["Pub"], "Allow", [])
        assert await act.put_rule("me", rule) == 2
        rule = RuleChange("User:alice", ["Topic:other"], ["Sub"], "Allow", [])
        assert await act.put_rule("me", rule) == 2
        assert await act.delete_rule("me", "User:alice", "Topic:other") == 2
        rule = RuleChange("User:alice", ["Topic:orders"], ["Pub", "Sub"], "Deny", ["10.0.0.1"])
        assert await act.put_rule("me", rule) == 2
        assert (await seen(views)).rules == [
            RuleRow("User:alice", "Topic:orders", ("Pub", "Sub"), ("10.0.0.1",), "Deny", BOTH)
        ]
        assert await act.delete_rule("me", "User:alice", "Topic:orders") == 2
        assert await act.delete_user("me", "alice") == 2
        view = await seen(views)
        assert view.rules == []
        assert "alice" not in {row.name for row in view.users}
        for user in (User(username="", password="x"), User(username="bob", password="")):
            with pytest.raises(InvalidInput, match="a name and a password"):
                await act.create_user("me", user)
    assert "user=me action=\"change user 'alice' (Super, disable, new password)\"" in caplog.text
    assert "secret" not in caplog.text


async def test_a_broker_shows_its_settings_but_no_secret_and_no_other_address_is_asked() -> None:
    async with guarded() as (_, views, _):
        await views.cluster().sample()
        brokers = views.cluster().value or ()
        poller = views.broker(brokers[0].place.address)
        await poller.sample()
        assert poller.value is not None
        assert poller.value.settings["brokerName"] == poller.value.broker == "broker-0"
        pairs = {**poller.value.settings, **poller.value.figures}
        assert "root-secret" not in str([shown(name, value) for name, value in pairs.items()])
        assert poller.value.figures["brokerVersionDesc"]
        stranger = views.broker("192.0.2.1:80")
        await stranger.sample()
        assert "'192.0.2.1:80'" in (stranger.problem or "")


@pytest.mark.parametrize(
    "name",
    ["initAuthenticationUser", "nameServerCredentials", "tlsKeyPassword", "secretKey", "accessKey"],
)
def test_settings_that_hold_secrets_are_hidden(name: str) -> None:
    assert is_secret(name)
    assert shown(name, "geheim") == "***"
    assert shown("brokerName", "broker-0") == "broker-0"


def test_a_setting_is_changed_by_its_name_unless_it_holds_a_secret() -> None:
    settings = ["brokerName", "secretKey"]
    assert known_setting("brokerName", settings) == "brokerName"
    with pytest.raises(InvalidInput, match=r"no setting 'brokername' .*did you mean brokerName\?"):
        known_setting("brokername", settings)
    for name in ("secretKey", ""):
        with pytest.raises(InvalidInput, match=f"no setting '{name}' to change$"):
            known_setting(name, settings)


@pytest.mark.parametrize(
    ("subject", "resources", "decision"),
    [("alice", ["Topic:*"], "Allow"), ("User:", ["Topic:*"], "Allow"),
     ("User:alice", [], "Allow"), ("User:alice", ["Topic:*"], "Perhaps")],
)  # fmt: skip
def test_what_is_no_rule_is_refused(subject: str, resources: list[str], decision: str) -> None:
    with pytest.raises(InvalidInput):
        RuleChange(subject, resources, ["Pub"], decision, [])


async def _ignore(_: object) -> None:
    pass


async def test_a_member_reports_itself() -> None:
    async with Cluster() as cluster, aio.Admin(cluster.address) as admin:
        await cluster.create_topic("orders", queues=2)
        consumer = aio.PushConsumer(cluster.address, group="billing", instance_name="one")
        consumer.subscribe("orders", "paid", _ignore)
        async with consumer:
            views = Views(admin)
            await views.groups().sample()
            (glance,) = [each for each in views.groups().value.groups if each.group == "billing"]  # type: ignore[union-attr]
            ((member),) = glance.members or ()
            poller = views.member("billing", member.client_id or "")
            await poller.sample()
            assert poller.value is not None
            told = {each.topic: each.sub_string for each in poller.value.subscription_set}
            assert told["orders"] == "paid"
            nobody = views.member("billing", "nobody")
            await nobody.sample()
            assert nobody.problem is not None
            await views.close()
