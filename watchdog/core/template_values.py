"""What a rule's own templates can use: plain texts, numbers, lists and mappings, nothing live.

The names are part of the rule file's language; `docs/rules.md` lists them.
"""

from collections.abc import Mapping

from watchdog.core.labels import TASK, TASK_NAME
from watchdog.core.notifications import Notification
from watchdog.core.outcomes import Evidence
from watchdog.core.wording.verdicts import limit, verdict
from watchdog.core.wording.voice import Voice


def template_values(notification: Notification, evidence: Evidence, voice: Voice) -> Mapping[str, object]:
    """Return the values of one message.

    Numbers come twice: `value` to calculate with (a ratio: 1 = 100 %), `value_text` to show.
    """
    incident = notification.incident
    lasted = (incident.closed_at or notification.decided_at) - incident.since
    return {
        "rule": incident.rule,
        "task": incident.labels.get(TASK_NAME) or incident.labels.get(TASK, ""),
        "severity": incident.severity.value,
        "incident": incident.id,
        "kind": notification.kind.value,
        "reminder": notification.reminder,
        "labels": {**incident.labels, **incident.rule_labels},
        "since": voice.time(incident.since),
        "duration": voice.duration(lasted),
        "verdict": verdict(evidence, voice),
        "metric": evidence.metric,
        "value": evidence.value,
        "value_text": voice.value(evidence.value, evidence.unit, beside=evidence.threshold),
        "threshold": evidence.threshold,
        "limit": limit(evidence, voice),
        "affected": evidence.affected,
        "of": evidence.of,
        "count": incident.count,
        "detail": evidence.detail,
        "members": [
            {
                **member.labels,
                "value": member.value,
                "value_text": voice.value(member.value, evidence.unit),
            }
            for member in evidence.members
        ],
        "lines": [{"pod": line.pod, "text": line.text, "matched": line.matched} for line in evidence.lines],
    }
