"""What a Java 5.5.0 name server answered, step by step, is what ours answers."""

from typing import Any

import pytest

from pocketmq.nameserver.config import NameServerConfig
from pocketmq.nameserver.server import answer
from pocketmq.nameserver.state import NameServerState
from tests.nameserver.java_scenarios import body_of, essence, request_of, scenarios


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: str(scenario["name"]))
def test_every_answer_is_the_one_java_gave(scenario: dict[str, Any]) -> None:
    state = NameServerState(NameServerConfig(broker_take_over_enable=True), lambda: 0.0)
    for number, step in enumerate(scenario["steps"]):
        if "close" in step:
            state.table.connection_lost(step["close"])
            continue
        request = request_of(step)
        ours = answer(state, step["on"], request)
        java = step["answer"]
        code = step["code"]
        assert essence(ours.code, ours.remark, ours.ext, ours.body, request=code) == essence(
            java["code"], java["remark"], java["ext"], body_of(java), request=code
        ), f"step {number}: {request} {step['ext']}"
