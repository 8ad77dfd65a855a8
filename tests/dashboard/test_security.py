"""What a hostile page, a hostile visitor and a hostile cluster can do: nothing.

Requests are written by hand, so that nothing a browser would add or refuse stands in the way.
"""

import re
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import pocketmq as mq
from pocketmq.model.names import dead_letter_topic
from tests.dashboard.conftest import PATIENCE, DashboardProcess, Viewer, viewing
from tests.dashboard.raw_http import SOCKET, Reply, ask, knock
from tests.nameserver.wire import broker_fields, topics
from tests.server_process import wait_for
from tests.wire_client import WireClient

PASSWORD = "correct horse battery"
EVIL = "<img src=x onerror=window.harmed=1>"
EVIL_NAME = "<img/src=x/onerror=window.harmed=1>"  # name servers refuse blanks in names
PATHS = [
    "/",
    "/topics",
    "/topics/orders",
    "/groups",
    "/groups/billing",
    "/groups/billing/assignment",
    "/clients",
    "/messages",
    "/dead-letters",
    "/metrics",
    "/style.css",
    "/logout",
    "/favicon.ico",
    "/nowhere",
    "/_nicegui/3.18.0/static/nicegui.js",
]


@pytest.fixture(scope="module")
def evil() -> Iterator[str]:
    """Yield a cluster in which everything that can be named is named to do harm."""
    with (
        mq.Cluster() as cluster,
        WireClient(cluster.address) as broker,
        mq.Producer(
            cluster.address, group="shop", instance_name=EVIL, send_timeout=30.0
        ) as producer,
    ):
        consumer = mq.PushConsumer(
            cluster.address, group="victims", instance_name=EVIL, consume_from="first"
        )
        consumer.subscribe("news", "*", _refuse)
        with consumer:
            # A broker that is not there, registered as any program can.
            fields = broker_fields(f"broker{EVIL_NAME}", 0, "127.0.0.1:1")
            fields["clusterName"] = EVIL_NAME
            registration = (103, fields, topics(f"topic{EVIL_NAME}", f"{EVIL_NAME}"))
            assert broker.ask(*registration).code == 0
            message = mq.Message(
                "news", EVIL.encode(), tag=EVIL, keys=["harm"], properties={EVIL: EVIL}
            )
            producer.send(message)
            with mq.Admin(cluster.address) as admin:
                wait_for(
                    lambda: dead_letter_topic("victims") in admin.topics.names(), "the dead letter"
                )
            with repeated(lambda: broker.ask(*registration)):
                yield cluster.address


@contextmanager
def repeated(heartbeat: Callable[[], object]) -> Iterator[None]:
    """Send it every few seconds: a name server removes a broker that is silent for two minutes."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(10.0):
            heartbeat()

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        yield
    finally:
        over.set()
        beating.join()


def _refuse(_message: object) -> None:
    raise mq.RetryLater(delay_level=-1)


@pytest.fixture(scope="module")
def guarded(evil: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardProcess]:
    """Yield a dashboard of that cluster which others than this machine can reach."""
    file = tmp_path_factory.mktemp("secret") / "password"
    file.write_text(f"{PASSWORD}\n")
    with DashboardProcess(
        "-n", evil, "--host", "0.0.0.0", "--port", "0", "--password-file", str(file)
    ) as process:
        yield process


def log_in(url: str, password: str = PASSWORD, **headers: str) -> Reply:
    given = {"Origin": url, "Content-Type": "application/x-www-form-urlencoded"} | headers
    return ask(url, "/login", method="POST", headers=given, body=f"password={password}".encode())


@pytest.fixture(scope="module")
def cookie(guarded: DashboardProcess) -> str:
    return log_in(guarded.url).headers["set-cookie"].partition(";")[0]


# Other people's pages


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "https://127.0.0.1.evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_pages_of_others_get_nothing(dashboard: DashboardProcess, headers: dict[str, str]) -> None:
    for path in ("/", "/metrics", SOCKET):
        reply = ask(dashboard.url, path, headers=headers)
        assert reply.status == 403
        assert b"pocketmq_" not in reply.body
        assert "access-control-allow-origin" not in reply.headers


def test_a_websocket_is_opened_for_our_own_pages_only(dashboard: DashboardProcess) -> None:
    url = dashboard.url
    assert knock(url, Origin=url) == 101
    assert knock(url, Origin="http://evil.example") == 403
    assert knock(url, Origin="null") == 403
    assert knock(url) == 403
    assert knock(url, Origin=url.replace("127.0.0.1", "localhost")) == 403


def test_a_link_from_elsewhere_may_be_followed(dashboard: DashboardProcess) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert ask(dashboard.url, "/", headers=headers).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_pages_are_only_read(dashboard: DashboardProcess, method: str) -> None:
    own = {"Origin": dashboard.url}
    assert ask(dashboard.url, "/", method=method).status == 403
    assert ask(dashboard.url, "/", method=method, headers=own).status == 405


def test_the_second_way_into_the_live_connection_is_closed(dashboard: DashboardProcess) -> None:
    """Without a WebSocket the library would take requests that any page can send."""
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    assert ask(dashboard.url, path).status == 404
    own = {"Origin": dashboard.url}
    assert ask(dashboard.url, path, method="POST", headers=own, body=b"40").status == 404


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "",
        "a@127.0.0.1",
        "192.0.2.7",
    ],
)
def test_a_name_that_was_pointed_at_us_is_not_ours(dashboard: DashboardProcess, host: str) -> None:
    """DNS rebinding: the browser believes that it speaks to the attacker's own site."""
    for headers in ({"Host": host}, {"Host": host, "Origin": f"http://{host}"}):
        assert ask(dashboard.url, "/", headers=headers).status == 421
    assert knock(dashboard.url, Host=host, Origin=f"http://{host}") in {403, 421}


