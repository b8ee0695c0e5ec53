"""The rule file of a daemon, and the last content of it that was good.

Owns the snapshot beside the state: the text as written, so that `${NAME}` stays unexpanded, readable by the
daemon's user only. Parses with what it is handed; knows nothing of a running engine.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from watchdog.config.build import Loaded
from watchdog.config.secrets import SecretBook
from watchdog.config.yaml_nodes import MAX_BYTES
from watchdog.errors import ConfigError, Problem

Parse = Callable[[bytes, str], Loaded]
"""From content, and what problems call the file, to a ruleset; raises ConfigError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What one look at the file gave. digest: "" = it cannot be read. loaded: None = it cannot be used.

    problems: all errors and warnings. kept: when the content was kept as good, if it is a snapshot.
    """

    digest: str = ""
    content: bytes = b""
    loaded: Loaded | None = None
    problems: tuple[Problem, ...] = ()
    kept: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a daemon starts with. digest: of what stands in the file.

    rejected: what is wrong with it, if it is not what is used. used: the file's content, or the snapshot's.
    """

    loaded: Loaded
    digest: str
    used: Judged
    rejected: tuple[Problem, ...] = ()


class RuleFile:
    """One rule file. `secrets` knows the values of every content that was ever used."""

    def __init__(self, path: Path, state: Path, parse: Parse) -> None:
        """Make nothing and read nothing. `state`: the state file, which the snapshot lies beside."""
        self.path = path
        self.snapshot = snapshot_path(path, state)
        self.secrets = SecretBook()
        self._parse = parse
        self._looked: tuple[tuple[int, ...], str] | None = None

    def look(self, *, closely: bool = False) -> str:
        """Return the digest of what stands in the file; "" if it cannot be read.

        Reads it only if its size, time or place on the disk differ from the last look, or `closely`.
        """
        try:
            found = self.path.stat()
            place = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            if closely or self._looked is None or self._looked[0] != place:
                self._looked = (place, digest_of(self._read(self.path)))
        except OSError:
            self._looked = None
            return ""
        return self._looked[1]

    def judge(self) -> Judged:
        """Read and check the file. Never raises."""
        try:
            content = self._read(self.path)
        except OSError as error:
            problem = Problem(file=str(self.path), message=f"cannot be read: {error.strerror or error}")
            return Judged(problems=(problem,))
        return self._judged(content, None)

    def keep(self, judged: Judged) -> None:
        """Remember a content as the last good one.

        Raises:
            OSError: the disk does not take it.
        """
        if self.snapshot.exists() and self.snapshot.read_bytes() == judged.content:
            return
        descriptor, name = tempfile.mkstemp(dir=self.snapshot.parent, prefix=f".{self.snapshot.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:  # mkstemp: readable by us only
                file.write(judged.content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.snapshot)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise

    def last_good(self) -> Judged | None:
        """Return what was kept, checked anew; None if there is nothing."""
        try:
            content = self._read(self.snapshot)
            kept = datetime.fromtimestamp(self.snapshot.stat().st_mtime, UTC)
        except OSError:
            return None
        return self._judged(content, kept)

    def start(self) -> Start:
        """Return what to start with: the file, or what was last good of it.

        Raises:
            ConfigError: neither can be used; with the problems of the file.
        """
        judged = self.judge()
        if judged.loaded is not None:
            return Start(loaded=judged.loaded, digest=judged.digest, used=judged)
        kept = self.last_good()
        if kept is None:
            raise ConfigError(judged.problems)
        if kept.loaded is None:
            also = Problem(
                file=str(self.snapshot), message="what was last good of it cannot be used any more"
            )
            raise ConfigError((*judged.problems, also))
        errors = tuple(problem for problem in judged.problems if not problem.warning)
        return Start(loaded=kept.loaded, digest=judged.digest, used=kept, rejected=errors)

    def _judged(self, content: bytes, kept: datetime | None) -> Judged:
        name = str(self.path if kept is None else self.snapshot)
        try:
            loaded = self._parse(content, name)
        except ConfigError as error:
            return Judged(digest=digest_of(content), content=content, problems=error.problems, kept=kept)
        self.secrets.absorb(loaded.secrets)
        return Judged(
            digest=digest_of(content), content=content, loaded=loaded, problems=loaded.warnings, kept=kept
        )

    @staticmethod
    def _read(path: Path) -> bytes:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)


def digest_of(content: bytes) -> str:
    """Return a digest that two contents share only if they are the same."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def snapshot_path(path: Path, state: Path) -> Path:
    """Return where the last good content lies: one file for each (state file, rule file)."""
    mark = digest_of(str(path.absolute()).encode("utf-8", "surrogateescape"))[:12]
    return state.absolute().with_name(f"{state.name}.rules-{mark}.yaml")
