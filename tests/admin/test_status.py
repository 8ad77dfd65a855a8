"""What a broker tells of itself, read as an operator looks at it."""

import pytest

from pocketmq.admin.brokers import status_of


@pytest.mark.parametrize("name", ["getTransferredTps", "getTransferedTps"])
def test_rates_are_read_as_5_x_and_4_9_spell_them(name: str) -> None:
    assert status_of({name: "1.5 2 3"}).get_tps == 1.5


@pytest.mark.parametrize("told", [{}, {"putTps": "  "}, {"putTps": "soon"}])
def test_what_is_not_told_yet_is_unknown(told: dict[str, str]) -> None:
    assert status_of(told).put_tps is None
