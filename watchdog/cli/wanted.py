"""What `watchdog run` was told: goes from the process that read it to the one that does it."""

from dataclasses import dataclass
from pathlib import Path

from watchdog.config.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The words of `watchdog run`, and the settings of its environment."""

    file: Path | None
    state: Path | None
    settings: Settings