def test_names_of_this_machine_are_ours(dashboard: DashboardProcess) -> None:
    port = dashboard.url.rpartition(":")[2]
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", f"LOCALHOST:{port}"):
        assert ask(dashboard.url, "/", headers={"Host": host}).status == 200


@pytest.mark.parametrize("path", ["/", "/metrics", "/style.css", "/nowhere", "/topics/orders"])
def test_every_answer_keeps_browsers_from_harm(dashboard: DashboardProcess, path: str) -> None:
    headers = ask(dashboard.url, path).headers
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    policy = dict(
        part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
    )
    assert policy["frame-ancestors"] == "'none'"
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert "'unsafe-inline'" not in policy["script-src"]
    assert "http" not in headers["content-security-policy"]
    assert "server" not in headers


def test_every_page_has_a_nonce_of_its_own(dashboard: DashboardProcess) -> None:
    pages = [ask(dashboard.url, "/") for _ in range(2)]
    nonces = [set(re.findall(r'<script nonce="([^"]+)"', page.text)) for page in pages]
    assert [len(each) for each in nonces] == [1, 1]
    assert nonces[0] != nonces[1]
    assert "<script>" not in pages[0].text


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/_nicegui/3.18.0/static/..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/_nicegui/3.18.0/static/../../../../../../../../etc/passwd",
        "/_nicegui/3.18.0/resources/x/..%2f..%2fetc/passwd",
        "/_nicegui/3.18.0/libraries/..%2f..%2f..%2fetc%2fpasswd",
        "/style.css/../server.py",
        "//etc/passwd",
        "/topics/..%2f..%2fetc%2fpasswd",
    ],
)
def test_no_file_is_served_but_the_pages_own(dashboard: DashboardProcess, path: str) -> None:
    reply = ask(dashboard.url, path)
    assert b"root:" not in reply.body
    assert b"import " not in reply.body or reply.status == 404 or b"importmap" in reply.body


@pytest.mark.parametrize("header", ["X-Forwarded-Prefix", "X-Forwarded-Host", "X-Forwarded-For"])
def test_nobody_tells_us_where_we_are(dashboard: DashboardProcess, header: str) -> None:
    harm = '"><script>alert(1)</script>'
    assert "alert(1)" not in ask(dashboard.url, "/", headers={header: harm}).text


# Login


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_shown_before_login(guarded: DashboardProcess, path: str) -> None:
    reply = ask(guarded.url, path)
    if path in {"/metrics", "/logout"}:
        assert reply.status == (401 if path == "/metrics" else 405)
    else:
        assert (reply.status, reply.headers["location"]) == (303, f"/login?to={_quoted(path)}")
    assert b"nicegui" not in reply.body
    assert ask(guarded.url, path, headers={"Cookie": "pocketmq_session=1.2.3"}).status != 200


