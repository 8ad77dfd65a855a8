"""What every page has at hand: the cluster, what is known of it, and what may be done."""

from dataclasses import dataclass

from pocketmq.admin.admin import Admin
from pocketmq.dashboard.actions import Actions
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.views import Views


@dataclass(frozen=True)
class Desk:
    """Handed to every page. One for a dashboard, shared by all browsers."""

    admin: Admin
    views: Views
    actions: Actions
    settings: DashboardSettings
