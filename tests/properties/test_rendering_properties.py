"""Whatever an incident holds, a message comes out: it fits, names the incident and harms nobody."""

import re
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core.alerts import CloseReason, Incident, IncidentMember, NoticeKind
from watchdog.core.labels import Labels
from watchdog.core.notifications import ChannelLimits, LimitUnit, MessageKind, Notification
from watchdog.core.outcomes import Evidence, EvidenceLine, Member
from watchdog.core.rendering import ChannelLook, compose
from watchdog.core.rules import Severity
from watchdog.core.trimming import size
from watchdog.text.templates import compile_template

LIVE = re.compile(r"<[!@#/?A-Za-z]|[@＠](everyone|here|all|channel|room)|\]\(", re.IGNORECASE)

nasty = st.one_of(
    st.text(max_size=30),
    st.text(alphabet=st.characters(), max_size=10),
    st.sampled_from(
        [
            "<!channel>",
            "@all",
            "{value}",
            "{{ value }}",
            "{% for x in members %}{{ x.pod }}{% endfor %}",
            "{{ 1/0 }}",
            "{",
            "\x1b[31m\x00\u202e",
            "\ud800",
            "显" * 900,
            "a\nb\r\nc",
            "no line for",
            "max of avg over 1h",
            "share of 1h below 10%",
            "10m",
            "9" * 400 + "d",
            "2026-09-17T10:00:00+08:00",
        ]
    ),
)
numbers = st.none() | st.floats() | st.integers(-(10**30), 10**30).map(float)
moments = st.one_of(
    st.datetimes(timezones=st.just(UTC)),
    st.just(datetime(2026, 9, 17, tzinfo=UTC)),
    st.just(datetime.min.replace(tzinfo=UTC)),
)
labels = st.dictionaries(st.sampled_from(["pod", "gpu", "node", "task", "task_name", "x"]), nasty).map(Labels)
lines = st.builds(
    EvidenceLine,
    time_ns=st.integers(-(2**63), 2**63 - 1),
    pod=nasty,
    text=nasty,
    matched=st.booleans(),
    repeated=st.integers(-1, 10**9),
)
evidences = st.builds(
    Evidence,
    metric=nasty,
    summary=nasty,
    value=numbers,
    threshold=numbers,
    above=st.booleans(),
    unit=st.sampled_from(["ratio", "", "s", "@all"]),
    members=st.lists(st.builds(Member, labels=labels, value=numbers), max_size=12).map(tuple),
    affected=st.integers(-1, 100),
    of=st.integers(-1, 100),
    covered=st.integers(-1, 100),
    spark=st.lists(numbers, max_size=60).map(tuple),
    spark_span=st.timedeltas(),
    lines=st.lists(lines, max_size=50).map(tuple),
    more_lines=st.integers(-1, 10**6),
    detail=nasty,
)
incidents = st.builds(
    Incident,
    id=st.just("7k3mq2xz"),
    rule=nasty,
    labels=labels,
    severity=st.sampled_from(Severity),
    event=st.booleans(),
    opened_at=moments,
    since=moments,
    updated_at=moments,
    closed_at=st.none() | moments,
    close_reason=st.none() | st.sampled_from(CloseReason),
    close_note=nasty,
    members=st.lists(st.builds(IncidentMember, labels=labels, since=moments, value=numbers), max_size=20).map(
        tuple
    ),
    count=st.integers(-1, 10**6),
    late=st.booleans(),
    first=evidences,
    latest=evidences,
    description=nasty,
    annotations=st.dictionaries(nasty, nasty, max_size=3),
    repeat=st.timedeltas(min_value=timedelta()),
    notice=st.none() | st.sampled_from(NoticeKind),
    params=st.dictionaries(nasty | st.sampled_from(["since", "from", "detail", "task"]), nasty, max_size=4),
)
notifications = st.builds(
    Notification,
    channel=st.just("team"),
    kind=st.sampled_from(MessageKind),
    incident=incidents,
    decided_at=moments,
    reminder=st.integers(0, 9),
    maybe_repeat=st.booleans(),
    not_stored=st.booleans(),
    half_size=st.booleans(),
)
looks = st.builds(
    ChannelLook,
    language=st.sampled_from(["en", "zh", "xx"]),
    timezone=st.sampled_from([UTC, ZoneInfo("Asia/Shanghai"), timezone(timedelta(hours=-23))]),
    limits=st.builds(
        ChannelLimits,
        body=st.integers(0, 3000),
        title=st.integers(0, 300),
        unit=st.sampled_from(LimitUnit),
    ),
)


@settings(max_examples=100, deadline=None)
@given(notifications, looks)
def test_any_notification_becomes_a_message_that_fits_and_harms_nobody(
    notification: Notification, look: ChannelLook
) -> None:
    message = compose(notification, look, compile_template)

    room = look.limits.body // 2 if notification.half_size else look.limits.body
    assert size(message.body, look.limits.unit) <= room
    assert size(message.title, look.limits.unit) <= look.limits.title
    for text in (message.title, message.body):
        assert text.encode("utf-8").decode("utf-8") == text
        assert not LIVE.search(text)
        assert "\x1b" not in text
        assert "\x00" not in text
    if room >= 120:
        assert "7k3mq2xz" in message.body
