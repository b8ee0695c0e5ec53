"""The first half of `watchdog init`: a source that answers, asked for by its own table of options.

Knows no kind of source by name: what is missing, the adapter itself says when it is built. Secrets are
read hidden or taken from where the rule file would find them, and never repeated.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from watchdog.cli.asking import Asker
from watchdog.cli.output import safe
from watchdog.config.secrets import SecretBook
from watchdog.config.settings import PREFIX
from watchdog.config.suggest import did_you_mean
from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import Failure
from watchdog.core.ruleset import Secret, SourceSpec
from watchdog.errors import ConfigError, Problem, SourceError
from watchdog.ports import Clock, TaskListing
from watchdog.sources.options import OptionType, SourceOption
from watchdog.sources.registry import SourceKind

_KEY = frozenset(
    {
        Failure.KEY_MISSING,
        Failure.KEY_UNKNOWN,
        Failure.KEY_EXPIRED,
        Failure.KEY_DISABLED,
        Failure.SIGNATURE,
    }
)
_ADVICE: Mapping[Failure, str] = {
    **dict.fromkeys(_KEY, "The cloud refuses this key. Copy it anew from the console of the cloud, whole."),
    Failure.CLOCK_SKEW: "Set this machine's clock (timedatectl, chrony), then try again.",
    Failure.FORBIDDEN: "The key is known but may not do this. A task's id may work without the list.",
    Failure.NOT_JSON: (
        "A web page came where data should be: base_url may be wrong, a login page or proxy may stand "
        "between, or the list is closed to this key. A task's id may work without the list."
    ),
    Failure.NOT_FOUND: "There is no such call at this address: is base_url right?",
    Failure.UNREACHABLE: "Is base_url right, and can this machine reach it (firewall, DNS, proxy)?",
    Failure.TIMEOUT: "Is base_url right, and can this machine reach it (firewall, proxy)? Try once more.",
    Failure.THROTTLED: "Wait a minute, then try again.",
    Failure.SERVER_ERROR: "The cloud has trouble of its own. Try again, or go on with a task's id.",
}
_AGAIN, _KEYS, _SETTINGS, _BY_ID = "again", "key", "settings", "id"


@dataclass(slots=True, kw_only=True)
class SourceDraft:
    """A source in the making. `names`: where a rule file's secrets are looked up."""

    kind: SourceKind
    names: Mapping[str, str]
    book: SecretBook
    options: dict[str, str] = field(default_factory=dict)  # as the file will show them
    typed: dict[str, str] = field(default_factory=dict)  # variable → secret, for .env

    @property
    def name(self) -> str:
        """What the file calls the source."""
        return self.kind.name

    def variable(self, option: SourceOption) -> str:
        """Where a secret option is looked up."""
        return f"{PREFIX}{self.name}_{option.name}".upper().replace("-", "_")

    def secret(self, option: SourceOption) -> str:
        """A secret's value, "" if it is not known yet."""
        variable = self.variable(option)
        return self.typed.get(variable) or self.names.get(variable, "")

    @property
    def secrets(self) -> tuple[SourceOption, ...]:
        """The secret options that have a value."""
        return tuple(one for one in self.kind.options if one.type is OptionType.SECRET and self.secret(one))

    def spec(self) -> SourceSpec:
        """The source as the rule file will give it."""
        secrets = {option.name: Secret(self.secret(option)) for option in self.secrets}
        for value in secrets.values():
            self.book.add(str(value))
        return SourceSpec(name=self.name, kind=self.kind.name, options={**self.options, **secrets})

    def complaint(self, clock: Clock) -> tuple[SourceOption | None, str]:
        """Why the adapter cannot be built yet: (the option it names, its words); (None, "") if it can."""
        try:
            self.kind.build(self.spec(), clock)
        except ValueError as error:
            words = str(error)
            first = words.partition(" ")[0].rstrip(":")
            named = next((option for option in self.kind.options if option.name == first), None)
            return named, words
        return None, ""

    def give(self, assignment: str) -> str:
        """Take `name=value` from the command line; returns what is wrong with it."""
        name, separator, value = assignment.partition("=")
        option = next((one for one in self.kind.options if one.name == name), None)
        if not separator or not value:
            return f"{name}: write NAME=VALUE"
        if option is None:
            hint = did_you_mean(name, [one.name for one in self.kind.options])
            return f"{self.kind.name} has no option {name!r}" + (f" ({hint})" if hint else "")
        if option.type is OptionType.SECRET:
            return f"{name} is a secret: set {self.variable(option)} in the environment or in .env instead"
        self.options[name] = value
        return ""


