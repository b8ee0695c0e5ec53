"""The shape of a language: one field for each thing that can be said, the same in every language.

A text is a `str.format` template; the braces name what is filled in. A language that lacks a field
cannot be built, and a test compares the braces.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from watchdog.core.alerts import CloseReason, NoticeKind
from watchdog.core.rules import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """A countable thing."""

    one: str
    many: str

    def of(self, count: int) -> str:
        """Return the form that goes with a number."""
        return self.one if count == 1 else self.many


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeText:
    """How one kind of notice is worded while it lasts and when it is over.

    The first text of `title` and `over_title` whose braces can all be filled is taken; of `body`
    and `over_body` every one whose braces can be filled.
    """

    title: tuple[str, ...]
    body: tuple[str, ...]
    over_title: tuple[str, ...] = ()
    over_body: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """One language."""

    # Words
    severity: Mapping[Severity, str]
    metrics: Mapping[str, str]
    aggregates: Mapping[str, str]
    acrosses: Mapping[str, str]
    middles: Mapping[str, str]
    nouns: Mapping[str, Noun]  # gpu, pod, node, member, line, event
    failures: Mapping[str, str]
    capabilities: Mapping[str, str]
    statuses: Mapping[str, str]
    durations: Mapping[str, str]  # d h min s ms, each with {count}
    phrases: tuple[tuple[str, str], ...]  # what other parts of core say in English: pattern, text

    # Small forms
    percent: str
    listed: str  # between the items of a list
    compared: str
    no_value: str
    quantity: str
    above: str
    below: str
    no_longer: str
    not_so: str
    not_clear: str
    limit_is: str

    # Titles
    title: str
    title_update_state: str
    title_update_event: str
    title_escalation: str
    title_reminder: str
    title_recovered: str
    title_closed: str
    title_combined: str
    title_combined_closed: str
    title_notice: str

    # What it is about
    verdict_window: str
    verdict_slope: str
    verdict_unmeasured: str
    verdict_newest: str
    verdict_other: str
    verdict_plain: str
    verdict_across: str
    verdict_share: str
    verdict_peers: str
    verdict_count: str
    verdict_absent: str
    newest_data: str
    never_absent: str
    verdict_silent: str
    newest_line: str
    never_silent: str
    verdict_status: str
    verdict_entered: str
    verdict_stepped: str
    was: str
    was_affected: str
    events: str
    lines: str
    counted_of: str
    counted: str
    affected: str
    data_from: str
    since: str
    since_now: str
    happened: str
    happened_again: str
    late: str
    update_state: str
    update_event: str
    flapping: str

    # How it ended
    recovered: str
    recovered_note: str
    closed: str
    closed_note: str
    reasons: Mapping[CloseReason, str]
    not_known: str
    fired: str

    # Evidence
    members_head: str
    members_plain: str
    members_more: str
    member: str
    pod_group: str
    spark: str
    log_head: str
    events_head: str
    log_shown: str
    events_shown: str
    repeated: str
    in_pods: str
    template_failed: str

    # The foot
    next_state: str
    next_state_silent: str
    next_event: str
    incident: str
    may_repeat: str
    not_stored: str

    notices: Mapping[NoticeKind, NoticeText]
    notice_over: str
    notice_closed: str
    notice_happened: str
    notice_since: str
    notice_param: str
    notice_update: str
    notice_reminder: str
    notice_next: str
