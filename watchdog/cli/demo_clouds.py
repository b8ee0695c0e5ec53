"""The stand-in clouds of the demo: how each is started, and what a source needs in order to ask it."""

import re
import sys
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from watchdog.demo.play import Play
    from watchdog.ports import Clock

KEY = "demo-key"
VARIABLES: Mapping[str, str] = {
    "JOB_WATCHDOG_ALAYA_API_KEY": KEY,
    "JOB_WATCHDOG_SIFLOW_ACCESS_KEY_ID": KEY,
    "JOB_WATCHDOG_SIFLOW_ACCESS_KEY_SECRET": KEY,
}
_SWITCHED_OFF = re.compile(r"^ +enabled: false *(#.*)?\n", re.MULTILINE)


class CloudName(StrEnum):
    """Which cloud the demo plays on."""

    ALAYA = "alaya"
    SIFLOW = "siflow"


class Server(Protocol):
    """What both stand-ins are."""

    def counts(self) -> Counter[str]:
        """Calls by capability."""
        ...

    @property
    def url(self) -> str:
        """Where it listens."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class DemoCloud:
    """`async with` its `server`; then `options` are what a source needs."""

    def __init__(self, name: CloudName, play: "Play", clock: "Clock") -> None:
        from watchdog.demo.cloud import StandInCloud
        from watchdog.demo.cloud_auth import Keys
        from watchdog.demo.siflow_cloud import StandInSiflow

        keys = Keys(api_key=KEY, access_key=KEY, secret_key=KEY)
        self.name = name
        self.server: Server
        if name is CloudName.SIFLOW:
            self.server = StandInSiflow(play, clock=clock, keys=keys)
        else:
            self.server = StandInCloud(play, clock=clock, keys=keys)

    @property
    def options(self) -> Mapping[str, object]:
        """The options that lead a source here."""
        from watchdog.core.ruleset import Secret
        from watchdog.demo.siflow_cloud import SDK_PATH, region_of

        if self.name is CloudName.ALAYA:
            return {"base_url": self.server.url, "api_key": Secret(KEY)}
        return {
            "python": sys.executable,
            "sdk_path": str(SDK_PATH),
            "region": region_of(self.server.url),
            "cluster": "auriga",
            "timeout": "5s",  # of real time, which is ten minutes of the demo's
            "access_key_id": Secret(KEY),
            "access_key_secret": Secret(KEY),
        }

    @property
    def introduction(self) -> str:
        """How it is asked, in a sentence."""
        if self.name is CloudName.ALAYA:
            return f"A stand-in cloud answers on {self.server.url}; the daemon polls it like the real one."
        return (
            f"A stand-in cloud answers on {self.server.url}; the daemon polls it as it would the real one, "
            "through a stand-in SDK in a process of its own."
        )


def rules_for(name: CloudName, text: str) -> str:
    """Return the rule file as the demo plays it: with the rules that are off because the other cloud lacks
    their metrics."""
    return _SWITCHED_OFF.sub("", text) if name is CloudName.SIFLOW else text
