"""The stand-in SiFlow: a loopback server behind the stand-in SDK, playing the same plays as the other cloud.

The SDK's region `loopback-<port>` leads here. Faults can be switched on while it runs. Checks signatures
on its own.
"""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

from watchdog.demo.cloud_auth import Keys
from watchdog.demo.faults import FaultKind, replaced, spoiled
from watchdog.demo.httpd import Reply, Request, json_reply
from watchdog.demo.play import Play
from watchdog.demo.played import MOST_RECORDED, PlayedCloud
from watchdog.demo.siflow_answers import (
    Faults,
    Query,
    RefusedError,
    catalogue,
    full_catalogue,
    log_items,
    metrics_answer,
    pod_rows,
    resource_answer,
    task_row,
)
from watchdog.demo.stage import StagedTask
from watchdog.ports import Clock

SDK_PATH = Path(__file__).with_name("siflow_sdk")
TASKS = "/sfapi/task-service/v1/tasks"
CALLS = "/sfapi/stand-in/"
CAPABILITIES = {"logs": "logs", "catalog": "catalogue", "catalog_full": "catalogue"}


def region_of(url: str) -> str:
    """Return what the stand-in SDK calls an address on loopback."""
    return f"loopback-{url.rpartition(':')[2]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that came. capability: list, get, pods, logs, catalogue or metrics; task: its id."""

    at: datetime
    name: str
    capability: str
    task: str
    asked: dict[str, object]


class StandInSiflow(PlayedCloud):
    """`async with StandInSiflow(play) as cloud:` serves region `cloud.region` until the block ends."""

    def __init__(
        self,
        play: Play,
        *,
        clock: Clock | None = None,
        keys: Keys | None = None,
        speed: float = 1.0,
        port: int = 0,
    ) -> None:
        """The play's second 0 is now."""
        super().__init__(play, clock=clock, keys=keys, speed=speed, port=port)
        self.calls: list[Call] = []

    @property
    def region(self) -> str:
        """What the stand-in SDK calls this place."""
        return region_of(self.url)

    def counts(self) -> Counter[str]:
        """How many calls came, by capability."""
        return Counter(call.capability for call in self.calls)

    async def handle(self, request: Request) -> Reply:
        """Answer one call of the SDK."""
        call = self._located(request)
        if call is None:
            return json_reply({"status": False, "msg": "no such path"}, 404)
        if len(self.calls) < MOST_RECORDED:
            self.calls.append(call)
        faults = self.faults.active(call.capability, self._blamed(call))
        if not self._signed(request):
            return json_reply({"status": False, "msg": "signature mismatch"}, 401)
        if FaultKind.REFUSED in faults:
            return json_reply({"status": False, "msg": "internal error", "traceID": "0f0f"})
        reply = replaced(faults)
        if reply is None:
            try:
                reply = json_reply(self._answer(call, faults))
            except RefusedError as refused:
                reply = json_reply({"status": False, "msg": str(refused)}, refused.status)
        how = next((str(kind) for kind in (FaultKind.DEAF, FaultKind.DIE) if kind in faults), "")
        if how:
            reply = changed(reply, headers={**reply.headers, "X-Stand-In": how})
        return spoiled(reply, faults)

    def _blamed(self, call: Call) -> str:
        """Whom a fault may be about: the pod that is asked about, or else the task."""
        pod = str(call.asked.get("pod_name") or call.asked.get("pod") or "")
        return pod if any(fault.task == pod for fault in self.faults.faults) else call.task

    def _located(self, request: Request) -> Call | None:
        """Read what is asked, and about which task."""
        body = json.loads(request.body) if request.body else {}
        asked: dict[str, object] = {**request.query, **(body if isinstance(body, dict) else {})}
        now = self.clock.now()
        if request.path.startswith(CALLS):
            name = request.path.removeprefix(CALLS)
            capability = CAPABILITIES.get(name, "metrics")
            return Call(at=now, name=name, capability=capability, task=self._about(asked), asked=asked)
        if not request.path.startswith(TASKS):
            return None
        match [unquote(part) for part in request.raw_path.removeprefix(TASKS).strip("/").split("/")]:
            case [""]:
                return Call(at=now, name="list", capability="list", task="", asked=asked)
            case [task]:
                return Call(at=now, name="get", capability="get", task=task, asked=asked)
            case [task, "pods"]:
                return Call(at=now, name="pods", capability="pods", task=task, asked=asked)
        return None

    def _about(self, asked: dict[str, object]) -> str:
        for task in self.tasks.values():
            pods = task.play.pods()
            if (
                asked.get("uuid") == task.play.id
                or asked.get("task_name") == task.play.name
                or asked.get("pod_name") in pods
                or asked.get("pod") in pods
            ):
                return task.play.id
        return ""

    def _signed(self, request: Request) -> bool:
        headers = request.headers
        text = self.keys.secret_key + headers.get("randstr", "") + headers.get("timestamp", "")
        right = hashlib.sha256(text.encode()).hexdigest()
        return headers.get("appid") == self.keys.access_key and headers.get("signature") == right

    # --- answers

    def _answer(self, call: Call, faults: Faults) -> dict[str, object]:
        now = self.clock.now()
        if call.name == "list":
            return self._list(call, faults, now)
        if call.name == "catalog":
            return _data(catalogue(str(call.asked.get("dimension"))))
        task = self.tasks.get(call.task)
        if call.name == "catalog_full":
            return _data(full_catalogue(task, str(call.asked.get("dimension")), now))
        if task is None or not task.listed:
            raise RefusedError(404, "not found")
        if call.name == "get":
            return _data(task_row(task, now))
        if call.name == "pods":
            return {"status": True, "rows": pod_rows(task, now), "total": len(task.play.pods())}
        if call.name == "logs":
            return _data(log_items(task, call.asked, faults, now))
        return _data(self._metrics(call, task, faults, now))

    def _metrics(self, call: Call, task: StagedTask, faults: Faults, now: datetime) -> object:
        if call.name != "resource":
            return metrics_answer(Query(call.name, task, call.asked, faults, now))
        asked = {**call.asked, "pod_name": call.asked.get("pod")}
        return resource_answer(Query("resource", task, asked, faults, now), str(call.asked.get("metric")))

    def _list(self, call: Call, faults: Faults, now: datetime) -> dict[str, object]:
        if FaultKind.NULL_LISTS in faults:
            return {"status": True, "rows": None, "total": 0}
        number, size = (
            int(str(call.asked.get(name, default))) for name, default in (("page", 1), ("pageSize", 15))
        )
        shown = [task for task in self.tasks.values() if task.listed]
        rows = [task_row(task, now) for task in shown[(number - 1) * size : number * size]]
        if FaultKind.TWICE in faults:
            rows = [row for row in rows for _ in range(2)]
        return {"status": True, "rows": rows, "total": len(shown)}


def _data(value: object) -> dict[str, object]:
    return {"status": True, "msg": "ok", "data": value}
