"""The adapter to Apprise; it and `plugins` are all that imports it.

Owns how a channel's URL becomes a service that sends exactly what it is given, once, without cutting,
repeating, following redirects or sleeping; and that nothing of Apprise's own logging leaves it unmasked.
What became of a message is decided by `verdicts`, from what `recorder` saw.
"""

import copy
import logging
import re
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any

import apprise

from watchdog.core.notifications import Answer, ChannelLimits, DeliveryResult, Message
from watchdog.core.redaction import Redactor, hide_urls, url_secrets
from watchdog.core.ruleset import Secret
from watchdog.errors import ConfigError, Problem
from watchdog.notifiers import paging, recorder
from watchdog.notifiers.exchanges import Attempt
from watchdog.notifiers.limits import limits_for
from watchdog.notifiers.plugins import parsed, plugin_of
from watchdog.notifiers.threaded import DEADLINE, ThreadedNotifier
from watchdog.notifiers.verdicts import judge
from watchdog.ports import Clock

APP_NAME = "job-watchdog"
CONNECT_TIMEOUT = timedelta(seconds=10)
READ_TIMEOUT = timedelta(seconds=20)  # Apprise's 4 s turn slow answers into repeats
MAIL_TIMEOUT = timedelta(seconds=30)  # one value for connecting and each reply; greeting delays are common

_TRANSPORT_LOGGERS = ("oauthlib", "paho", "requests", "requests_oauthlib", "slixmpp", "smpplib", "urllib3")
_MAIL = frozenset({"mailto", "mailtos"})
_ENFORCED: Mapping[str, object] = {
    "emojis": False,
    "optional": False,
    "overflow": "upstream",
    "redirect": False,
    "retry": 0,
    "wait": 0.0,
}
_WHY = {
    "emojis": "texts are sent as they are",
    "format": "messages are plain text",
    "optional": "a failure is a failure",
    "overflow": "messages are cut to fit before they are sent",
    "redirect": "a redirect loses the message",
    "retry": "the outbox repeats, with growing pauses",
    "wait": "the outbox repeats, with growing pauses",
}
_SEPARATED_URLS = re.compile(r"[,;\s]\s*[a-zA-Z][a-zA-Z0-9]*://")
_KEPT_SERVICES = 64  # of a paging channel: one per incident


class AppriseNotifier(ThreadedNotifier):
    """One Apprise URL with one recipient. Raises ConfigError if the URL cannot be used.

    max_bytes: the user's own limit of the body. storage: see `build_notifier`.
    """

    def __init__(
        self,
        name: str,
        url: str,
        clock: Clock,
        *,
        deadline: timedelta = DEADLINE,
        max_bytes: int | None = None,
        storage: Path | None = None,
    ) -> None:
        hush_libraries()
        recorder.install()
        redactor = Redactor(url_secrets(url, wide=True))
        try:
            with _masked_by(redactor):
                service = _instantiate(_options(url), _asset(storage))
        except UnusableUrlError as error:
            raise ConfigError([Problem(file=f"channel {name}", message=redactor.mask(str(error)))]) from None
        self.schema = str(service.schema)
        secret, limits = Secret(url), _limits(service, max_bytes)
        super().__init__(
            name,
            limits,
            clock,
            lambda: _Sender(secret, storage, redactor, clock, merge_title=not limits.title),
            redactor=redactor,
            deadline=deadline,
        )

    def __repr__(self) -> str:
        return f"AppriseNotifier(name={self.name!r}, schema={self.schema!r})"


class UnusableUrlError(ValueError):
    """Apprise can make nothing of a URL; the text says why, perhaps with parts of it."""


def inspect_url(url: str) -> tuple[str, ...]:
    """Return what is wrong with a URL or will be different from what it says; sends nothing.

    A text that starts with "cannot be used" is an error, the others are warnings. No text shows a secret.
    """
    hush_libraries()
    redactor = Redactor(url_secrets(url, wide=True))
    try:
        with _masked_by(redactor):
            options = _options(url)
            given = dict(options.get("qsd") or {})
            service = _instantiate(options, _asset(None))
    except UnusableUrlError as error:
        return (redactor.mask(f"cannot be used: {error}"),)
    return tuple(map(redactor.mask, _remarks(service, given)))


def hush_libraries() -> None:
    """Keep Apprise's and its transports' own log lines out of ours: they hold tokens and messages.

    Apprise's warnings are still made, since results carry them, but masked before any handler sees them.
    """
    for name in _TRANSPORT_LOGGERS:
        _silence(logging.getLogger(name), logging.CRITICAL)
    logger = logging.getLogger("apprise")
    _silence(logger, logging.WARNING)
    if _masking not in logger.filters:
        logger.addFilter(_masking)


