"""Cookies that cannot be made or kept by others, and patience that runs out."""

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.dashboard.security import login

KEY = b"k" * 32


def test_a_cookie_is_known_until_it_ends() -> None:
    sessions = login.Sessions(KEY)
    cookie = sessions.begin(1000.0, "abcd")
    assert sessions.who(cookie, 1000.0) == "abcd"
    assert sessions.who(cookie, 1000.0 + login.LASTS - 1) == "abcd"
    assert sessions.who(cookie, 1000.0 + login.LASTS) is None


def test_a_cookie_of_another_process_is_not_known() -> None:
    cookie = login.Sessions(b"other" * 8).begin(1000.0, "abcd")
    assert login.Sessions(KEY).who(cookie, 1000.0) is None


def test_one_who_logs_out_takes_nobody_along() -> None:
    sessions = login.Sessions(KEY)
    mine, yours = (sessions.begin(0.0, nonce) for nonce in ("aa", "bb"))
    sessions.end(mine, 1.0)
    assert sessions.who(mine, 1.0) is None
    assert sessions.who(yours, 1.0) == "bb"


@given(st.text(), st.integers(0, 200))
def test_no_other_text_is_a_cookie(text: str, place: int) -> None:
    sessions = login.Sessions(KEY)
    cookie = sessions.begin(0.0, "abcd")
    changed = cookie[:place] + text + cookie[place + 1 :]
    assert sessions.who(text, 0.0) is None
    assert sessions.who(changed, 0.0) is None or changed == cookie


def test_each_wrong_password_after_the_third_costs_twice_the_time() -> None:
    attempts = login.LoginAttempts()
    waits = []
    for _ in range(10):
        waits.append(attempts.wait("a", 0.0))
        attempts.failed("a", 0.0)
    assert waits == [0, 0, 0, 1, 2, 4, 8, 16, 32, 60]
    assert attempts.wait("b", 0.0) == 0
    assert attempts.wait("a", 60.0) == 0
    attempts.succeeded("a")
    assert attempts.wait("a", 0.0) == 0


def test_guessing_from_many_addresses_does_not_fill_the_memory() -> None:
    attempts = login.LoginAttempts()
    for number in range(5000):
        attempts.failed(str(number), 0.0)
    assert len(attempts._failed) == 1024


@given(st.text(), st.text())
def test_passwords_are_equal_only_to_themselves(one: str, other: str) -> None:
    assert login.same_password(one, one)
    clean = [text.encode(errors="replace") for text in (one, other)]
    assert login.same_password(one, other) == (clean[0] == clean[1])


@pytest.mark.parametrize(
    ("header", "password"),
    [
        ("Basic " + b64encode(b"u:p:q").decode(), "p:q"),
        ("basic " + b64encode(b"u:p").decode(), "p"),
        ("Basic !!", None),
        ("Bearer x", None),
        ("Basic " + b64encode(b"\xff").decode(), None),
        ("", None),
    ],
)
def test_a_password_in_a_header_is_read(header: str, password: str | None) -> None:
    assert login.basic_password(header) == password
