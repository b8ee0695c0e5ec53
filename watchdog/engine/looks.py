"""How each channel wants to be spoken to: language, zone and room, from the rule file."""

from zoneinfo import ZoneInfo

from watchdog.core.notifications import Message, Notification
from watchdog.core.rendering import ChannelLook, TemplateCompiler, render
from watchdog.core.ruleset import Ruleset
from watchdog.engine.relay import Render
from watchdog.ports import Notifier


def renderer(ruleset: Ruleset, compile_template: TemplateCompiler | None) -> Render:
    """Return what turns a notification into its channel's message."""
    specs = {spec.name: spec for spec in ruleset.channels}

    def rendered(notification: Notification, notifier: Notifier) -> Message:
        spec = specs.get(notification.channel)
        language = spec.language if spec else ""
        zone = spec.timezone if spec else ""
        look = ChannelLook(
            language=language or ruleset.language,
            timezone=ZoneInfo(zone or ruleset.timezone),
            limits=notifier.limits,
        )
        return render(notification, look, compile_template)

    return rendered