def _quoted(path: str) -> str:
    return path.replace("/", "%2F")


def test_no_websocket_before_login(guarded: DashboardProcess, cookie: str) -> None:
    url = guarded.url
    assert knock(url, Origin=url) == 403
    assert knock(url, Origin=url, Cookie="pocketmq_session=9999999999.aa.bb") == 403
    assert knock(url, Origin=url, Cookie=cookie) == 101
    assert knock(url, Origin="http://evil.example", Cookie=cookie) == 403


def test_the_cookie_is_kept_from_scripts_and_other_sites(guarded: DashboardProcess) -> None:
    reply = log_in(guarded.url)
    assert reply.status == 303
    name, *attributes = reply.headers["set-cookie"].split("; ")
    assert name.startswith("pocketmq_session=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)


def test_a_login_is_not_started_by_other_pages(guarded: DashboardProcess) -> None:
    assert log_in(guarded.url, Origin="http://evil.example").status == 403
    reply = ask(guarded.url, "/login", method="POST", body=b"password=x")
    assert reply.status == 403


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/topics", "/topics"),
        ("http://evil.example", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/a%0d%0aSet-Cookie: x=y", "/"),
    ],
)
def test_login_leads_to_our_pages_only(
    guarded: DashboardProcess, target: str, location: str
) -> None:
    reply = ask(
        guarded.url, "/login", method="POST", headers={"Origin": guarded.url},
        body=f"password={PASSWORD}&to={target}".encode(),
    )  # fmt: skip
    assert (reply.status, reply.headers["location"]) == (303, location)


def test_after_logout_the_cookie_is_worth_nothing(guarded: DashboardProcess) -> None:
    own = {"Origin": guarded.url}
    cookie = log_in(guarded.url).headers["set-cookie"].partition(";")[0]
    assert ask(guarded.url, "/topics", headers={"Cookie": cookie}).status == 200
    assert (
        ask(guarded.url, "/logout", method="POST", headers=own | {"Cookie": cookie}).status == 303
    )
    assert ask(guarded.url, "/topics", headers={"Cookie": cookie}).status == 303


def test_prometheus_comes_in_with_the_password(guarded: DashboardProcess) -> None:
    basic = b64encode(f"prometheus:{PASSWORD}".encode()).decode()
    reply = ask(guarded.url, "/metrics", headers={"Authorization": f"Basic {basic}"})
    assert (reply.status, reply.headers["content-type"]) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    assert re.search(
        r'pocketmq_broker_up\{.*broker="broker-0",cluster="DefaultCluster"', reply.text
    )
    assert ask(guarded.url, "/", headers={"Authorization": f"Basic {basic}"}).status == 303


def test_a_form_that_does_not_end_is_not_kept(guarded: DashboardProcess) -> None:
    body = b"password=" + b"x" * 100_000
    reply = ask(guarded.url, "/login", method="POST", headers={"Origin": guarded.url}, body=body)
    assert reply.status == 413


def test_a_dashboard_for_others_is_known_by_addresses(guarded: DashboardProcess) -> None:
    """Names may be anybody's; an address in the browser's line cannot be rebound."""
    assert ask(guarded.url, "/login", headers={"Host": "192.0.2.7:8080"}).status == 200
    assert ask(guarded.url, "/login", headers={"Host": "evil.example"}).status == 421


# A hostile cluster


