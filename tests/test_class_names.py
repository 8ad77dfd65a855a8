"""A class's name says which one it is: no two modules define the same."""

import ast
from collections import Counter
from pathlib import Path

import pocketmq

BLOCKING_AND_ASYNCIO = {
    "Admin",
    "Cluster",
    "PopConsumer",
    "Producer",
    "PullConsumer",
    "PushConsumer",
}
"""Users change from one to the other by the import alone."""


def test_no_two_classes_have_the_same_name() -> None:
    times = Counter[str]()
    for path in Path(pocketmq.__file__).parent.rglob("*.py"):
        defined = ast.walk(ast.parse(path.read_text()))
        times.update({node.name for node in defined if isinstance(node, ast.ClassDef)})
    twice = {name: count for name, count in times.items() if count > 1}
    assert twice == dict.fromkeys(BLOCKING_AND_ASYNCIO, 2)
