"""The client: one account on one cluster. Where that is stands in a table that is compiled in."""

import os
from collections.abc import Mapping

from ._http import Http
from ._tasks import Metrics, OldTasks, Tasks

CLUSTERS: Mapping[str, tuple[str, ...]] = {
    "cn-beijing": ("auriga",),
    "cn-shanghai": ("hercules", "changliu", "shmaas"),
}
LOOPBACK = "loopback-"  # the stand-in's own region, its port follows
LOOPBACK_CLUSTERS = ("auriga", "auriga-0.2.9", "auriga-no-catalogue", "auriga-generic")


class _NoCatalogue(Tasks):
    """A version between the two, in which some methods are missing."""

    metrics_catalog = None  # type: ignore[assignment]
    metrics_catalog_full = None  # type: ignore[assignment]
    list_pods = None  # type: ignore[assignment]


class SiFlow:
    """`client.tasks` and, in newer versions, `client.metrics`."""

    def __init__(
        self,
        *,
        region: str = "cn-beijing",
        cluster: str = "auriga",
        access_key_id: str | None = None,
        access_key_secret: str | None = None,
        timeout: float = 600.0,
        max_retries: int = 2,
    ) -> None:
        """Raises a plain ValueError for a missing key and for a place that is not in the table."""
        key = access_key_id or os.environ.get("SIFLOW_ACCESS_KEY_ID")
        secret = access_key_secret or os.environ.get("SIFLOW_ACCESS_KEY_SECRET")
        if not key or not secret:
            raise ValueError("access_key_id and access_key_secret must be set")
        here = region.startswith(LOOPBACK)
        if not here and region not in CLUSTERS:
            raise ValueError(f"unknown region: {region}")
        if cluster not in (LOOPBACK_CLUSTERS if here else CLUSTERS[region]):
            raise ValueError(f"unknown cluster: {cluster}")
        port = region.removeprefix(LOOPBACK) if here else "9"
        base = f"http://127.0.0.1:{port}/sfapi"  # the stand-in leaves this machine never
        http = Http(base, (key, secret), (region, cluster), (timeout, max_retries))
        if cluster == "auriga-0.2.9":
            self.tasks: OldTasks = OldTasks(http)
            return
        if cluster == "auriga-generic":
            self.tasks, self.metrics = OldTasks(http), Metrics(http)
            return
        self.tasks = _NoCatalogue(http) if cluster == "auriga-no-catalogue" else Tasks(http)
        self.metrics = Metrics(http)
