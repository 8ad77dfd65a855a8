"""`pocketmq admin`: mqadmin's subcommands by their names and flags, and some of our own.

A command is declared in one place: the function under `admin_command` in one of the modules here.
"""

from functools import cache
from importlib import import_module
from pkgutil import get_data, iter_modules

import click

from pocketmq.cli.commands import HELP, LazyGroup, Listed

SECTIONS = {
    "Cluster and brokers": ("overview", "brokers", "name_servers", "exports"),
    "Topics": ("topics", "static_topics"),
    "Groups and offsets": ("groups", "offsets", "member_status"),
    "Load balancing": ("balance",),
    "Messages": ("messages", "printing", "sending"),
    "Access control": ("users", "rules", "accounts"),
}
"""The modules of the commands in each section of the help."""
ALIASES = {"DecodeMessageId": "decodeMessageId", "QueryMsgTraceById": "queryMsgTraceById"}
"""Java's other names."""


@cache
def listed_commands() -> dict[str, Listed]:
    """Return the module and the first line of help of every command.

    They are read from the sources: importing all modules, for the list or to find one command,
    would take longer than the command itself.
    """
    found = {}
    for module in iter_modules(__path__):
        try:
            text = (get_data(__name__, f"{module.name}.py") or b"").decode()
        except OSError:
            return imported_commands()
        for declaration in text.split("\n@admin_command(")[1:]:
            name = declaration.split('"', 2)[1]  # its first string
            line = declaration.split('"""', 2)[1].partition("\n")[0]
            found[name] = Listed(f"{__name__}.{module.name}", line)
    return found


def imported_commands() -> dict[str, Listed]:
    """Return the same from the modules themselves, for installations without sources."""
    from pocketmq.cli.admin.frame import COMMANDS

    for module in iter_modules(__path__, f"{__name__}."):
        import_module(module.name)
    return {
        name: Listed(declared.module, (declared.command.help or "").partition("\n")[0])
        for name, declared in COMMANDS.items()
    }


class AdminCommands(LazyGroup):
    """The group of admin commands."""

    def load(self, module: str, name: str) -> click.Command:
        """Import the module that declares a command, and return the command."""
        from pocketmq.cli.admin.frame import COMMANDS

        import_module(module)
        return COMMANDS[name].command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, section by section."""
        known = listed_commands()
        names = self.list_commands(ctx)
        for title, modules in SECTIONS.items():
            wanted = {f"{__name__}.{module}" for module in modules}
            with formatter.section(title):
                formatter.write_dl(
                    [(name, known[name].help) for name in names if known[name].module in wanted]
                )


@click.command(
    "admin",
    cls=AdminCommands,
    listed=listed_commands,
    aliases=ALIASES,
    context_settings=HELP,
    epilog="Exit codes: 0 done, 1 failed (explain: problems found), 2 wrong input, 3 not found,"
    " 4 no response, 5 not allowed, 6 partly done. Shell completion: docs/reference/admin.md.",
)
def command() -> None:
    """Operate a cluster, PocketMQ's or Apache's, with mqadmin's subcommands."""