@pytest.fixture(scope="module")
def visitor(
    browser: Browser, guarded: DashboardProcess, screenshots: Path | None
) -> Iterator[Viewer]:
    with viewing(browser, guarded.url, screenshots) as window:
        window.page.goto(f"{guarded.url}/groups/victims")
        window.keep("login")
        window.page.get_by_label("Password").fill(PASSWORD)
        window.page.keyboard.press("Enter")
        window.page.wait_for_url("**/groups/victims")
        window.live()
        yield window


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/topics",
        "/groups/victims",
        "/groups/victims/assignment",
        "/clients",
        "/messages?topic=news&by=key&value=harm",
        "/dead-letters/victims",
        f"/messages?topic={EVIL}&by=key&value={EVIL}&from={EVIL}",
        f"/topics/{EVIL}",
        f"/groups/{EVIL}",
        f"/groups/{EVIL}/assignment",
        f"/dead-letters/{EVIL}",
        f"/messages/{EVIL}/{EVIL}/0/0",
    ],
)
def test_what_the_wire_says_is_shown_as_text(visitor: Viewer, path: str) -> None:
    visitor.open(path.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20"))
    visitor.page.get_by_text("onerror=window.harmed").first.wait_for(state="attached")
    expect(visitor.page.locator("img")).to_have_count(0)
    assert visitor.page.evaluate("window.harmed") is None


def test_a_hostile_message_is_shown_as_text(visitor: Viewer) -> None:
    visitor.open("/messages?topic=news&by=key&value=harm")
    visitor.page.get_by_role("region", name="Messages of news").get_by_role("link").click()
    visitor.page.get_by_label("Body", exact=True).get_by_text(EVIL).wait_for()
    shown = visitor.page.get_by_role("region", name="Properties").get_by_text(EVIL)
    expect(shown.nth(1)).to_be_attached()
    assert visitor.page.evaluate("window.harmed") is None
    visitor.keep("hostile-message")


def test_even_html_that_got_into_a_page_runs_no_script(visitor: Viewer) -> None:
    """The last line of defence: the policy forbids what escaping would have let through."""
    visitor.open("/")
    visitor.page.evaluate(
        "html => new Promise(failed => { const place = document.querySelector('h1');"
        " place.innerHTML = html; place.firstChild.addEventListener('error', () => failed()); })",
        EVIL,
    )
    deadline = time.monotonic() + PATIENCE / 1000
    while not any("Content Security Policy" in text for text in visitor.complaints):
        assert time.monotonic() < deadline, visitor.complaints
        visitor.page.wait_for_timeout(50)
    assert visitor.page.evaluate("window.harmed") is None
    visitor.complaints.clear()


def test_a_broker_that_does_not_answer_is_named_and_not_counted_as_nothing(
    visitor: Viewer,
) -> None:
    visitor.open("/")
    visitor.wait_for_rows("Brokers", lambda rows: {row[1] for row in rows} == {"up", "no response"})
    silent = next(row for row in visitor.rows("Brokers") if row[1] == "no response")
    assert silent[6:9] == ["?", "?", "?"]
    tile = visitor.page.locator(".pm-tile", has_text="Messages in /s")
    expect(tile.locator(".pm-tile-value")).to_have_text("?")
    visitor.page.get_by_text(re.compile("No response from broker.*127.0.0.1:1")).wait_for()
    visitor.keep("silent-broker")


def test_one_who_logs_out_sees_nothing_more(visitor: Viewer) -> None:
    visitor.open("/topics")
    visitor.page.get_by_role("button", name="Log out").click()
    visitor.page.wait_for_url("**/login")
    visitor.page.goto(f"{visitor.url}/topics")
    assert visitor.page.url == f"{visitor.url}/login?to=%2Ftopics"


def test_guessing_becomes_slow(guarded: DashboardProcess) -> None:
    """The last test: it keeps this address out for a while, with the right password too.

    The third wrong password costs a second. If what is asked then takes longer, on a machine that
    is busy with something else, the address is let in again, and all of it is done once more.
    """
    basic = b64encode(f"x:{PASSWORD}".encode()).decode()
    scrape = {"Authorization": f"Basic {basic}"}
    for _ in range(10):
        statuses = [log_in(guarded.url, f"guess {number}").status for number in range(2)]
        third = time.monotonic()
        statuses += [log_in(guarded.url, f"guess {number}").status for number in range(2, 5)]
        reply = log_in(guarded.url)
        scraped = ask(guarded.url, "/metrics", headers=scrape).status
        if time.monotonic() - third < 1:
            break
        wait_for(lambda: log_in(guarded.url).status == 303, "the address to be let in again")
    assert statuses == [401, 401, 401, 429, 429]
    assert reply.status == 429
    assert int(reply.headers["retry-after"]) >= 1
    assert scraped == 401
    wait_for(lambda: "wrong password, address=127.0.0.1" in guarded.errors(), "the log to tell")
    assert PASSWORD not in guarded.errors()
    deadline = time.monotonic() + 20
    while log_in(guarded.url).status == 429:
        assert time.monotonic() < deadline
