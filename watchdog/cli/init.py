"""`watchdog init`: from a key to a tested channel, and a rule file that says so.

Puts the parts in order: cloud, tasks, channel, messages, files. Nothing is written before everything was
tried; an interruption leaves every file as it was.
"""

import os
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from watchdog.cli.output import Style, safe, standard_output

if TYPE_CHECKING:
    from watchdog.cli.asking import Asker
    from watchdog.cli.init_channel import ChannelDraft
    from watchdog.cli.init_cloud import Look, SourceDraft
    from watchdog.cli.init_tasks import Chosen
    from watchdog.config.secrets import SecretBook
    from watchdog.core.conditions.kinds import Capability
    from watchdog.ports import Clock
    from watchdog.sources.registry import SourceKind

DEFAULT = Path("rules.yaml")
_LANGUAGES = {"en": "English", "zh": "Chinese"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line says."""

    path: Path
    cloud: str = ""
    options: Sequence[str] = ()
    tasks: Sequence[str] = ()
    globs: Sequence[str] = ()
    channel: str = ""
    timezone: str = ""
    language: str = ""
    force: bool = False


def init(  # noqa: PLR0913 - each is an option of the command line
    file: Annotated[
        Path | None, typer.Argument(help="The rule file to write.", show_default="rules.yaml")
    ] = None,
    cloud: Annotated[str, typer.Option(help="The kind of source, such as alaya.", show_default=False)] = "",
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the source; no secret.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(metavar="ID", help="Watch this task, by its id.")] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Watch every task whose name fits, such as 'pretrain-*'."),
    ] = None,
    channel: Annotated[
        str,
        typer.Option(help="Whom to tell: env:NAME (a variable with a URL) or console.", show_default=False),
    ] = "",
    timezone: Annotated[
        str, typer.Option(help="Of the times in messages.", show_default="this machine's")
    ] = "",
    language: Annotated[
        str, typer.Option(help="Of the messages: en or zh.", show_default="this machine's")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: take what is given.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing rule file.")] = False,
) -> int:
    """Set everything up: asks for cloud, key, task and channel, tries each, then writes a rule file.

    The rules go into rules.yaml, secrets into .env (for your eyes only). A secret is never an option:
    it is typed hidden, or taken from the environment or .env (JOB_WATCHDOG_ALAYA_API_KEY).

    Exit code 0: written. 1: something does not work, nothing was written. 2: not enough was given.

    Examples: watchdog init; watchdog init --yes --name 'pretrain-*' --channel env:TEAM_CHAT_URL
    """
    from watchdog.cli.asking import Asker, NobodyToAskError, somebody_is_there
    from watchdog.cli.loading import read_settings
    from watchdog.cli.logs import configure
    from watchdog.config.secrets import SecretBook
    from watchdog.config.settings import LogLevel

    settings = read_settings()
    given = Given(
        path=file or settings.settings.rules or DEFAULT,
        cloud=cloud,
        options=option or (),
        tasks=task or (),
        globs=name or (),
        channel=channel,
        timezone=timezone,
        language=language,
        force=force,
    )
    book = SecretBook()
    configure(LogLevel.ERROR, settings.settings.log_format, book.redact)
    asker = Asker(output=standard_output(), interactive=somebody_is_there() and not yes)
    wizard = _Wizard(given=given, names=settings.names, book=book, asker=asker)
    try:
        wizard.run()
    except (KeyboardInterrupt, EOFError):
        asker.output.line()
        asker.output.line("Stopped; no file was changed.")
        raise typer.Abort from None
    except NobodyToAskError as error:
        raise typer.BadParameter(f"nobody to ask: {error}") from None
    return 0


@dataclass(slots=True, kw_only=True)
class _Wizard:
    """One conversation, or one run without any."""

    given: Given
    names: Mapping[str, str]
    book: "SecretBook"
    asker: "Asker"
    clock: "Clock" = field(init=False)

    def run(self) -> None:
        """Everything, in order."""
        from watchdog.clock import SystemClock

        self.clock = SystemClock()
        self._refuse_existing()
        self._check_words()
        if self.asker.interactive:
            self._introduce()
        draft = self._source()
        if not self.asker.interactive:
            self._refuse_gaps(draft)
            self._introduce()
        look = self._reach(draft)
        chosen = self._tasks(draft, look)
        channel = self._channel()
        timezone, language = self._messages()
        self._write(draft, look, chosen, channel, (timezone, language))

    # --- before anything is asked

    def _refuse_existing(self) -> None:
        from watchdog.errors import ConfigError, Problem

        path = self.given.path
        if path.exists() and not self.given.force:
            hint = "--force writes over it; another name writes beside it: watchdog init other.yaml"
            raise ConfigError([Problem(file=str(path), message="is there already", hint=hint)])
        if not Path(os.path.realpath(path)).parent.is_dir():
            raise ConfigError([Problem(file=str(path), message="its folder does not exist")])

    def _check_words(self) -> None:
        from watchdog.config.schema import Language

        channel = self.given.channel
        if channel and channel != "console" and not channel.startswith("env:"):
            raise typer.BadParameter(
                "--channel takes console or env:NAME (a URL is a secret: keep it in a variable)"
            )
        if self.given.timezone and (wrong := _wrong_zone(self.given.timezone)):
            raise typer.BadParameter(f"--timezone: {wrong}")
        if self.given.language and self.given.language not in list(Language):
            raise typer.BadParameter(f"--language takes {' or '.join(Language)}")

    def _refuse_gaps(self, draft: "SourceDraft") -> None:
        """Without anybody to ask: say everything that is missing, in one line."""
        from watchdog.sources.options import OptionType

        option, words = draft.complaint(self.clock)
        missing = []
        if option is not None and option.type is OptionType.SECRET and not draft.secret(option):
            missing.append(f"{draft.variable(option)} in the environment or in .env")
        elif words:
            raise typer.BadParameter(self.book.redact(words))
        self._refuse(missing)

    def _refuse(self, missing: list[str]) -> None:
        if not (self.given.tasks or self.given.globs):
            missing.append("--task ID or --name GLOB")
        if not self.given.channel:
            missing.append("--channel env:NAME or console")
        if missing:
            raise typer.BadParameter(f"nobody can be asked here; also needed: {'; '.join(missing)}")

    def _introduce(self) -> None:
        path = safe(str(self.given.path))
        stop = " Ctrl-C stops." if self.asker.interactive else ""
        self.asker.output.line(f"{path} is written when everything has been tried.{stop}")

    # --- the parts

    def _source(self) -> "SourceDraft":
        from watchdog.cli.init_cloud import SourceDraft

        draft = SourceDraft(kind=self._kind(), names=self.names, book=self.book)
        for assignment in self.given.options:
            if wrong := draft.give(assignment):
                raise typer.BadParameter(f"--option {wrong}")
        return draft

    def _kind(self) -> "SourceKind":
        from watchdog.cli.init_cloud import with_secrets
        from watchdog.config.suggest import did_you_mean
        from watchdog.sources.registry import SOURCE_KINDS

        names = list(SOURCE_KINDS)
        likely = with_secrets(SOURCE_KINDS.values(), self.names)
        name = self.given.cloud
        if not name and self.asker.interactive:
            name = self.asker.word("Which cloud?", names, (likely or names)[0])
        elif not name and len(likely) == 1:
            name = likely[0]
        if not name:
            self._refuse([f"--cloud {' or '.join(names)}, and its key in the environment or in .env"])
        if name not in SOURCE_KINDS:
            raise typer.BadParameter(f"--cloud {name}: {did_you_mean(name, names)}")
        return SOURCE_KINDS[name]

    def _reach(self, draft: "SourceDraft") -> "Look":
        from watchdog.cli.init_cloud import ask_options, complete, reach

        self.asker.title(f"1  Cloud: {draft.name}")
        if not self.given.options:
            ask_options(draft, self.asker)
        complete(draft, self.asker, self.clock)
        by_id_only = bool(self.given.tasks) and not self.given.globs
        look = reach(draft, self.asker, self.clock, list_needed=not by_id_only)
        if look.listing is not None:
            count = len(look.listing.tasks)
            some = "" if look.listing.complete else " or more"
            self.asker.good(f"the cloud answers: {count}{some} task{'s' * (count != 1)} in its list")
        return look

    def _tasks(self, draft: "SourceDraft", look: "Look") -> "Chosen":
        from watchdog.cli import init_tasks as tasks

        self.asker.title("2  What to watch")
        given = bool(self.given.tasks or self.given.globs)
        if look.listing is not None and self.asker.interactive and not given:
            tasks.show(look, self.asker, self.clock.now())
        while True:
            if given:
                chosen = tasks.by_options(self.given.tasks, self.given.globs, draft.name, look)
            else:
                chosen = tasks.ask(draft, look, self.asker)
            if self._readable(draft, look, chosen):
                return chosen
            given = False

    def _readable(self, draft: "SourceDraft", look: "Look", chosen: "Chosen") -> bool:
        """Try the chosen tasks' data, and let a person decide what to do about what cannot be read."""
        from watchdog.cli.init_tasks import TRIED, try_tasks, unfitting
        from watchdog.errors import ConfigError, Problem

        idle = unfitting(chosen)
        for glob in idle:
            self.asker.doubt(f"{glob} fits no task now; one that fits will be found when it begins")
        self.asker.output.stream.flush()
        trials = try_tasks(chosen, draft, look, self.clock)
        for task, trial in trials:
            tell = self.asker.doubt if trial.ok and trial.doubt else self.asker.good
            (tell if trial.ok else self.asker.bad)(f"{task.name}: {trial.words}")
        if len(chosen.tasks) > TRIED:
            self.asker.say(f"… and {len(chosen.tasks) - TRIED} more, not tried")
        failed = [task for task, trial in trials if not trial.ok]
        if failed and not chosen.listed and not self.asker.interactive:
            message = f"{failed[0].id} cannot be read, and no list says that it exists"
            raise ConfigError([Problem(file=f"source {draft.name}", message=message)])
        unsure = idle or any(not trial.ok or (trial.doubt and not chosen.listed) for _, trial in trials)
        if not unsure or not self.asker.interactive:
            return True
        return self.asker.yes("Watch it all the same?", default=chosen.listed and not idle)

    def _channel(self) -> "ChannelDraft":
        from watchdog.cli import init_channel as channels
        from watchdog.errors import ConfigError, Problem

        self.asker.title("3  Whom to tell")
        if not self.given.channel:
            return channels.ask(self.names, self.book, self.asker, self.clock)
        try:
            channel = channels.checked(channels.from_words(self.given.channel, self.names, self.book))
        except ValueError as error:
            raise typer.BadParameter(f"--channel {error}") from None
        for remark in channels.remarks(channel)[1]:
            self.asker.doubt(self.book.redact(remark))
        self.asker.output.stream.flush()
        result = channels.send(channel, self.clock)
        if not channels.tell(result, channel, self.book, self.asker):
            hint = channels.advice(channel, result)
            raise ConfigError([Problem(file="channel team", message="the test message failed", hint=hint)])
        return replace(channel, proven=True)

    def _messages(self) -> tuple[str, str]:
        from watchdog.cli.machine import machine_language, machine_zone
        from watchdog.config.schema import Language

        timezone, language = self.given.timezone, self.given.language
        self.asker.title("4  Messages")
        if not timezone:
            timezone = self.asker.text("Time zone of the times in them", machine_zone(), _wrong_zone)
        if not language:
            language = self.asker.word("Language", list(Language), machine_language())
        self.asker.good(f"in {_LANGUAGES[language]}, with times of {timezone}")
        return timezone, language

    # --- the files

    def _write(
        self,
        source: "SourceDraft",
        look: "Look",
        chosen: "Chosen",
        channel: "ChannelDraft",
        manner: tuple[str, str],
    ) -> None:
        from watchdog.cli import init_files as files
        from watchdog.config.settings import DOTENV

        draft = files.Draft(
            source=source.name,
            kind=source.kind.name,
            options=source.options,
            variables=[source.variable(option) for option in source.secrets],
            watch=chosen.entries,
            channel=channel.shown,
            timezone=manner[0],
            language=manner[1],
        )
        draft = replace(draft, rules=offered(draft.rules, source.kind, look.capabilities))
        secrets = {**source.typed, **({channel.variable: str(channel.url)} if channel.typed else {})}
        text = files.rule_file(draft, file=str(self.given.path))
        self._check(text, secrets)
        self._refuse_existing()
        if secrets:
            merged = files.merged_dotenv(files.read_text(DOTENV), secrets)
            files.write_whole(DOTENV, merged, files.SECRET_MODE)
        files.write_whole(self.given.path, text, files.OPEN_MODE)
        self._tell(draft.rules, secrets)
        if not channel.proven:
            self.asker.doubt("the channel has taken no message yet")
        self._next((*draft.variables, *filter(None, [channel.variable])), secrets)

    def _check(self, text: str, secrets: Mapping[str, str]) -> None:
        """Let the loader read what is about to be written; raises ConfigError, a bug of ours if ever."""
        from watchdog.cli.loading import knowledge
        from watchdog.config.build import loads

        loads(text, file=str(self.given.path), env={**self.names, **secrets}, knowledge=knowledge())

    def _tell(self, rules: Collection[str], secrets: Mapping[str, str]) -> None:
        """Say what was written."""
        self.asker.title("Written")
        self.asker.say(f"{safe(str(self.given.path))}: {len(rules)} rules; change what you like")
        if secrets:
            self.asker.say(f".env: {', '.join(secrets)}; only you can read it")

    def _next(self, variables: Sequence[str], secrets: Mapping[str, str]) -> None:
        """Say what comes next. `variables`: all that the file refers to; `secrets`: those now in .env."""
        from dotenv import dotenv_values

        from watchdog.cli.asking import INDENT
        from watchdog.config.settings import DOTENV

        out, path = self.asker.output, self.given.path
        for name, value in secrets.items():
            if os.environ.get(name, value) != value:
                self.asker.doubt(f"this shell has another {name}, and that wins over .env: unset {name}")
        kept = dotenv_values(DOTENV, interpolate=False)
        here = [name for name in variables if os.environ.get(name) and not kept.get(name)]
        if here:
            self.asker.doubt(f"set in this shell only, and needed wherever it runs: {', '.join(here)}")
        command, argument = _command(), "" if path == DEFAULT else f" {path}"
        self.asker.title("Next")
        steps = (
            (f"{command} once{argument}", "what would fire right now"),
            (f"{command} run{argument}", "watch until stopped"),
            (f"{command} status", "meanwhile, elsewhere: how everything stands"),
            (f"{command} check{argument} --probe", "after an edit: is all well, in the file and outside?"),
        )
        width = max(len(step) for step, _ in steps)
        for step, why in steps:
            out.line(f"{INDENT}{out.styled(safe(step.ljust(width)), Style.BOLD)}  {why}")
        self.asker.say("For months, run it as a service: docs/deploying.md shows how.")


def offered(
    names: Collection[str], kind: "SourceKind", capabilities: "frozenset[Capability]"
) -> tuple[str, ...]:
    """Return those rules that this kind of source can answer for."""
    from watchdog.cli import init_files as files
    from watchdog.cli.loading import knowledge
    from watchdog.config.build import loads

    text = "rules:\n" + files.rule_blocks(files.example(), names)
    rules = loads(text, file="rules.example.yaml", env={}, knowledge=knowledge()).ruleset.rules
    metrics = {info.name for info in kind.metrics}
    return tuple(
        rule.name
        for rule in rules
        if rule.name in names
        and capabilities.issuperset(rule.condition.uses)
        and (not metrics or getattr(rule.condition, "metric", "") in {"", *metrics})
    )


def _wrong_zone(name: str) -> str:
    from watchdog.config.zones import is_zone, nearest_zone

    if is_zone(name):
        return ""
    similar = nearest_zone(name)
    hint = f"did you mean {similar}?" if similar else "such as Asia/Shanghai or UTC"
    return f"{safe(name)} is not a time zone this machine knows ({hint})"


def _command() -> str:
    """Return how this program was called, short where that works."""
    called = sys.argv[0]
    found = shutil.which(Path(called).name)
    if found and Path(found).resolve() == Path(called).resolve():
        return Path(called).name
    return called
