"""What is known of the source kind `alaya` without asking it: its metrics and its options.

The options are a table, and values read from it. Imports no HTTP library.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from zoneinfo import ZoneInfo

from watchdog.core.ruleset import Secret, SourceSpec
from watchdog.ports import MetricInfo
from watchdog.sources.options import OptionReader, OptionType, SourceOption

PREFIXES = ("/v1", "/api/osm/v1")  # documented, then seen in use
AUTH_SCHEMES = ("bearer", "hmac", "plain")

ALAYA_METRICS = (
    MetricInfo(name="gpu", unit="ratio", per=("pod", "gpu")),
    MetricInfo(name="vram", unit="ratio", per=("pod", "gpu")),
    MetricInfo(name="cpu", unit="ratio"),
    MetricInfo(name="memory", unit="ratio"),
)

ALAYA_OPTIONS = (
    SourceOption(
        name="base_url",
        type=OptionType.TEXT,
        default="https://api.alayanew.com",
        doc="Where the API is, without its prefix.",
        ask=True,
    ),
    SourceOption(
        name="prefix",
        type=OptionType.TEXT,
        doc="What stands before /training, such as /v1. Left out: /v1, then /api/osm/v1 are tried.",
    ),
    SourceOption(
        name="auth",
        type=OptionType.CHOICE,
        default="bearer",
        choices=AUTH_SCHEMES,
        doc="bearer (api_key), hmac or plain (access_key and secret_key).",
        ask=True,
    ),
    SourceOption(name="api_key", type=OptionType.SECRET, doc="The Open API key, for bearer."),
    SourceOption(name="access_key", type=OptionType.SECRET, doc="The access key (AK), for hmac and plain."),
    SourceOption(name="secret_key", type=OptionType.SECRET, doc="The secret key (SK), for hmac and plain."),
    SourceOption(
        name="namespace",
        type=OptionType.TEXT,
        default="default",
        doc="Where logs are looked for when neither the watch entry nor the pod's data names a namespace.",
    ),
    SourceOption(
        name="timezone",
        type=OptionType.ZONE,
        default="Asia/Shanghai",
        doc="The zone of times that the API writes without one.",
    ),
    SourceOption(
        name="proxy", type=OptionType.SECRET, doc="http://host:port; the environment's is not used."
    ),
    SourceOption(
        name="timeout",
        type=OptionType.DURATION,
        default="30s",
        doc="How long one whole answer may take.",
    ),
    SourceOption(
        name="concurrency",
        type=OptionType.INTEGER,
        default="4",
        doc="How many requests may be on their way at once.",
    ),
    SourceOption(
        name="rate", type=OptionType.NUMBER, default="10", doc="Requests a second on average, at most."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlayaSettings:
    """The options of one `alaya` source, read. Secrets mask themselves."""

    name: str
    poll: timedelta
    base_url: str
    prefixes: tuple[str, ...]  # to try, in this order
    auth: str
    api_key: Secret
    access_key: Secret
    secret_key: Secret
    namespace: str
    zone: ZoneInfo
    proxy: Secret = field(default=Secret(""))
    timeout: timedelta = timedelta(seconds=30)
    concurrency: int = 4
    rate: float = 10.0


def read_settings(spec: SourceSpec) -> AlayaSettings:
    """Read a source's options; ValueError says which one cannot be used and why."""
    options = OptionReader(ALAYA_OPTIONS, spec.options)
    prefix = options.text("prefix").strip("/")
    return AlayaSettings(
        name=spec.name,
        poll=spec.poll,
        base_url=options.text("base_url"),
        prefixes=(f"/{prefix}",) if prefix else PREFIXES,
        auth=options.text("auth"),
        api_key=options.secret("api_key"),
        access_key=options.secret("access_key"),
        secret_key=options.secret("secret_key"),
        namespace=options.text("namespace"),
        zone=options.zone("timezone"),
        proxy=options.secret("proxy"),
        timeout=options.duration("timeout"),
        concurrency=options.integer("concurrency"),
        rate=options.number("rate"),
    )
