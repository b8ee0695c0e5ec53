"""The sections `http` and `heartbeat`: how others learn whether the watchdog itself is well.

Owns their tables and the two kinds of value only they have: an address to listen on, a time of day.
"""

import ipaddress
import re
from datetime import time, timedelta
from urllib.parse import urlsplit

from watchdog.config.kinds import Kind, duration, or_reference, scalar, text
from watchdog.config.report import Report
from watchdog.config.secrets import SecretBook
from watchdog.config.tables import Fields, Key, Table
from watchdog.config.yaml_nodes import Node
from watchdog.core.ruleset import HeartbeatSpec, HttpSpec, Secret

EVERY = timedelta(minutes=5)

_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})\Z")
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])\Z")


def address() -> Kind[HttpSpec]:
    """An address of this machine and a port."""

    def read(node: Node, report: Report) -> HttpSpec | None:
        value = scalar(node, report, "an address such as 127.0.0.1:9595")
        if value is None:
            return None
        match = _LISTEN.match(value.text)
        host = match["host"].strip("[]") if match else ""
        if match is None or not _is_host(host) or not 0 < int(match["port"]) < 65536:
            hint = 'write an IP address and a port, such as 127.0.0.1:9595 or "[::1]:9595"'
            report.error(value.mark, f"{value.shown!r} is no address to listen on", hint)
            return None
        return HttpSpec(host=host, port=int(match["port"]))

    return Kind(
        words="address:port", read=read, schema=or_reference({"type": "string", "pattern": ":[0-9]+$"})
    )


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "localhost"
    return True


def time_of_day() -> Kind[time]:
    """Hours and minutes, in quotes: YAML 1.1 would count them in base 60."""

    def read(node: Node, report: Report) -> time | None:
        value = text('time such as "09:00"').read(node, report)
        if value is None:
            return None
        match = _TIME.match(value.text)
        if match is None:
            report.error(value.mark, f"{value.shown!r} is no time of day", 'write "09:00" or "23:30"')
            return None
        return time(int(match[1]), int(match[2]))

    schema = or_reference({"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"})
    return Kind(words='time, in quotes: "09:00"', read=read, schema=schema)


HTTP_LISTEN = Key(
    name="listen",
    kind=address(),
    required=True,
    meaning="Where `/healthz`, `/readyz` and `/metrics` answer. There is no password: keep it on this "
    "machine, or behind something that has one.",
)
HTTP = Table(name="http section", keys=(HTTP_LISTEN,), example="{ listen: 127.0.0.1:9595 }")

HEARTBEAT_URL = Key(
    name="url",
    kind=text("http or https URL", longest=2000),
    secret=True,
    meaning="A dead man's switch outside, in the scheme of healthchecks.io: the URL itself is called after "
    "a useful cycle, `/start` at a start, `/fail` with the reasons when the watching is no longer of use.",
)
HEARTBEAT_EVERY = Key(
    name="every",
    kind=duration(zero=False),
    default="5m",
    meaning="How often the URL is called, at most; set its grace time outside to a few times as much.",
)
HEARTBEAT_DAILY_NOTE = Key(
    name="daily_note",
    kind=time_of_day(),
    meaning="Each day at this time (in the zone of `defaults`), one message to the channels that says that "
    "the watching goes on.",
)
HEARTBEAT = Table(
    name="heartbeat section",
    keys=(HEARTBEAT_URL, HEARTBEAT_EVERY, HEARTBEAT_DAILY_NOTE),
    example='{ url: "${HEARTBEAT_URL}", every: 5m }',
    elsewhere={"interval": "did you mean every?"},
)

SECTION_HTTP = Key(
    name="http", kind=HTTP.kind, meaning="Health pages and metrics over HTTP. Without it, no port is open."
)
SECTION_HEARTBEAT = Key(
    name="heartbeat", kind=HEARTBEAT.kind, meaning="Who notices when the watchdog itself falls silent."
)


def http(file: Fields, report: Report) -> HttpSpec | None:
    """Return where to listen; None = nowhere."""
    fields = file.get(SECTION_HTTP)
    spec = fields.get(HTTP_LISTEN) if fields else None
    if fields is None or spec is None:
        return None
    if not spec.loopback:
        report.scoped("http: listen").warning(
            fields.at(HTTP_LISTEN),
            "can be reached from other machines, and there is no password",
            "127.0.0.1 keeps it on this one",
        )
    return spec


def heartbeat(file: Fields, book: SecretBook, report: Report) -> HeartbeatSpec | None:
    """Return how others learn that we are alive; None = not at all."""
    fields = file.get(SECTION_HEARTBEAT)
    if fields is None:
        return None
    report = report.scoped("heartbeat")
    if not fields.has(HEARTBEAT_URL) and not fields.has(HEARTBEAT_DAILY_NOTE):
        report.error(fields.mark, "needs url or daily_note", f"such as {HEARTBEAT.example}")
        return None
    return HeartbeatSpec(
        url=Secret(_url(fields, book, report)),
        every=fields.value(HEARTBEAT_EVERY, EVERY),
        daily_note=fields.get(HEARTBEAT_DAILY_NOTE),
    )


def _url(fields: Fields, book: SecretBook, report: Report) -> str:
    node = fields.get(HEARTBEAT_URL)
    if node is None:
        return ""
    book.add(node.text)
    report = report.scoped("url")
    try:
        parts = urlsplit(node.text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.fragment
        usable = usable and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        report.error(node.mark, "is no http or https URL", "such as https://hc-ping.com/…")
    elif not node.expanded:
        hint = 'write it as "${HEARTBEAT_URL}" and set HEARTBEAT_URL outside'
        report.warning(node.mark, "whoever reads this file can silence the dead man's switch", hint)
    return node.text
