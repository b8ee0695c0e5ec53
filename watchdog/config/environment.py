"""The environment and the `.env` file, read and checked by pydantic-settings.

The only module that imports it: a daemon that reads its settings in a process of its own (`cli.apart`)
does without its 10 MiB. Knows the fields' forms; what they mean is `settings`.
"""

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from watchdog.config.settings import DOTENV, ENVIRONMENT, PREFIX, LogFormat, LogLevel, Settings
from watchdog.errors import ConfigError, Problem


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class _Fields(BaseSettings):
    """The fields of `Settings`, with their forms."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=DOTENV,
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    rules: Path | None = None
    state: Path | None = None
    log_level: Annotated[LogLevel, BeforeValidator(_lower)] = LogLevel.INFO
    log_format: Annotated[LogFormat, BeforeValidator(_lower)] = LogFormat.TEXT
    secrets_dir: Path | None = None
    socket: Path | None = None
    debug: bool = False


def read() -> Settings:
    """Return what is set. Raises ConfigError; it names the variable, never its value."""
    try:
        return Settings(**dict(_Fields()))
    except ValidationError as error:
        raise ConfigError([_problem(detail) for detail in error.errors(include_input=False)]) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError([Problem(file=str(DOTENV), message=f"cannot be read: {reason}")]) from None


def _problem(detail: ErrorDetails) -> Problem:
    variable = PREFIX + "_".join(map(str, detail["loc"])).upper()
    message = detail["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return Problem(file=ENVIRONMENT, message=f"{variable}: expected {message}")
