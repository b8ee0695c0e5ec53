"""Faults that the stand-in cloud can be told to have, per capability and task, at run time.

Each imitates something seen or expected of a real service. A fault either replaces the answer, spoils
its delivery, or bends its data. Pure values and one board that holds them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from enum import StrEnum
from itertools import count

from watchdog.demo.httpd import Reply, json_reply

CONSOLE_PAGE = b"<!doctype html><html><head><title>Console</title></head><body>please sign in</body></html>"
HANG_SECONDS = 3600.0


class FaultKind(StrEnum):
    """What goes wrong."""

    # the answer is replaced
    HTML = "html"  # HTTP 200 and the console's page
    LOGIN = "login"  # HTTP 401, code 40401
    KEY_UNKNOWN = "key unknown"  # HTTP 401, code 40006
    KEY_EXPIRED = "key expired"
    KEY_DISABLED = "key disabled"
    SIGNATURE = "signature"
    CLOCK = "clock"  # HTTP 401, code 40002
    FORBIDDEN = "forbidden"  # HTTP 403
    BODY_403 = "body 403"  # HTTP 200, body status 403, data {}
    BODY_500 = "body 500"
    ERROR_500 = "error 500"
    UNAVAILABLE = "unavailable"  # HTTP 503 and a gateway's page
    THROTTLED = "throttled"  # HTTP 429; `value` = Retry-After, "" = without
    NOT_FOUND = "not found"
    REDIRECT = "redirect"
    NULL_DATA = "null data"
    NO_DATA = "no data"  # the key is missing
    WRONG_DATA = "wrong data"  # data is a text
    GARBAGE = "garbage"
    TRUNCATED = "truncated"  # whole by its length, cut within the JSON
    CHARSET = "charset"  # bytes that are not in the declared character set
    HUGE = "huge"  # `value` bytes

    # the delivery is spoiled
    HANG = "hang"  # `value` seconds of silence
    DRIP = "drip"  # `value` seconds a byte
    DROP = "drop"  # the connection closes within the body

    # the data is bent
    STALE = "stale"  # series end `value` seconds ago
    NO_SERIES = "no series"
    NO_POINTS = "no points"
    ODD_VALUES = "odd values"  # "1.02", "212.37", "", "NaN", "-", null, numbers
    TWICE = "twice"  # each series and each point comes twice
    LATE = "late"  # lines become visible `value` seconds after their time
    NO_LINES = "no lines"
    FULL_PAGE = "full page"  # exactly `limit` rows, by repeating the last
    UNSORTED = "unsorted"
    SAME_TIME = "same time"  # every row of the page has the first row's time
    PARTIAL_LIST = "partial list"  # the list leaves out the fault's task (a sub-account's view)
    REPEATED_PAGE = "repeated page"
    EMPTY_PAGE = "empty page"  # from page 2 on
    SHRINKING = "shrinking"  # totalRows is one less on each page

    # of the SDK's cloud only
    REFUSED = "refused"  # HTTP 200, status false: the SDK returns None
    DEAF = "deaf"  # the SDK's call hangs for half an hour, whatever time-out it was given
    DIE = "die"  # the SDK's process is killed while it reads the answer
    CUT = "cut"  # half of the curves, and a warning that the answer was truncated
    WARNED = "warned"  # metric `value` (or all) comes with a warning and without curves
    NOTED = "noted"  # a warning of the query that cuts nothing: `value`
    WITH_TIMES = "with times"  # log items name their time and pod
    NULL_LISTS = "null lists"  # what is typed as a list is null
    UNIT = "unit"  # the unit is `value`
    NO_METRICS = "no metrics"


OF_THE_SDK = frozenset(
    {
        FaultKind.REFUSED,
        FaultKind.DEAF,
        FaultKind.DIE,
        FaultKind.CUT,
        FaultKind.WARNED,
        FaultKind.NOTED,
        FaultKind.WITH_TIMES,
        FaultKind.NULL_LISTS,
        FaultKind.UNIT,
        FaultKind.NO_METRICS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault in force. Empty capability or task = any; `times` answers, then it is over (0 = for ever)."""

    kind: FaultKind
    capability: str = ""  # metrics, logs, list, pod
    task: str = ""
    value: str = ""
    times: int = 0
    id: int = 0

    def number(self, default: float) -> float:
        """`value` as a number."""
        return float(self.value) if self.value else default


