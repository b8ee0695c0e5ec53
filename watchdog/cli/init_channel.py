"""The third part of `watchdog init`: a channel that has really taken a message.

Owns the examples, the variable that holds the URL, and what to do about a refusal. Never shows a URL that
was typed.
"""

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlsplit

from watchdog.cli.asking import INDENT, Asker
from watchdog.cli.init_files import CHANNEL
from watchdog.config.secrets import SecretBook, missing_hint
from watchdog.core.notifications import Answer, DeliveryResult
from watchdog.core.ruleset import ChannelSpec, Secret
from watchdog.errors import ConfigError, Problem
from watchdog.notifiers.registry import CONSOLE_SCHEMA, build_notifier, inspect_channel, is_console
from watchdog.notifiers.sample import TEST_MESSAGE
from watchdog.ports import Clock

VARIABLE = "TEAM_CHAT_URL"
FROM_ENVIRONMENT = "env:"
CONSOLE_URL = f"{CONSOLE_SCHEMA}://"
EXAMPLES = (
    ("Slack", "https://hooks.slack.com/services/…"),
    ("DingTalk", "https://oapi.dingtalk.com/…, or if the robot signs dingtalk://SECRET@TOKEN"),
    ("Feishu, Lark", "https://open.feishu.cn/…, https://open.larksuite.com/…"),
    ("WeCom", "https://qyapi.weixin.qq.com/…"),
    ("ntfy", "ntfy://TOPIC, or on a server of yours ntfys://ntfy.example.com/TOPIC"),
    ("mail", "mailtos://you:PASSWORD@example.com?smtp=smtp.example.com&to=team@example.com"),
    ("JSON", "jsons://hooks.example.com/path gets a POST with JSON; json:// without TLS"),
    ("terminal", "console"),
    ("a variable", "env:NAME, if the URL is in the environment or in .env already"),
)
_UNUSABLE = "cannot be used"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OUTCOMES = {
    Answer.RETRY: "not delivered",
    Answer.PERMANENT: "refused",
    Answer.TOO_LONG: "refused as too long",
    Answer.UNKNOWN: "sent, without an answer that says whether it arrived",
}
_KEEP, _OTHER, _AGAIN = "keep", "other", "again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelDraft:
    """One channel. `variable`: what holds its URL, "" for the terminal; `typed`: it belongs into .env;
    `proven`: it has taken a message.
    """

    url: Secret
    variable: str = ""
    typed: bool = False
    proven: bool = False

    @property
    def shown(self) -> str:
        """The URL as the rule file writes it."""
        return f"${{{self.variable}}}" if self.variable else str(self.url)


def show_examples(asker: Asker) -> None:
    """Write what a channel's URL looks like, per service."""
    width = max(len(name) for name, _ in EXAMPLES)
    for name, url in EXAMPLES:
        asker.output.line(f"{INDENT}{name:<{width}}  {url}")
    asker.say(
        "Paste a robot's web address as its chat shows it. More than a hundred other services work too: "
        "github.com/caronc/apprise lists them."
    )


def from_words(words: str, names: Mapping[str, str], book: SecretBook) -> ChannelDraft:
    """Return the channel that an answer or `--channel` means; a URL itself is only taken where it is hidden.

    Raises:
        ValueError: it means none; the text holds no secret.
    """
    if words.strip().lower() == CONSOLE_SCHEMA or is_console(words):
        return ChannelDraft(url=Secret(CONSOLE_URL))
    if words.startswith(FROM_ENVIRONMENT):
        name = words.removeprefix(FROM_ENVIRONMENT)
        if not _NAME.match(name):
            raise ValueError("env: takes the name of a variable, such as env:TEAM_CHAT_URL")
        url = names.get(name, "")
        if not url:
            raise ValueError(f"{name} is not set ({missing_hint(name, names)})")
        book.add(url)
        return ChannelDraft(url=Secret(url), variable=name)
    url = from_web_address(words)
    book.add(words)
    book.add(url)
    return ChannelDraft(url=Secret(url), variable=_free_variable(names, url), typed=True)


