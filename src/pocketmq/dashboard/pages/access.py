"""Users and rules of brokers with access control."""

from typing import Any

from fastapi import Request
from nicegui import ui

from pocketmq.dashboard import parts
from pocketmq.dashboard.access_view import AccessView, RuleRow, UserRow
from pocketmq.dashboard.actions.access import DECISIONS, USER_STATES, USER_TYPES, RuleChange
from pocketmq.dashboard.desk import Desk, Desks
from pocketmq.dashboard.frame import LivePage, frame, heading, prepare
from pocketmq.dashboard.table import Cell, Column, LiveTable
from pocketmq.errors import InvalidInput
from pocketmq.protocol.requests.access import User

_EVERYWHERE = "It takes effect on every broker immediately."


def add_pages(desks: Desks) -> None:
    """Add the page."""

    @ui.page("/access")
    async def access(request: Request) -> None:
        desk = desks.of(request)
        poller = desk.views.access()
        await prepare(poller)
        with frame(desk, request, "Access", here="/access"):
            _Access(desk, request)


class _Access:
    """The open page."""

    def __init__(self, desk: Desk, request: Request) -> None:
        self._desk = desk
        self._act = desk.actions.access
        self._who = parts.visitor(request)
        self._view = AccessView([], [], ())
        self._live = LivePage()
        parts.note("Users and rules of brokers with access control (5.x). Passwords are not shown.")
        heading("Users")
        with ui.element("div").classes("pm-buttons"):
            parts.action_button(desk, "Create user", self._create_user)
            parts.action_button(desk, "Change user", self._change_user)
            parts.action_button(desk, "Delete user", self._delete_user)
        self._users = LiveTable[UserRow](
            "Users", _USER_COLUMNS, key=lambda row: f"{row.name} {row.kind} {row.status}",
            search=lambda row: row.name, sorted_by=0, empty="There are no users.",
        )  # fmt: skip
        heading("Rules")
        with ui.element("div").classes("pm-buttons"):
            parts.action_button(desk, "Add or change rule", self._put_rule)
            parts.action_button(desk, "Delete rule", self._delete_rule)
        self._rules = LiveTable[RuleRow](
            "Rules", _RULE_COLUMNS, key=lambda row: row.key,
            search=lambda row: f"{row.subject} {row.resource}", sorted_by=0,
            empty="There are no rules.",
        )  # fmt: skip
        self._live.show(desk.views.access(), self._show)

    def _show(self, view: AccessView) -> None:
        self._view = view
        self._live.missing(self._desk.views.access(), view.missing)
        self._users.show(view.users)
        self._rules.show(view.rules)

    async def _create_user(self) -> None:
        fields = {
            "name": parts.FormField("User name"),
            "password": parts.FormField("Password", secret=True),
            "kind": parts.FormField("Type", USER_TYPES[0], USER_TYPES),
        }

        def checked(given: dict[str, Any]) -> User:
            name = given["name"].strip()
            if not name or not given["password"]:
                raise InvalidInput("a user needs a name and a password")
            if name in {row.name for row in self._view.users}:
                raise InvalidInput(f"user {name!r} exists already")
            return User(username=name, password=given["password"], user_type=given["kind"])

        user = await parts.fill_in("Create user", fields, checked)
        if user is None:
            return
        lines = [f"User {user.username} ({user.user_type}) can log in.", _EVERYWHERE]
        if user.user_type == USER_TYPES[1]:
            lines.append("A super user may do everything.")
        if await parts.confirm(f"Create user {user.username}?", lines, "Create"):
            await parts.perform(self._act.create_user(self._who, user), _done)

    async def _change_user(self) -> None:
        names = tuple(sorted({row.name for row in self._view.users}))
        if not names:
            ui.notify("There are no users.", type="warning")
            return
        fields = {
            "name": parts.FormField("User name", names[0], names),
            "password": parts.FormField("New password; empty keeps the old one", secret=True),
            "kind": parts.FormField("Type", USER_TYPES[0], USER_TYPES),
            "status": parts.FormField("Status", USER_STATES[0], USER_STATES),
        }
        user = await parts.fill_in(
            "Change user",
            fields,
            lambda given: User(
                username=given["name"],
                password=given["password"],
                user_type=given["kind"],
                user_status=given["status"],
            ),
        )
        if user is None:
            return
        lines = [f"{user.username} becomes {user.user_type}, {user.user_status}d.", _EVERYWHERE]
        if await parts.confirm(f"Change user {user.username}?", lines, "Change"):
            await parts.perform(self._act.change_user(self._who, user), _done)

    async def _delete_user(self) -> None:
        names = tuple(sorted({row.name for row in self._view.users}))
        if not names:
            ui.notify("There are no users.", type="warning")
            return
        fields = {"name": parts.FormField("User name", names[0], names)}
        name = await parts.fill_in("Delete user", fields, lambda given: str(given["name"]))
        if name is None:
            return
        lines = [f"Clients that log in as {name} are refused.", _EVERYWHERE]
        if await parts.confirm(f"Delete user {name}?", lines, "Delete", name):
            await parts.perform(self._act.delete_user(self._who, name), _done)

    async def _put_rule(self) -> None:
        fields = {
            "subject": parts.FormField("Subject", "User:"),
            "resources": parts.FormField("Resources, such as Topic:orders,Group:*"),
            "actions": parts.FormField("Actions, such as Pub,Sub"),
            "decision": parts.FormField("Decision", DECISIONS[0], DECISIONS),
            "sources": parts.FormField("Only from these addresses, such as 10.0.0.0/8"),
        }

        def checked(given: dict[str, Any]) -> RuleChange:
            subject, decision = given["subject"].strip(), given["decision"]
            resources, actions = _words(given["resources"]), _words(given["actions"])
            return RuleChange(subject, resources, actions, decision, _words(given["sources"]))

        rule = await parts.fill_in("Add or change rule", fields, checked)
        if rule is None:
            return
        lines = [f"{rule}.", "A rule for the same resource is replaced.", _EVERYWHERE]
        if await parts.confirm(f"Put rule of {rule.subject}?", lines, "Put"):
            await parts.perform(self._act.put_rule(self._who, rule), _done)

    async def _delete_rule(self) -> None:
        known = {f"{row.subject} on {row.resource}": row for row in self._view.rules}
        if not known:
            ui.notify("There are no rules.", type="warning")
            return
        fields = {"rule": parts.FormField("Rule", next(iter(known)), tuple(known))}
        row = await parts.fill_in("Delete rule", fields, lambda given: known[given["rule"]])
        if row is None:
            return
        lines = [f"{row.decision} {row.subject} on {row.resource} no longer holds.", _EVERYWHERE]
        if await parts.confirm(f"Delete rule of {row.subject}?", lines, "Delete"):
            await parts.perform(self._act.delete_rule(self._who, row.subject, row.resource), _done)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _done(brokers: int) -> str:
    return f"Done on {brokers} brokers."


_USER_COLUMNS = [
    Column[UserRow]("User", lambda row: Cell(row.name), lambda row: row.name),
    Column[UserRow]("Type", lambda row: Cell(row.kind), lambda row: row.kind),
    Column[UserRow](
        "Status",
        lambda row: Cell(row.status, tone="warn" if row.status == "disable" else None),
        lambda row: row.status,
    ),
    Column[UserRow]("Brokers", lambda row: Cell(", ".join(row.brokers))),
]
_RULE_COLUMNS = [
    Column[RuleRow]("Subject", lambda row: Cell(row.subject), lambda row: row.subject),
    Column[RuleRow]("Resource", lambda row: Cell(row.resource), lambda row: row.resource),
    Column[RuleRow]("Actions", lambda row: Cell(", ".join(row.actions))),
    Column[RuleRow]("From", lambda row: Cell(", ".join(row.sources) or "anywhere")),
    Column[RuleRow](
        "Decision",
        lambda row: Cell(row.decision, tone="bad" if row.decision == "Deny" else "good"),
        lambda row: row.decision,
    ),
    Column[RuleRow]("Brokers", lambda row: Cell(", ".join(row.brokers))),
]
