"""`pocketmq store check` knows everything that a broker keeps: no kind of document is left out."""

import ast
from pathlib import Path

import pytest

import pocketmq.broker
from pocketmq.broker.upkeep.stored_formats import FORMATS, check_broker_store
from tests.broker.pop.counter import create, got, pop_fields
from tests.broker.running import client, position, running, send_fields

SOURCES = Path(pocketmq.broker.__file__).parent


def kinds_in(source: str) -> set[str]:
    """Return the names that a module gives to its documents: `KIND` or a class's `kind`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            if names & {"KIND", "kind"} and isinstance(node.value.value, str):
                found.add(node.value.value)
    return found


NOT_DOCUMENTS = {"NORMAL"}
"""A kind of message, in the metrics."""


def test_every_kind_of_document_has_a_form() -> None:
    kinds = set().union(*(kinds_in(file.read_text()) for file in SOURCES.rglob("*.py")))
    assert kinds - NOT_DOCUMENTS == set(FORMATS.documents)


def test_only_named_kinds_are_saved() -> None:
    """A name in place of a string: otherwise the test above would not see a new kind."""
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            func = node.func if isinstance(node, ast.Call) else None
            if isinstance(func, ast.Attribute) and func.attr == "save_documents":
                assert isinstance(node, ast.Call)
                assert not isinstance(node.args[0], ast.Constant), file


@pytest.mark.parametrize("kind", sorted(FORMATS.documents))
def test_nonsense_of_every_kind_is_refused(kind: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever its reader raises
        FORMATS.documents[kind]("x", b"\xff nonsense")


async def test_a_broker_that_used_everything_leaves_a_sound_store(tmp_path: Path) -> None:
    """Documents of nearly every kind are in the store, and each is read as its kind is."""
    async with running(tmp_path) as (broker, address), client(address) as peer:
        await create(peer, "T")
        waits = ("", "TRAN_MSG\1true\2PGROUP\1P\2", "DELAY\x011\2", "TIMER_DELAY_SEC\x011000\2")
        for properties in waits:
            fields = send_fields("T", "UNIQ_KEY\1K\2TAGS\1a\2" + properties)
            if "TRAN_MSG" in properties:
                fields["f"] = "4"
            answer = await peer.ask(310, fields, b"x")
            assert answer.code == 0, answer.remark
            if "TRAN_MSG" in properties:
                ending = {
                    "producerGroup": "P",
                    "commitOrRollback": "8",
                    "tranStateTableOffset": "0",
                }
                place = str(position(answer))
                answer = await peer.ask(37, ending | {"commitLogOffset": place, "msgId": "K"})
                assert answer.code == 0, answer.remark
        assert got(await peer.ask(200050, pop_fields("T")), "T")
        group = '{"groupName": "G2", "consumeEnable": true}'
        assert (await peer.ask(200, {}, group.encode())).code == 0
        assert (await peer.ask(25, {}, b"fileReservedTime=48")).code == 0
        mode = '{"topic": "T", "consumerGroup": "G2", "mode": "POP", "popShareQueueNum": 1}'
        assert (await peer.ask(401, {}, mode.encode())).code == 0
        mapping = f'{{"topic": "S", "bname": "{broker.config.broker_name}", "totalQueues": 1}}'
        static = {"topic": "S", "readQueueNums": "0", "writeQueueNums": "0", "perm": "6"}
        static |= {"topicFilterType": "SINGLE_TAG"}
        assert (await peer.ask(513, static, mapping.encode())).code == 0
        broker.state.groups.forbidden.set("G2", "T", 1)
        broker.state.delay_progress.reached(1, 1)
    report = check_broker_store(tmp_path)
    assert report.sound, report.findings
    for kind in set(FORMATS.documents) - {"user", "acl"}:
        assert f" {kind}" in report.figures["metadata"], report.figures
