"""From a ruleset to its adapters, and from a changed rule file to parts that are ready to be put in force.

Knows every adapter through the registries. Builds; never starts, stops or changes what runs.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from watchdog.config.rulefile import Judged, RuleFile
from watchdog.core.rendering import TemplateCompiler
from watchdog.core.ruleset import ChannelSpec, Ruleset, Secret
from watchdog.engine.engine import Parts
from watchdog.engine.looks import renderer
from watchdog.engine.reloading import Prepared
from watchdog.errors import ConfigError, Problem
from watchdog.notifiers.registry import build_notifier
from watchdog.ports import Clock, Notifier, Source
from watchdog.sources.registry import SOURCE_KINDS

log = logging.getLogger(__name__)

CONSOLE = ChannelSpec(name="console", url=Secret("console://"))


def audible(ruleset: Ruleset) -> Ruleset:
    """Return the ruleset; without channels, messages go to the terminal."""
    return ruleset if ruleset.channels else replace(ruleset, channels=(CONSOLE,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The adapters of one ruleset."""

    sources: Mapping[str, Source]
    notifiers: Mapping[str, Notifier]


def build_outside(
    ruleset: Ruleset, clock: Clock, *, storage: Path | None = None, before: Parts | None = None
) -> Outside:
    """Build every source and channel. What `before` has in the same words stays the same object.

    Raises:
        ConfigError: a channel's URL cannot be used.
        ValueError: a source's options cannot be used; names the option.
    """
    sources = {spec.name: spec for spec in before.ruleset.sources} if before else {}
    channels = {spec.name: _address(spec) for spec in before.ruleset.channels} if before else {}
    return Outside(
        sources={
            spec.name: before.sources[spec.name]
            if before and sources.get(spec.name) == spec
            else SOURCE_KINDS[spec.kind].build(spec, clock)
            for spec in ruleset.sources
        },
        notifiers={
            spec.name: before.notifiers[spec.name]
            if before and channels.get(spec.name) == _address(spec)
            else build_notifier(spec, clock, storage=storage)
            for spec in ruleset.channels
        },
    )


def _address(spec: ChannelSpec) -> tuple[str, int | None]:
    """What of a channel its notifier is built from; the rest is about what it is told, and how."""
    return str(spec.url), spec.max_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFileLoader:
    """Looks into the rule file on behalf of a running engine; each look in a thread of its own."""

    file: RuleFile
    clock: Clock
    storage: Path
    compile_template: TemplateCompiler

    async def look(self, closely: bool) -> str:
        """Return the digest of what stands in the file."""
        return await asyncio.to_thread(self.file.look, closely=closely)

    async def prepare(self, before: Parts) -> Prepared:
        """Read, check and build everything; nothing that runs is touched."""
        return await asyncio.to_thread(self._prepare, before)

    def _prepare(self, before: Parts) -> Prepared:
        judged = self.file.judge()
        if judged.loaded is None:
            return Prepared(digest=judged.digest, parts=None, problems=judged.problems)
        ruleset = audible(judged.loaded.ruleset)
        try:
            outside = build_outside(ruleset, self.clock, storage=self.storage, before=before)
        except ConfigError as error:
            return Prepared(digest=judged.digest, parts=None, problems=error.problems)
        except ValueError as error:
            problem = Problem(file=str(self.file.path), message=self.file.secrets.redact(str(error)))
            return Prepared(digest=judged.digest, parts=None, problems=(problem,))
        parts = replace(
            before,
            ruleset=ruleset,
            sources=outside.sources,
            notifiers=outside.notifiers,
            render=renderer(ruleset, self.compile_template),
        )
        return Prepared(
            digest=judged.digest, parts=parts, problems=judged.problems, keep=partial(self.keep, judged)
        )

    async def keep(self, judged: Judged) -> str:
        """Remember a content as the last good one; returns why it could not be, "" if it is."""
        try:
            await asyncio.to_thread(self.file.keep, judged)
        except OSError as error:
            log.warning("the rule file could not be remembered as good reason=%s", error.strerror)
            return error.strerror or str(error)
        return ""