def _silence(logger: logging.Logger, level: int) -> None:
    logger.propagate = False
    logger.setLevel(level)
    if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
        logger.addHandler(logging.NullHandler())  # else the last-resort handler prints them


_redactor: ContextVar[Redactor] = ContextVar("watchdog_channel_redactor")


@contextmanager
def _masked_by(redactor: Redactor) -> Iterator[None]:
    """Mask with this what Apprise logs in this context."""
    token = _redactor.set(redactor)
    try:
        yield
    finally:
        _redactor.reset(token)


def _masking(record: logging.LogRecord) -> bool:
    """Mask what Apprise is about to log: some of its warnings quote URLs, tokens and all."""
    text = hide_urls(record.getMessage())
    redactor = _redactor.get(None)
    record.msg, record.args = redactor.mask(text) if redactor else text, None
    record.exc_info = record.exc_text = record.stack_info = None
    return True


class _Sender:
    """Sends messages of one channel; lives in the channel's thread and is never shared.

    A service with state (a log-in, a cached token) is made once; a paging service once per incident.
    """

    def __init__(
        self, url: Secret, storage: Path | None, redactor: Redactor, clock: Clock, *, merge_title: bool
    ) -> None:
        self._merge_title = merge_title
        self._options = _options(url)
        self._asset = _asset(storage)
        self._redactor = redactor
        self._clock = clock
        self._services: OrderedDict[str, apprise.NotifyBase] = OrderedDict()

    def __call__(self, message: Message) -> DeliveryResult:
        with _masked_by(self._redactor):
            return self._deliver(message)

    def _deliver(self, message: Message) -> DeliveryResult:
        service = self._service(message.dedup or message.incident)
        result = DeliveryResult(answer=Answer.UNKNOWN)
        for stage in paging.stages(str(service.schema), message):
            result = self._masked(judge(self._attempt(service, message, stage), self._clock.now()))
            if result.answer is not Answer.OK:
                break
        return result

    def _service(self, incident: str) -> apprise.NotifyBase:
        key_option = paging.KEYS.get(str(self._options["schema"]))
        key = incident if key_option else ""
        if key not in self._services:
            options = copy.deepcopy(self._options)
            if key_option and key:
                options |= {key_option: key, "action": "map"}
            self._services[key] = _instantiate(options, self._asset)
            if len(self._services) > _KEPT_SERVICES:
                self._services.popitem(last=False)
        self._services.move_to_end(key)
        return self._services[key]

    def _attempt(self, service: apprise.NotifyBase, message: Message, stage: str) -> Attempt:
        title, body = _texts(message, merge=self._merge_title)
        box = apprise.Apprise(asset=self._asset)
        box.add(service)
        with recorder.recording() as tape:
            try:
                outcome = box.notify(
                    body=body,
                    title=title,
                    notify_type=stage,
                    body_format=apprise.NotifyFormat.TEXT,
                    interpret_escapes=False,
                    log_level=logging.WARNING,
                )
                claimed = bool(outcome)
                note = "; ".join(entry.message for entry in outcome.logs())
            except Exception as error:  # noqa: BLE001 - 189 plugins may raise anything
                claimed, note = False, f"{type(error).__name__}: {error}"
        return Attempt(
            schema=str(service.schema),
            exchanges=tuple(tape.exchanges),
            claimed=claimed,
            observed=_is_observed(service),
            note=hide_urls(note)[:500],
        )

    def _masked(self, result: DeliveryResult) -> DeliveryResult:
        return DeliveryResult(
            answer=result.answer,
            detail=self._redactor.mask(result.detail),
            code=self._redactor.mask(result.code),
            retry_after=result.retry_after,
        )


def _options(url: str) -> dict[str, Any]:
    """Parse a URL into Apprise's constructor arguments, with what must hold put over what it says."""
    if _SEPARATED_URLS.search(url):
        raise UnusableUrlError("it holds several URLs; make a channel of each")
    try:
        options = parsed(url.strip())
    except Exception as error:  # noqa: BLE001 - plugins parse with code of their own
        raise UnusableUrlError(f"it cannot be parsed ({type(error).__name__})") from None
    if not options:
        raise UnusableUrlError(_why_unknown(url))
    mail = options["schema"] in _MAIL
    options.setdefault("cto", str((MAIL_TIMEOUT if mail else CONNECT_TIMEOUT).total_seconds()))
    options.setdefault("rto", str(READ_TIMEOUT.total_seconds()))
    options.pop("format", None)
    return {**options, **_ENFORCED}


