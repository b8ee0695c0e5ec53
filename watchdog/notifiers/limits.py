"""How much text each service takes, in the unit in which it counts.

Pure. Bodies are capped at 8 KB everywhere: nobody reads more in a chat, and format conversion of long
texts is slow. Title 0: the service has no title, or counts it with the body; it becomes the first line.
"""

from collections.abc import Mapping

from watchdog.core.notifications import ChannelLimits, LimitUnit

CAP = 8192  # bytes
CONSOLE = ChannelLimits(body=1_000_000, title=1000, unit=LimitUnit.BYTES)

_SMALL_TITLE = 100
_CONVERSION = 0.75  # text made into Markdown grows: each `_` and `*` is escaped


def _bytes(body: int, title: int = 0) -> ChannelLimits:
    return ChannelLimits(body=min(body, CAP), title=title, unit=LimitUnit.BYTES)


def _characters(body: int, title: int = 0) -> ChannelLimits:
    return ChannelLimits(body=body, title=title, unit=LimitUnit.CHARACTERS)


_MAIL = _bytes(32_768, 200)
_WEB = _bytes(32_768, 200)
_LIMITS: Mapping[str, ChannelLimits] = {
    "wecombot": _bytes(2048),
    "wechat": _bytes(2048),
    "dingtalk": _bytes(20_000, 200),
    "feishu": _bytes(30_000, 200),
    "lark": _bytes(30_000, 200),
    "schan": _characters(2700, 32),
    "pushplus": _characters(2700, 100),
    "wecom": _characters(2700, 100),  # another name of pushplus
    "pushdeer": _bytes(32_768, 200),
    "pushdeers": _bytes(32_768, 200),
    "bark": _bytes(3000, 200),  # the push service behind it takes 4 KB in all
    "barks": _bytes(3000, 200),
    "ntfy": _bytes(4096, 200),
    "ntfys": _bytes(4096, 200),
    "gotify": _bytes(32_768, 200),
    "gotifys": _bytes(32_768, 200),
    "discord": _characters(2000),
    "tgram": _characters(4000),  # of 4096 UTF-16 units: some symbols count twice
    "slack": _bytes(35_000, 200),
    "mmost": _characters(4000),
    "mmosts": _characters(4000),
    "matrix": _bytes(32_768, 200),
    "matrixs": _bytes(32_768, 200),
    "gchat": _characters(int(4000 * _CONVERSION)),
    "workflows": _characters(int(1000 * _CONVERSION), 200),
    "workflow": _characters(int(1000 * _CONVERSION), 200),
    "rocket": _characters(int(1000 * _CONVERSION)),
    "rockets": _characters(int(1000 * _CONVERSION)),
    "pagerduty": _characters(1024),
    "opsgenie": _bytes(15_000, 130),
    "jira": _bytes(15_000, 130),
    "syslog": _bytes(2000),
    "rsyslog": _bytes(2000),
    "mailto": _MAIL,
    "mailtos": _MAIL,
    "json": _WEB,
    "jsons": _WEB,
    "form": _WEB,
    "forms": _WEB,
    "xml": _WEB,
    "xmls": _WEB,
}


def limits_for(
    schema: str, *, body: int = 4000, title: int = 0, markdown: bool = False, max_bytes: int | None = None
) -> ChannelLimits:
    """Return a service's limits.

    body, title: what Apprise's plugin claims, in characters; used for services not known here.
    markdown: the plugin makes Markdown of the text. max_bytes: the user's own limit of the body.
    """
    limits = _LIMITS.get(schema) or _claimed(body, title, markdown)
    if max_bytes is None:
        return limits
    return ChannelLimits(body=min(limits.body, max_bytes), title=limits.title, unit=LimitUnit.BYTES)


def _claimed(body: int, title: int, markdown: bool) -> ChannelLimits:
    if body >= CAP:
        return _bytes(CAP, min(title, 200))
    kept_title = min(title, _SMALL_TITLE)
    room = int(body * _CONVERSION) if markdown else body
    # Some services count the title with the body and their plugins do not say so.
    return _characters(max(1, room - kept_title), kept_title)
