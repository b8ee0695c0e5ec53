"""Paging services: what makes one incident of theirs out of one of ours.

Pure. Each message of an incident carries the same key, so that repeats do not page again and the end of
the incident closes the page; Apprise would make the key from the text, which changes.
"""

from collections.abc import Mapping

from watchdog.core.notifications import Message, MessageKind
from watchdog.core.rules import Severity

# schema → the option that carries the key
KEYS: Mapping[str, str] = {
    "pagerduty": "dedup",
    "goalert": "dedup",
    "goalerts": "dedup",
    "ilert": "dedup",
    "incidentio": "dedup",
    "firehydrant": "dedup",
    "squadcast": "dedup",
    "opsimate": "dedup",
    "opsimates": "dedup",
    "signl4": "external_id",
    "pagertree": "thirdparty",
    "splunk": "entity_id",
    "victorops": "entity_id",
    "opsgenie": "alias",
    "jira": "alias",
}
OWN_OPTIONS = frozenset(
    {"action", "alias", "dedup", "entity", "entity_id", "external_id", "thirdparty", "tid"}
)

OPENS = "failure"
WARNS = "warning"
CLOSES = "success"
INFORMS = "info"


def stages(schema: str, message: Message) -> tuple[str, ...]:
    """Return the Apprise notification types to send, in order; usually one.

    A page that says both that something happened and that it is over is opened, then closed: a
    service drops the end of what it never knew.
    """
    opening = OPENS if message.severity is Severity.CRITICAL else WARNS
    if schema not in KEYS:
        closing = message.kind is MessageKind.CLOSED
        # Not "success": the end of an incident does not always mean that things are well.
        return (INFORMS if closing or message.severity is Severity.INFO else opening,)
    if message.kind is MessageKind.CLOSED:
        return (CLOSES,)
    if message.kind is MessageKind.COMBINED:
        return (opening, CLOSES)
    return (opening,)  # never "info": to some services that is a note on a page that does not exist