def from_web_address(text: str) -> str:
    """Return the channel's URL for a robot's web address that Apprise does not know as such."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    if parts.scheme in ("http", "https") and parts.hostname == "oapi.dingtalk.com":
        token = parse_qs(parts.query).get("access_token", [""])[0]
        return f"dingtalk://{token}" if token else text
    if parts.scheme in ("http", "https") and parts.hostname == "open.feishu.cn":
        token = parts.path.rstrip("/").rpartition("/")[2]
        return f"feishu://{token}" if token and "/hook/" in parts.path else text
    return text


def ask(names: Mapping[str, str], book: SecretBook, asker: Asker, clock: Clock) -> ChannelDraft:
    """Ask for a channel and send it a message, until one takes it or a person keeps it all the same."""
    channel = _offered(names, book, asker) or _asked(names, book, asker)
    while True:
        result = send(channel, clock)
        if tell(result, channel, book, asker):
            return replace(channel, proven=True)
        asker.say(advice(channel, result))
        words = (_OTHER, _AGAIN, _KEEP)
        chosen = asker.word("Another URL, the same again, or keep it as it is?", words, _OTHER)
        if chosen == _KEEP:
            return channel
        if chosen == _OTHER:
            channel = _asked(names, book, asker)


def remarks(channel: ChannelDraft) -> tuple[list[str], list[str]]:
    """Return what is wrong with a channel's URL, and what will be different from what it says."""
    found = inspect_channel(str(channel.url))
    return (
        [one for one in found if one.startswith(_UNUSABLE)],
        [one for one in found if not one.startswith(_UNUSABLE)],
    )


def send(channel: ChannelDraft, clock: Clock) -> DeliveryResult:
    """Send the test message and return what the service really answered."""

    async def once() -> DeliveryResult:
        notifier = build_notifier(ChannelSpec(name=CHANNEL, url=channel.url), clock)
        try:
            return await notifier.send(TEST_MESSAGE)
        finally:
            await notifier.close()

    return asyncio.run(once())


def tell(result: DeliveryResult, channel: ChannelDraft, book: SecretBook, asker: Asker) -> bool:
    """Write what the service answered; returns whether it took the message."""
    said = book.redact(result.detail or result.code)
    where = str(channel.url).partition("://")[0]
    if result.answer is Answer.OK:
        asker.good(f"test message sent: {where} answered {said or 'ok'}")
        return True
    asker.bad(f"test message {_OUTCOMES[result.answer]}{': ' if said else ''}{said}")
    return False


def advice(channel: ChannelDraft, result: DeliveryResult) -> str:
    """Return what to do about a refusal."""
    schema = str(channel.url).partition("://")[0].lower()
    if result.answer is Answer.UNKNOWN:
        return "Nobody can say whether it arrived: look there. If it did, keep the URL."
    if schema == "dingtalk":
        return (
            "A DingTalk robot that signs needs dingtalk://Secret@Token; one with a keyword needs the "
            'keyword "watchdog"; one with an address list needs this machine\'s address.'
        )
    if schema in ("mailto", "mailtos"):
        return (
            "Check host, user and password (many providers want an app password), and write special "
            "characters in them percent-encoded (@ is %40). For port 465 add :465 to the host, and &mode=ssl."
        )
    if result.answer is Answer.RETRY:
        return "It may work later, or this machine cannot reach it (firewall, DNS, proxy)."
    return "The service refuses it: is the URL whole, and does the robot or webhook still exist?"


def checked(channel: ChannelDraft) -> ChannelDraft:
    """Return the channel; raises ConfigError if its URL cannot be used."""
    wrong, _ = remarks(channel)
    if wrong:
        raise ConfigError([Problem(file=f"channel {CHANNEL}", message=one) for one in wrong])
    return channel


def _offered(names: Mapping[str, str], book: SecretBook, asker: Asker) -> ChannelDraft | None:
    """Offer the URL that is there already."""
    if not names.get(VARIABLE):
        return None
    channel = from_words(FROM_ENVIRONMENT + VARIABLE, names, book)
    if remarks(channel)[0]:
        return None
    where = str(channel.url).partition("://")[0]
    return channel if asker.yes(f"{VARIABLE} is set already ({where}://…). Use it?", default=True) else None


def _asked(names: Mapping[str, str], book: SecretBook, asker: Asker) -> ChannelDraft:
    def check(words: str) -> str:
        try:
            channel = from_words(words, names, book)
        except ValueError as error:
            return str(error)
        return book.redact("; ".join(remarks(channel)[0]))

    show_examples(asker)
    channel = from_words(asker.hidden("Its URL", check), names, book)
    for remark in remarks(channel)[1]:
        asker.doubt(book.redact(remark))
    asker.say(
        f"{str(channel.url).partition('://')[0]}://…, {len(channel.url)} characters. Sending a message …"
    )
    asker.output.stream.flush()
    return channel


def _free_variable(names: Mapping[str, str], url: str) -> str:
    """Return a variable that holds nothing else: what others set is not written over."""
    number, name = 1, VARIABLE
    while names.get(name, url) != url or os.environ.get(name, url) != url:
        number += 1
        name = f"{VARIABLE}_{number}"
    return name
