"""Everything one rule file says, as core values: what `config` makes and the engine runs.

`options` of sources and channels are opaque here; only their adapter reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time, timedelta

from watchdog.core.labels import Labels
from watchdog.core.rules import Rule, Severity


class Secret(str):
    """A text that must not be shown: its repr is masked. `str(secret)` is the value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'****'"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """One entry of `sources:`."""

    name: str
    kind: str
    options: Mapping[str, object] = field(default_factory=dict)
    poll: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEntry:
    """One entry of `watch:`: a task by id, or tasks by a name glob found through the list."""

    source: str
    id: str = ""
    name: str = ""  # with an id: how people call it; alone: a glob
    namespace: str = ""
    labels: Labels = field(default_factory=Labels)

    @property
    def key(self) -> str:
        """The stable task key of an entry with an id."""
        return f"{self.source}/{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSpec:
    """One entry of `channels:`: one Apprise URL with one recipient."""

    name: str
    url: Secret
    min_severity: Severity = Severity.INFO
    language: str = ""  # "" = the default
    timezone: str = ""
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSpec:
    """Where the health pages and metrics answer. `host`: an IP address, or localhost."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatSpec:
    """How others learn that the watchdog itself is alive. `daily_note` is in the ruleset's zone."""

    url: Secret = Secret("")  # noqa: RUF009 - a text, immutable; "" = none is called
    every: timedelta = timedelta(minutes=5)
    daily_note: time | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruleset:
    """The whole file, valid."""

    sources: tuple[SourceSpec, ...]
    watch: tuple[WatchEntry, ...]
    channels: tuple[ChannelSpec, ...]
    rules: tuple[Rule, ...]
    interval: timedelta = timedelta(seconds=60)
    timezone: str = "UTC"
    language: str = "en"
    forget_after: timedelta = timedelta(hours=24)  # without data for this long, a member is not expected
    http: HttpSpec | None = None
    heartbeat: HeartbeatSpec | None = None
    auto_reload: bool = False  # the file is loaded anew when it changes, without being told to
    digest: str = ""  # of the file's content
