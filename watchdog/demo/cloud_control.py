"""The stand-in's control calls, for tests in another process. Loopback only, nothing to protect.

POST /_control/faults   {"kind", "capability", "task", "value", "times"} → {"id"}
DELETE /_control/faults (all)
POST /_control/say      {"text", "task", "pod", "time_ns", "late"}
POST /_control/phase    {"task", "status", "reason", "pods", "levels": [{"metric", "value", …}], "chatter"}
POST /_control/listed   {"task", "listed"}
GET  /_control/requests → counts by capability, and the most that were answered at once
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol

from watchdog.demo.faults import FaultBoard
from watchdog.demo.httpd import Reply, Request, json_reply
from watchdog.demo.play import Level, Phase
from watchdog.demo.stage import StagedTask


class Controlled(Protocol):
    """What of the cloud can be controlled."""

    faults: FaultBoard
    tasks: dict[str, StagedTask]

    @property
    def most_at_once(self) -> int:
        """The most requests answered at the same time."""
        ...

    def counts(self) -> Mapping[str, int]:
        """API calls by capability."""
        ...

    def say(self, text: str, *, task: str, pod: str, time_ns: int, late: timedelta) -> None:
        """Let a pod print a line."""
        ...

    def enter(self, phase: Phase, *, task: str) -> None:
        """Let a task enter a phase."""
        ...


class CloudControl:
    """Carries out control calls; a wrong one gets 400 with the reason."""

    def __init__(self, cloud: Controlled) -> None:
        self._cloud = cloud

    def answer(self, verb: str, request: Request) -> Reply:
        """Carry out one call."""
        value = request.json()
        body: Mapping[str, object] = value if isinstance(value, dict) else {}
        try:
            return json_reply(self._do(verb, request.method, body))
        except (KeyError, TypeError, ValueError) as error:
            return json_reply({"error": f"{type(error).__name__}: {error}"}, 400)

    def _do(self, verb: str, method: str, body: Mapping[str, object]) -> object:
        match method, verb:
            case "POST", "faults":
                return {"id": self._fault(body)}
            case "DELETE", "faults":
                self._cloud.faults.clear()
            case "POST", "say":
                self._say(body)
            case "POST", "phase":
                self._cloud.enter(_phase(body), task=_text(body, "task"))
            case "POST", "listed":
                self._cloud.tasks[_text(body, "task")].listed = bool(body["listed"])
            case "GET", "requests":
                return {"counts": dict(self._cloud.counts()), "most_at_once": self._cloud.most_at_once}
            case _:
                raise ValueError(f"no such control call: {method} {verb}")
        return {}

    def _fault(self, body: Mapping[str, object]) -> int:
        fault = self._cloud.faults.add(
            _text(body, "kind"),
            _text(body, "capability"),
            task=_text(body, "task"),
            value=_text(body, "value"),
            times=int(_number(body, "times")),
        )
        return fault.id

    def _say(self, body: Mapping[str, object]) -> None:
        self._cloud.say(
            _text(body, "text"),
            task=_text(body, "task"),
            pod=_text(body, "pod"),
            time_ns=int(_text(body, "time_ns") or 0),
            late=timedelta(seconds=_number(body, "late")),
        )


def _phase(body: Mapping[str, object]) -> Phase:
    levels, pods = body.get("levels", []), body.get("pods", [])
    if not isinstance(levels, list) or not isinstance(pods, list):
        raise TypeError("levels and pods are lists")
    return Phase(
        start=0.0,
        status=_text(body, "status") or "Running",
        reason=_text(body, "reason"),
        pods=tuple(map(str, pods)),
        levels=tuple(Level(**level) for level in levels),
        chatter=_number(body, "chatter"),
    )


def _text(body: Mapping[str, object], name: str) -> str:
    return str(body.get(name, ""))


def _number(body: Mapping[str, object], name: str) -> float:
    return float(str(body.get(name, 0)))