@dataclass(slots=True)
class FaultBoard:
    """The faults in force."""

    faults: list[Fault] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def add(
        self,
        kind: FaultKind | str,
        capability: str = "",
        *,
        task: str = "",
        value: object = "",
        times: int = 0,
    ) -> Fault:
        """Put one up; returns it, for `remove`."""
        fault = Fault(
            kind=FaultKind(kind),
            capability=capability,
            task=task,
            value=str(value),
            times=times,
            id=next(self._numbers),
        )
        self.faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Take one down."""
        self.faults = [other for other in self.faults if other.id != fault.id]

    def clear(self) -> None:
        """Take all down."""
        self.faults.clear()

    def active(self, capability: str, task: str) -> dict[FaultKind, Fault]:
        """Return what applies to one answer, and count it."""
        found: dict[FaultKind, Fault] = {}
        for fault in list(self.faults):
            wrong_task = fault.task not in ("", task) and fault.kind is not FaultKind.PARTIAL_LIST
            if fault.capability not in ("", capability) or wrong_task:
                continue
            found.setdefault(fault.kind, fault)
            if fault.times:
                self._use_up(fault)
        return found

    def _use_up(self, fault: Fault) -> None:
        if fault.times == 1:
            self.remove(fault)
            return
        less = changed(fault, times=fault.times - 1)
        self.faults = [less if other.id == fault.id else other for other in self.faults]


def envelope(data: object, status: int = 200, message: str = "OK") -> dict[str, object]:
    """The form of every answer."""
    return {"status": status, "message": message, "data": data}


def _error(http: int, status: int, message: str) -> Reply:
    return json_reply(envelope({}, status, message), http)


_FIXED: Mapping[FaultKind, Reply] = {
    FaultKind.HTML: Reply(body=CONSOLE_PAGE, content_type="text/html; charset=utf-8"),
    FaultKind.LOGIN: _error(401, 40401, "login credential expired"),
    FaultKind.KEY_UNKNOWN: _error(401, 40006, "API key not found"),
    FaultKind.KEY_EXPIRED: _error(401, 40005, "API key expired"),
    FaultKind.KEY_DISABLED: _error(401, 40004, "API key disabled"),
    FaultKind.SIGNATURE: _error(401, 40003, "signature mismatch"),
    FaultKind.CLOCK: _error(401, 40002, "timestamp outside the window"),
    FaultKind.FORBIDDEN: _error(403, 403, "Forbidden"),
    FaultKind.BODY_403: _error(200, 403, "Forbidden"),
    FaultKind.BODY_500: _error(200, 500, "Internal Server Error"),
    FaultKind.ERROR_500: _error(500, 500, "Internal Server Error"),
    FaultKind.UNAVAILABLE: Reply(status=503, body=b"<html>503</html>", content_type="text/html"),
    FaultKind.NOT_FOUND: _error(404, 404, "no such task"),
    FaultKind.REDIRECT: Reply(status=302, headers={"Location": "/login"}, content_type="text/html"),
    FaultKind.NULL_DATA: json_reply(envelope(None)),
    FaultKind.NO_DATA: json_reply({"status": 200, "message": "OK"}),
    FaultKind.WRONG_DATA: json_reply(envelope("nothing here")),
    FaultKind.GARBAGE: Reply(body=b"{'status': 200, this is no json"),
    FaultKind.CHARSET: Reply(
        body=json.dumps(envelope([]), ensure_ascii=False).encode("utf-8")[:-1] + b"\xff",
        content_type="application/json; charset=utf-16",
    ),
}


def replaced(faults: Mapping[FaultKind, Fault]) -> Reply | None:
    """Return the answer that takes the place of the true one, if a fault says so."""
    if FaultKind.THROTTLED in faults:
        wait = faults[FaultKind.THROTTLED].value
        return changed(_error(429, 429, "Too Many Requests"), headers={"Retry-After": wait} if wait else {})
    if FaultKind.HUGE in faults:
        size = int(faults[FaultKind.HUGE].number(20 * 1024 * 1024))
        return Reply(body=b'{"status": 200, "data": "' + b"x" * size + b'"}')
    return next((_FIXED[kind] for kind in faults if kind in _FIXED), None)


def spoiled(reply: Reply, faults: Mapping[FaultKind, Fault]) -> Reply:
    """Return the reply as it is really delivered."""
    if FaultKind.TRUNCATED in faults:
        reply = changed(reply, body=reply.body[: max(1, len(reply.body) * 2 // 3)])
    if FaultKind.HANG in faults:
        reply = changed(reply, delay=faults[FaultKind.HANG].number(HANG_SECONDS))
    if FaultKind.DRIP in faults:
        reply = changed(reply, drip=faults[FaultKind.DRIP].number(1.0))
    if FaultKind.DROP in faults:
        reply = changed(reply, cut=len(reply.body) // 2)
    return reply
