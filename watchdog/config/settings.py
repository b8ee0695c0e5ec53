"""The program's own settings, from the environment or a `.env` file in the working directory.

All begin with JOB_WATCHDOG_. Owns their names and defaults, the report of names that mean nothing, and the
places where a rule file's `${NAME}` is looked up.
"""

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path

from watchdog.config.secrets import Names, dotenv_values
from watchdog.config.suggest import near
from watchdog.errors import Problem

PREFIX = "JOB_WATCHDOG_"
DOTENV = Path(".env")
ENVIRONMENT = "environment"  # stands for the file in problems
RULE_FILES = (Path("rules.yaml"), Path("/etc/job-watchdog/rules.yaml"))
SOCKET_NAME = "control.sock"
SERVICE_SOCKET = Path("/run/job-watchdog") / SOCKET_NAME  # the service's; verbs lack its environment
CONTAINER_SECRETS = Path("/run/secrets")


class LogLevel(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How log lines look."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting of the program."""

    rules: Path | None = None
    state: Path | None = None
    log_level: LogLevel = LogLevel.INFO
    log_format: LogFormat = LogFormat.TEXT
    secrets_dir: Path | None = None
    socket: Path | None = None
    debug: bool = False

    @property
    def rules_path(self) -> Path:
        """The rule file: as set, else ./rules.yaml if it exists, else the one in /etc."""
        return self.rules or next((path for path in RULE_FILES if path.exists()), RULE_FILES[-1])

    @property
    def state_path(self) -> Path:
        """The state file: as set, else in systemd's $STATE_DIRECTORY, else in the user's state folder."""
        if self.state is not None:
            return self.state
        given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
        if given:
            return Path(given) / "state.db"
        home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return Path(home) / "job-watchdog" / "state.db"

    def socket_path(self, state: Path) -> Path:
        """The control socket: as set, else in systemd's $RUNTIME_DIRECTORY, else beside the state file."""
        if self.socket is not None:
            return self.socket
        given = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
        return Path(given) / SOCKET_NAME if given else state.absolute().with_name(SOCKET_NAME)

    def socket_places(self, state: Path) -> tuple[Path, ...]:
        """Where a verb looks for a daemon's control socket, the likeliest place first."""
        return tuple(dict.fromkeys((self.socket_path(state), SERVICE_SOCKET)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings, where `${NAME}` is looked up, and what to warn of."""

    settings: Settings
    names: Names
    warnings: tuple[Problem, ...] = ()


def read_environment() -> Settings:
    """Read what is set, from the environment and the `.env` file; raises ConfigError."""
    from watchdog.config.environment import read

    _hush()
    return read()


def load_settings(secret_options: Iterable[str] = (), given: Settings | None = None) -> LoadedSettings:
    """Read the settings.

    Args:
        secret_options: options of sources that come as JOB_WATCHDOG_<SOURCE>_<OPTION>.
        given: what `read_environment` has returned already.

    Raises:
        ConfigError: a value cannot be used; names the variable, never its value.
    """
    _hush()
    settings = given or read_environment()
    strangers = (*_unreadable_lines(), *_strangers(secret_options))
    return LoadedSettings(settings=settings, names=names_now(settings), warnings=strangers)


def _hush() -> None:
    """Keep dotenv from complaining of a line, once for each reader."""
    logging.getLogger("dotenv").setLevel(logging.ERROR)


def names_now(settings: Settings) -> Names:
    """Return where `${NAME}` is looked up, with the `.env` file as it is now."""
    return Names(os.environ, dotenv=[DOTENV], directories=_secrets_directories(settings))


def _secrets_directories(settings: Settings) -> list[Path]:
    systemd = os.environ.get("CREDENTIALS_DIRECTORY")
    places = (settings.secrets_dir, Path(systemd) if systemd else None, CONTAINER_SECRETS)
    return [place for place in places if place is not None]


def _unreadable_lines() -> tuple[Problem, ...]:
    """Warn of lines of the `.env` file that set nothing: what they were to set would be missed silently."""
    if not DOTENV.is_file():
        return ()
    from dotenv.parser import parse_stream

    with DOTENV.open(encoding="utf-8") as file:
        lines = [binding.original.line for binding in parse_stream(file) if binding.error]
    message, hint = "this line is no NAME=value and is ignored", "is a quote not closed?"
    return tuple(
        Problem(file=str(DOTENV), line=line, column=1, message=message, hint=hint, warning=True)
        for line in lines
    )


def _strangers(secret_options: Iterable[str]) -> tuple[Problem, ...]:
    """Warn of variables that carry our prefix and mean nothing: a misspelt one would be silently ignored."""
    known = [PREFIX + field.name.upper() for field in fields(Settings)]
    endings = tuple(f"_{option.upper()}" for option in secret_options)
    written = {**dotenv_values(DOTENV), **os.environ}
    problems = []
    for name in sorted(written):
        if not name.startswith(PREFIX) or name in known or name.endswith(endings):
            continue
        similar = near(name, known)
        hint = f"did you mean {similar}?" if similar else f"known: {', '.join(known)}"
        problems.append(Problem(file=ENVIRONMENT, message=f"{name} means nothing", hint=hint, warning=True))
    return tuple(problems)