def with_secrets(kinds: Iterable[SourceKind], names: Mapping[str, str]) -> list[str]:
    """Return the names of those kinds of which a secret is set already: likely the one that is meant."""
    drafts = (SourceDraft(kind=kind, names=names, book=SecretBook()) for kind in kinds)
    return [draft.name for draft in drafts if draft.secrets]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the cloud answered: a list, or why there is none."""

    listing: TaskListing | None
    error: SourceError | None
    capabilities: frozenset[Capability]


def ask_options(draft: SourceDraft, asker: Asker) -> None:
    """Ask for the options that every account may have differently; Enter keeps what holds now."""
    for option in draft.kind.options:
        if not asker.interactive or not (option.ask or option.name in draft.options):
            continue
        held = draft.options.get(option.name) or option.default
        answer = _ask_one(option, held, asker)
        if answer == option.default:
            draft.options.pop(option.name, None)
        else:
            draft.options[option.name] = answer


def complete(draft: SourceDraft, asker: Asker, clock: Clock) -> None:
    """Ask for whatever the adapter says is missing or wrong, until it can be built.

    Raises:
        ConfigError: it cannot be built, for a reason that no answer would change.
    """
    while True:
        option, words = draft.complaint(clock)
        if not words:
            break
        if option is None or not asker.interactive:
            raise ConfigError([Problem(file=f"source {draft.name}", message=draft.book.redact(words))])
        if option.type is OptionType.SECRET:
            if draft.secret(option):
                asker.bad(draft.book.redact(words))
            ask_secret(draft, option, asker)
            continue
        if option.name in draft.options:
            asker.bad(draft.book.redact(words))
        draft.options[option.name] = _ask_one(option, option.default, asker)
    for option in draft.secrets:
        if draft.variable(option) not in draft.typed:
            asker.say(f"{option.name}: taken from {draft.variable(option)}")


def ask_secret(draft: SourceDraft, option: SourceOption, asker: Asker) -> None:
    """Ask for one secret, hidden."""
    asker.say(option.doc)
    value = asker.hidden(option.name)
    draft.book.add(value)
    draft.typed[draft.variable(option)] = value


def reach(draft: SourceDraft, asker: Asker, clock: Clock, *, list_needed: bool) -> Look:
    """Ask the cloud for its list until it answers, or until a person goes on without it.

    Raises:
        ConfigError: it does not answer, nobody can be asked, and `list_needed`.
    """
    while True:
        asker.output.stream.flush()
        look = asyncio.run(look_at(draft, clock))
        if look.error is None:
            return look
        if Capability.LIST not in look.capabilities and not list_needed:
            return look
        words = draft.book.redact(str(look.error))
        if not asker.interactive:
            if list_needed:
                message = f"the task list cannot be read: {words}"
                hint = _ADVICE.get(look.error.failure, "")
                raise ConfigError([Problem(file=f"source {draft.name}", message=message, hint=hint)])
            asker.doubt(f"the task list cannot be read: {words}")
            return look
        asker.bad(f"the task list cannot be read: {words}")
        if advice := _ADVICE.get(look.error.failure):
            asker.say(advice)
        if Capability.LIST not in look.capabilities or not _mend(draft, look.error.failure, asker, clock):
            return look


async def look_at(draft: SourceDraft, clock: Clock) -> Look:
    """Ask the cloud once for its list."""
    source = draft.kind.build(draft.spec(), clock)
    try:
        if Capability.LIST not in source.capabilities:
            raise SourceError(Failure.UNSUPPORTED, "this kind of source has none", retryable=False)
        return Look(listing=await source.list_tasks(), error=None, capabilities=source.capabilities)
    except SourceError as error:
        return Look(listing=None, error=error, capabilities=source.capabilities)
    finally:
        await source.close()


def _mend(draft: SourceDraft, failure: Failure, asker: Asker, clock: Clock) -> bool:
    """Let a person change something; False: they go on without the list."""
    likely = _KEYS if failure in _KEY else _AGAIN
    if failure in (Failure.NOT_JSON, Failure.FORBIDDEN):
        likely = _BY_ID
    words = [_AGAIN, _SETTINGS, _BY_ID]
    if draft.secrets:
        words.insert(1, _KEYS)
    chosen = asker.word("Try again, another key, other settings, or go on with an id?", words, likely)
    if chosen == _SETTINGS:
        ask_options(draft, asker)
        complete(draft, asker, clock)
    if chosen == _KEYS:
        for option in draft.secrets:
            ask_secret(draft, option, asker)
        complete(draft, asker, clock)
    return chosen != _BY_ID


def _ask_one(option: SourceOption, default: str, asker: Asker) -> str:
    asker.say(safe(option.doc))
    if option.choices:
        return asker.word(option.name, option.choices, default)
    return asker.text(option.name, default)
