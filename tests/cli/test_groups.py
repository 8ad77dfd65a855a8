"""What all commands have in common: those of commands show help, numbers are numbers."""

from collections.abc import Iterator

import click
import pytest

from pocketmq.cli import pocketmq, run
from pocketmq.cli.commands import FiniteRange

pytest.importorskip("numpy")
pytest.importorskip("pyspark")

GROUPS = ["admin", "migrate", "pipeline", "store"]
TO = ["-n", "127.0.0.1:1", "--to", "127.0.0.1:2"]


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield " ".join([*path, name]), found
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))


def test_the_commands_that_have_commands_are_those_of_these_tests() -> None:
    assert [name for name, each in commands(pocketmq) if isinstance(each, click.Group)] == GROUPS


@pytest.mark.parametrize("group", GROUPS)
def test_without_a_subcommand_help_is_shown(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([group]) == 0
    alone = capsys.readouterr()
    assert run([group, "--help"]) == 0
    assert alone == capsys.readouterr()
    assert alone.out.startswith(f"Usage: pocketmq {group} ")
    assert alone.err == ""


@pytest.mark.parametrize("value", ["nan", "inf", "Infinity", "1e999"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["migrate", "copy", *TO, "--quiet"],
        ["migrate", "copy", *TO, "--patience"],
        ["pipeline", "ingest", "--to", "x", "--every"],
        ["pipeline", "health", "--watch"],
        ["admin", "clusterList", "--watch"],
        ["demo", "--pace"],
        ["consume", "-t", "orders", "--timeout"],
    ],
    ids=" ".join,
)
def test_what_is_no_number_to_count_with_is_refused(
    arguments: list[str], value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, value]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"pocketmq: Invalid value for '{arguments[-1]}': ")
    assert said.err.count("\n") == 1


def test_every_option_that_takes_a_float_is_of_the_finite_kind() -> None:
    floats = [
        (name, option.opts[0], type(option.type))
        for name, command in commands(pocketmq)
        for option in command.params
        if isinstance(option.type, click.FloatRange | click.types.FloatParamType)
    ]
    assert len(floats) > 10
    assert [found for found in floats if found[2] is not FiniteRange] == []
