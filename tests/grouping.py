"""Which tests stay together in a parallel run: those that share what is costly to make.

Groups are read from the tests' ids alone. pytest-xdist's own way, a mark that it writes into the
id, has no effect since pytest 9.2: every test was a group of its own, and each worker made every
cluster and every Spark session anew.
"""

import re
from typing import Any

from xdist.scheduler.loadscope import (  # type: ignore[import-untyped]  # it ships no types
    LoadScopeScheduling,
)

TOGETHER = {"dashboard": "dashboard", "spark": "spark", "pipelines": "spark"}
"""Folders whose tests use one cluster and one browser, or one Spark session, and their group."""
SPREAD = {
    "test_model.py",
    *("test_clients_java.py", "test_crowds_java.py"),
    *("test_groups_java.py", "test_mixed_java.py", "test_pop_own_java.py", "test_push_java.py"),
    "test_side_by_side_java.py",
}
"""Files whose tests have nothing in common that would be costly to make twice, as all in `virtual`."""
ON_TWO_CLUSTERS = {
    *("test_exchanges_java.py", "test_guarded_own_java.py", "test_rows_java.py"),
    "test_tools_java.py",
}
"""Files whose tests run on one cluster and then on another, each named first in the brackets."""
PATIENT = {"balance", "model", "protocol", "virtual"}
"""Folders whose tests only compute: a worker of their own does them in time that others leave."""
RELEASE = re.compile(r"[\[-](\d+\.\d+\.\d+)[\]-]")
"""The release of RocketMQ that a test runs with, in its brackets."""
CLUSTER = re.compile(r"\[(java-ours|ours-java|java|ours|in the clear|over TLS)\b")


def group_of(test: str) -> str:
    """Return the name of the group that a test belongs to, by the test's id."""
    path, _, name = test.partition("::")
    folder, _, file = path.rpartition("/")
    if group := TOGETHER.get(folder.rpartition("/")[2]):
        return group
    if file in SPREAD or folder.endswith("/virtual"):
        return test
    group = path
    if folder.endswith("/interop") and (release := RELEASE.search(name)):
        group = f"{path} {release[1]}"
    if file in ON_TWO_CLUSTERS and (cluster := CLUSTER.search(name)):
        return f"{group} {cluster[1]}"
    return group


def is_patient(group: str) -> bool:
    """Return whether the tests of a group only compute, so that others may go first."""
    return not PATIENT.isdisjoint(group.partition("::")[0].split("/"))


class Together(LoadScopeScheduling):  # type: ignore[misc]  # of a class without types
    """Gives a worker whole groups; the last of three or more gets patient ones, if there are any."""

    _for_patient: Any = None
    _begun = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def remove_node(self, node: Any) -> str | None:
        """Hand out what a worker that died has not run, but for the test that it died of.

        xdist hands out all of it, also groups that have ended: who gets one of those waits for its
        end, for ever. The test that killed one worker would kill the next.
        """
        workload: dict[str, dict[str, bool]] = self.assigned_work.pop(node)
        left = [
            (group, test) for group, unit in workload.items() for test in unit if not unit[test]
        ]
        if not left:
            return None
        group, crashed = left[0]
        workload[group][crashed] = True
        self.workqueue.update(
            {group: unit for group, unit in workload.items() if not all(unit.values())}
        )
        self._share_out()
        return crashed

    def schedule(self) -> None:
        """Share out the groups; a worker that replaces another gets two, as the first ones do.

        It begins a test when it has the next. Another one may be being started, which has not said
        yet which tests it has.
        """
        if self.collection is None:
            super().schedule()
        else:
            self._share_out()
            self._share_out()

    def _share_out(self) -> None:
        for node in self.nodes:
            if node in self.registered_collections:  # else it is being started
                self._reschedule(node)

    def _assign_work_unit(self, node: Any) -> None:
        if not self._begun:
            self._begun = True
            if len(self.nodes) > 2 and any(map(is_patient, self.workqueue)):
                self._for_patient = self.nodes[-1]
        wanted = [group for group in self.workqueue if is_patient(group)]
        if node is not self._for_patient:  # the others help with those when nothing else is left
            wanted = [group for group in self.workqueue if not is_patient(group)] or wanted
        if not wanted:
            node.shutdown()
            return
        self.workqueue.move_to_end(wanted[0], last=False)
        super()._assign_work_unit(node)