def _why_unknown(url: str) -> str:
    schema, separator, _ = url.strip().partition("://")
    if not separator:
        return "it is not a URL"
    if plugin_of(schema.lower()) is not None:
        return f"it is not a complete {schema}:// URL"
    if schema.lower() in ("http", "https"):
        return (
            "it is a plain web address that no service recognises; "
            "write it in Apprise's form (dingtalk://token, jsons://host/path for an endpoint of your own)"
        )
    return f"there is no service {schema}://"


def _instantiate(options: dict[str, Any], asset: apprise.AppriseAsset) -> apprise.NotifyBase:
    schema = options["schema"]
    plugin = plugin_of(schema)
    if plugin is None:
        raise UnusableUrlError(f"there is no service {schema}://")
    if not plugin.enabled:
        raise UnusableUrlError(f"{schema}:// needs {_requirements(plugin)}")
    try:
        service = plugin(**{**options, "tag": set(), "asset": asset})
    except Exception as error:  # noqa: BLE001 - plugins raise TypeError, AttributeError and their own
        raise UnusableUrlError(_reason(error, schema)) from None
    if not service.enabled:  # some find out only now what the system lacks
        raise UnusableUrlError(f"{schema}:// is not available on this system")
    service.request_rate_per_sec = 0
    service.throttle = _do_not_wait  # type: ignore[method-assign]  # the outbox sets the pace, not a sleep
    return service


def _do_not_wait(*_: object, **__: object) -> None:
    return None


def _asset(storage: Path | None) -> apprise.AppriseAsset:
    return apprise.AppriseAsset(
        app_id=APP_NAME,
        app_desc=APP_NAME,
        app_url="",
        image_url_mask="",
        image_url_logo="",
        service_timeout=0,
        http_redirects=False,
        interpret_emojis=False,
        interpret_escapes=False,
        async_mode=False,
        storage_path=str(storage) if storage else None,
        storage_mode="flush" if storage else None,
    )


def _limits(service: apprise.NotifyBase, max_bytes: int | None) -> ChannelLimits:
    return limits_for(
        str(service.schema),
        body=int(service.body_maxlen),
        title=int(service.title_maxlen),
        markdown=service.resolve_format("text").value == "markdown",
        max_bytes=max_bytes,
    )


def _texts(message: Message, *, merge: bool) -> tuple[str, str]:
    """Return title and body as Apprise gets them; `merge`: the title is the body's first line."""
    title = _clean(" ".join(message.title.split()))
    body = _clean(message.body).strip("\n")
    if not body:  # Apprise sends no message without a body
        return "", title
    if not merge:
        return title, body
    return "", body if not title or body.startswith(title) else f"{title}\n{body}"


def _clean(text: str) -> str:
    """Replace what cannot be encoded, drop NUL, which several services refuse."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")


def _is_observed(service: apprise.NotifyBase) -> bool:
    """Whether a service sends through a library that the recorder watches."""
    modules = (sys.modules.get(owner.__module__) for owner in type(service).__mro__)
    return any(hasattr(module, "requests") or hasattr(module, "smtplib") for module in modules)


def _remarks(service: apprise.NotifyBase, given: Mapping[str, str]) -> Iterator[str]:
    schema = str(service.schema)
    if (recipients := len(service)) > 1:
        yield (
            f"cannot be used: it has {recipients} recipients: an answer is known only for all of them "
            "together, and a repeat reaches those who got it; make a channel of each"
        )
    for option, why in _WHY.items():
        if option in given and not _is_enforced(option, given[option]):
            yield f"option {option!r} is not used: {why}"
    if schema in paging.KEYS:
        for option in sorted(paging.OWN_OPTIONS & given.keys()):
            yield f"option {option!r} is not used: each incident is opened and closed under its own key"
    if schema == "pushdeer":
        yield "pushdeer:// sends over plain HTTP; use pushdeers://"


def _is_enforced(option: str, value: str) -> bool:
    if option == "format":
        return value.lower() == "text"
    wanted = _ENFORCED[option]
    if isinstance(wanted, str):
        return value.lower() == wanted
    try:
        return float(value) == 0
    except ValueError:
        return value.lower() in ("no", "false", "off")


def _requirements(plugin: type[apprise.NotifyBase]) -> str:
    required = plugin.requirements.get("packages_required") or ()
    packages = [required] if isinstance(required, str) else list(required)
    if packages:
        return f"the Python package {' and '.join(map(str, packages))}"
    details = str(plugin.requirements.get("details") or "").strip().rstrip(".")
    return f"something that this system does not have{': ' if details else ''}{details}"


def _reason(error: Exception, schema: str) -> str:
    """Say why a plugin refused, without the values it likes to quote in brackets."""
    if isinstance(error, apprise.exception.AppriseException) and str(error):
        return re.sub(r"\([^()]*\)|'[^']*'|\"[^\"]*\"", "…", hide_urls(str(error)))
    return f"it is not a complete {schema}:// URL"
