"""What is known of the source kind `siflow` without asking it: its metrics and its options.

The options are a table, and values read from it. Starts no process.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import PurePath
from zoneinfo import ZoneInfo

from watchdog.core.ruleset import Secret, SourceSpec
from watchdog.sources.options import OptionReader, OptionType, SourceOption
from watchdog.sources.siflow_catalogue import Detail, documented

SIFLOW_METRICS = documented()

SIFLOW_OPTIONS = (
    SourceOption(
        name="python",
        type=OptionType.TEXT,
        doc="The interpreter of the environment that the vendor's SDK is installed in, such as "
        "/opt/siflow/bin/python.",
    ),
    SourceOption(
        name="region",
        type=OptionType.TEXT,
        default="cn-beijing",
        doc="The region, as the SDK names it.",
        ask=True,
    ),
    SourceOption(
        name="cluster",
        type=OptionType.TEXT,
        default="auriga",
        doc="The cluster of that region. Another cluster is another source.",
        ask=True,
    ),
    SourceOption(name="access_key_id", type=OptionType.SECRET, doc="The access key's id."),
    SourceOption(name="access_key_secret", type=OptionType.SECRET, doc="The access key's secret."),
    SourceOption(
        name="detail",
        type=OptionType.CHOICE,
        default="gpu",
        choices=tuple(Detail),
        doc="How finely is asked: gpu (every card; a call a pod), pod (a call a metric) or task (the mean of "
        "the task; one call).",
    ),
    SourceOption(
        name="timezone",
        type=OptionType.ZONE,
        default="Asia/Shanghai",
        doc="The zone of times that the cloud writes, and is asked with, without one.",
    ),
    SourceOption(
        name="owners",
        type=OptionType.TEXT,
        doc="Whose tasks the task list is to show, separated by commas. Left out: what the key shows.",
    ),
    SourceOption(
        name="resource_pools",
        type=OptionType.TEXT,
        doc="Which pools' tasks the task list is to show, separated by commas.",
    ),
    SourceOption(
        name="log_lines",
        type=OptionType.INTEGER,
        default="2000",
        doc="How many of the newest log lines are asked for at each poll; more lines than that between two "
        "polls cannot be read, and are told as unread.",
    ),
    SourceOption(
        name="proxy", type=OptionType.SECRET, doc="http://host:port; the environment's is not used."
    ),
    SourceOption(
        name="sdk_path",
        type=OptionType.TEXT,
        doc="A folder that holds the package `siflow`, where it is not installed in that interpreter.",
    ),
    SourceOption(
        name="timeout",
        type=OptionType.DURATION,
        default="30s",
        doc="How long one call may take inside the SDK; a third longer, and its process is killed.",
    ),
    SourceOption(
        name="concurrency",
        type=OptionType.INTEGER,
        default="4",
        doc="How many calls may be on their way at once.",
    ),
    SourceOption(
        name="rate", type=OptionType.NUMBER, default="10", doc="Calls a second on average, at most."
    ),
)
LEAST_GRACE = timedelta(milliseconds=500)
MOST_GRACE = timedelta(seconds=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiflowSettings:
    """The options of one `siflow` source, read. Secrets mask themselves."""

    name: str
    poll: timedelta
    python: str
    region: str
    cluster: str
    access_key_id: Secret
    access_key_secret: Secret
    detail: Detail
    zone: ZoneInfo
    owners: tuple[str, ...] = ()
    resource_pools: tuple[str, ...] = ()
    log_lines: int = 2000
    proxy: Secret = field(default=Secret(""))
    sdk_path: str = ""
    timeout: timedelta = timedelta(seconds=30)
    concurrency: int = 4
    rate: float = 10.0

    @property
    def deadline(self) -> timedelta:
        """When a call is given up and its process killed: after the SDK's own timeout had its chance."""
        return self.timeout + min(max(self.timeout / 3, LEAST_GRACE), MOST_GRACE)


def read_settings(spec: SourceSpec) -> SiflowSettings:
    """Read a source's options; ValueError says which one cannot be used and why."""
    options = OptionReader(SIFLOW_OPTIONS, spec.options)
    python = options.text("python")
    if not python:
        raise ValueError(
            "python is missing: the interpreter that has the vendor's SDK, such as /opt/siflow/bin/python"
        )
    if not PurePath(python).is_absolute():
        raise ValueError("python must be a whole path, such as /opt/siflow/bin/python")
    keys = options.secret("access_key_id"), options.secret("access_key_secret")
    for name, key in zip(("access_key_id", "access_key_secret"), keys, strict=True):
        if not key:
            raise ValueError(f"{name} is missing: set JOB_WATCHDOG_SIFLOW_{name.upper()}")
    return SiflowSettings(
        name=spec.name,
        poll=spec.poll,
        python=python,
        region=options.text("region"),
        cluster=options.text("cluster"),
        access_key_id=keys[0],
        access_key_secret=keys[1],
        detail=Detail(options.text("detail")),
        zone=options.zone("timezone"),
        owners=_listed(options.text("owners")),
        resource_pools=_listed(options.text("resource_pools")),
        log_lines=options.integer("log_lines"),
        proxy=options.secret("proxy"),
        sdk_path=options.text("sdk_path"),
        timeout=options.duration("timeout"),
        concurrency=options.integer("concurrency"),
        rate=options.number("rate"),
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
