"""Every page in a real browser, with real data."""

from tests.dashboard.conftest import Viewer


def test_the_cluster_page_names_every_broker(viewer: Viewer) -> None:
    viewer.open("/")
    rows = viewer.page.get_by_role("region", name="Brokers").locator("tbody tr")
    rows.nth(1).wait_for()
    assert [row.split()[:2] for row in rows.all_inner_texts()] == [
        ["broker-0", "up"],
        ["broker-1", "up"],
    ]
    viewer.keep("cluster")
