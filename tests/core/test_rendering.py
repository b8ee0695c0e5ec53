"""Messages as an on-call person reads them: what stands in them, in which order, in both languages."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest

from watchdog.core.alerts import CloseReason, Incident, IncidentMember, NoticeKind
from watchdog.core.durations import to_ns
from watchdog.core.labels import Labels
from watchdog.core.notifications import ChannelLimits, LimitUnit, Message, MessageKind, Notification
from watchdog.core.outcomes import Evidence, EvidenceLine, Member
from watchdog.core.protocols import Template
from watchdog.core.rendering import ChannelLook, render
from watchdog.core.rules import Severity

T = datetime(2026, 9, 17, 2, 5, tzinfo=UTC)  # 10:05 in Shanghai
TASK = Labels.of(source="alaya", task="alaya/1", task_name="llama-70b")
LOOK = ChannelLook(timezone=ZoneInfo("Asia/Shanghai"))
CHINESE = replace(LOOK, language="zh")

IDLE = Evidence(
    metric="gpu",
    summary="avg over 1h",
    value=0.041,
    threshold=0.1,
    unit="ratio",
    members=tuple(Member(labels=Labels.of(pod="worker-3", gpu=str(n)), value=0.001 * n) for n in range(10)),
    affected=56,
    of=64,
    covered=64,
    spark=(0.97, 0.95, 0.5, None, 0.04, 0.04),
    spark_span=timedelta(hours=2),
)


def incident(**changes: object) -> Incident:
    plain = Incident(
        id="7k3mq2xz",
        rule="gpu-idle",
        labels=TASK,
        severity=Severity.CRITICAL,
        event=False,
        opened_at=T + timedelta(hours=1),
        since=T,
        updated_at=T,
        first=IDLE,
        latest=IDLE,
        members=(IncidentMember(labels=TASK, since=T, value=0.041),),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def message(
    about: Incident,
    kind: MessageKind = MessageKind.FIRST,
    look: ChannelLook = LOOK,
    after: timedelta = timedelta(hours=1),
    **changes: object,
) -> Message:
    plain = Notification(channel="team", kind=kind, incident=about, decided_at=T + after)
    return render(replace(plain, **changes), look)  # type: ignore[arg-type]


def closed(reason: CloseReason = CloseReason.RECOVERED, **changes: object) -> Incident:
    end = {"closed_at": T + timedelta(minutes=85), "close_reason": reason}
    return incident(**{**end, **changes})


def line(
    second: int, text: str, pod: str = "worker-3", matched: bool = True, repeated: int = 1
) -> EvidenceLine:
    return EvidenceLine(
        time_ns=to_ns(T) + second * 10**9, pod=pod, text=text, matched=matched, repeated=repeated
    )


def event(*lines: EvidenceLine, **changes: object) -> Incident:
    seen = Evidence(summary="ERROR", lines=lines)
    plain = incident(
        rule="error-lines",
        severity=Severity.WARNING,
        event=True,
        members=(),
        first=seen,
        latest=seen,
        count=1,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_a_first_message_says_what_how_many_since_when_and_what_comes_next() -> None:
    told = message(incident(description="Probably hung."))

    assert told.title == "CRITICAL · gpu-idle · llama-70b"
    assert told.body.split("\n") == [
        "GPU average 4.1 % over 1 h, below 10 %",
        "Affected: 56 of 64 GPUs",
        "Since 10:05 Asia/Shanghai, for 1 h",
        "",
        "Worst first:",
        "  worker-3 gpu 0  0 %",
        *(f"  worker-3 gpu {n}  0.{n} %" for n in range(1, 10)),
        "… and 46 more",
        "██▅·▁▁  min 4 %, last 4 %, max 97 %, over 2 h",
        "",
        "Probably hung.",
        "",
        "Will remind in 4 h while it lasts, and say when it is over.",
        "Incident 7k3mq2xz",
    ]
    assert (told.incident, told.dedup, told.severity) == ("7k3mq2xz", "7k3mq2xz", Severity.CRITICAL)


def test_the_same_in_chinese() -> None:
    told = message(incident(), look=CHINESE)

    assert told.title == "严重 · gpu-idle · llama-70b"
    lines = told.body.split("\n")
    assert lines[:3] == [
        "GPU 利用率 1 小时平均 4.1%，低于 10%",
        "受影响：56/64 个 GPU",
        "开始于 10:05（Asia/Shanghai），已持续 1 小时",
    ]
    assert lines[-2:] == ["如仍持续，4 小时后再次提醒；结束时会通知。", "事件编号 7k3mq2xz"]


def test_many_gpus_are_told_pod_by_pod() -> None:
    members = tuple(
        IncidentMember(labels=Labels.of(pod=f"worker-{n // 8}", gpu=str(n % 8)), since=T, value=n / 1000)
        for n in range(56)
    )

    body = message(incident(members=members)).body

    assert "  worker-0  8 GPUs, 0 % to 0.7 %\n  worker-1  8 GPUs, 0.8 % to 1.5 %" in body
    assert "more" not in body


@pytest.mark.parametrize(
    ("kind", "number", "english", "chinese"),
    [
        (
            MessageKind.ESCALATION,
            0,
            "Now CRITICAL · gpu-idle · llama-70b",
            "升级为严重 · gpu-idle · llama-70b",
        ),
        (
            MessageKind.REMINDER,
            2,
            "CRITICAL · gpu-idle · llama-70b · reminder 2",
            "严重 · gpu-idle · llama-70b · 第 2 次提醒",
        ),
        (
            MessageKind.UPDATE,
            0,
            "CRITICAL · gpu-idle · llama-70b · more affected",
            "严重 · gpu-idle · llama-70b · 影响扩大",
        ),
    ],
)
def test_titles_say_what_kind_of_message_it_is(
    kind: MessageKind, number: int, english: str, chinese: str
) -> None:
    assert message(incident(), kind, reminder=number).title == english
    assert message(incident(), kind, CHINESE, reminder=number).title == chinese


def test_recovered_says_how_long_and_how_it_is_now_and_was() -> None:
    good = replace(IDLE, value=0.953)

    told = message(closed(latest=good), MessageKind.CLOSED, after=timedelta(minutes=85))

    assert told.title == "Recovered · gpu-idle · llama-70b (was CRITICAL)"
    assert told.body.split("\n")[:3] == [
        "It recovered at 11:30 Asia/Shanghai, after 1 h 25 min (since 10:05).",
        "GPU average 95.3 % over 1 h, no longer below 10 %",
        "When it fired: GPU average 4.1 % over 1 h, below 10 % (56 of 64 GPUs)",
    ]
    assert "remind" not in told.body


@pytest.mark.parametrize(
    ("reason", "words", "worte"),
    [
        (CloseReason.DATA_GONE, "data gone", "不再有数据"),
        (CloseReason.TASK_ENDED, "task ended", "任务已结束"),
        (CloseReason.RULE_REMOVED, "rule removed", "规则已删除"),
        (CloseReason.UNWATCHED, "no longer watched", "任务不再监控"),
        (CloseReason.FORGOTTEN, "not seen for a long time", "长时间未再出现"),
    ],
)
def test_any_other_end_is_not_called_a_recovery(reason: CloseReason, words: str, worte: str) -> None:
    told = message(closed(reason), MessageKind.CLOSED)
    said = message(closed(reason), MessageKind.CLOSED, CHINESE)

    assert words in told.title
    assert "not known to have recovered" in told.title
    assert "It is not known to have recovered." in told.body
    assert "ecovered" not in told.body.replace("not known to have recovered", "")
    assert worte in said.title
    assert "无法确认已恢复" in said.body


def test_a_recovery_during_our_own_downtime_says_so() -> None:
    note = "while the watchdog was not running"

    assert note in message(closed(close_note=note), MessageKind.CLOSED).body
    assert "在监控程序未运行期间" in message(closed(close_note=note), MessageKind.CLOSED, CHINESE).body


def test_a_partial_recovery_is_told_with_its_numbers() -> None:
    body = message(closed(CloseReason.DATA_GONE, close_note="3 of 8 recovered"), MessageKind.CLOSED).body

    assert "data gone (3 of 8 recovered)" in body


def test_a_combined_message_has_both_times() -> None:
    told = message(closed(), MessageKind.COMBINED)

    assert told.title == "Fired and recovered · gpu-idle · llama-70b (was CRITICAL)"
    assert told.body.split("\n")[:2] == [
        "It fired at 11:05 Asia/Shanghai and was over before this channel could be told.",
        "It recovered at 11:30 Asia/Shanghai, after 1 h 25 min (since 10:05).",
    ]


def test_marks_of_doubt_stand_beside_the_incident() -> None:
    told = message(incident(), maybe_repeat=True, not_stored=True)
    said = message(incident(), look=CHINESE, maybe_repeat=True, not_stored=True)

    assert told.body.endswith("Incident 7k3mq2xz (may be a repeat) (state not stored)")
    assert said.body.endswith("事件编号 7k3mq2xz（可能重复）（状态未保存）")


def test_log_events_lead_with_the_earliest_matching_line_and_fold_the_rest() -> None:
    flood = [line(4, "connection closed by peer", pod=f"worker-{n}") for n in range(512)]
    told = message(
        event(
            line(1, "step 14200", matched=False),
            *flood,
            line(2, "CUDA error: uncorrectable ECC", pod="worker-7"),
            count=513,
        )
    )

    lines = told.body.split("\n")
    assert lines[:2] == ["10:05:02 worker-7: CUDA error: uncorrectable ECC", "513 matching lines so far"]
    assert lines[lines.index("Log:") + 1 :][:3] == [
        "  10:05:01 worker-3: step 14200",
        "> 10:05:02 worker-7: CUDA error: uncorrectable ECC",
        "> 10:05:04 worker-0: connection closed by peer ×512 in 512 pods (worker-0, worker-1, worker-2, …)",
    ]
    assert "More of the same is counted" in told.body
    assert "reminder" not in told.body


def test_folded_counts_are_kept_and_a_single_line_is_not_repeated() -> None:
    assert "> 10:05:02 worker-3: OOM ×511" in message(event(line(2, "OOM", repeated=511))).body
    assert message(event(line(2, "OOM"))).body.count("OOM") == 1


def test_an_event_seen_late_says_from_when_it_is() -> None:
    body = message(event(line(0, "ERROR x"), late=True), after=timedelta(minutes=20)).body

    assert "Seen late: from 10:05:00 Asia/Shanghai" in body


def test_two_hundred_long_lines_are_cut_to_the_byte_and_counted() -> None:
    lines = [line(n, f"ERROR {n} " + "显存" * 150) for n in range(200)]
    look = replace(LOOK, limits=ChannelLimits(body=2048, title=0))

    told = message(event(*lines, count=200), look=look)

    assert told.title == ""
    assert told.body.startswith("WARNING · error-lines · llama-70b\n10:05:00 worker-3: ERROR 0")
    assert len(told.body.encode()) <= 2048
    assert "of 200 matching lines)" in told.body
    assert told.body.endswith("Incident 7k3mq2xz")


def test_a_message_found_too_long_is_rendered_at_half_size() -> None:
    look = replace(LOOK, limits=ChannelLimits(body=600))

    assert len(message(incident(), look=look, half_size=True).body.encode()) <= 300
    assert 300 < len(message(incident(), look=look).body.encode()) <= 600


def test_titles_are_cut_too() -> None:
    long = incident(rule="r" * 500, labels=TASK.plus({"task_name": "任务" * 200}))
    look = replace(LOOK, limits=ChannelLimits(title=60))

    title = message(long, look=look).title

    assert len(title.encode()) <= 60
    assert title.startswith("CRITICAL · rrr")


def test_foreign_text_is_harmless_everywhere() -> None:
    bad = "<!channel> @all \x1b[31m[x](http://e)\u202e"
    hostile = event(
        line(1, bad, pod=bad),
        line(2, f"{bad} 2"),
        rule=bad,
        labels=TASK.plus({"task_name": bad}),
        description=bad,
        annotations={bad: bad},
    )
    for about in (
        hostile,
        incident(first=replace(IDLE, metric=bad, detail=bad, unit=bad), latest=Evidence()),
    ):
        told = message(about)
        for text in (told.title, told.body):
            assert "<!" not in text
            assert "@all" not in text
            assert "](" not in text
            assert "\x1b" not in text
            assert "\u202e" not in text


class _Upper:
    def __init__(self, text: str) -> None:
        self.text = text

    def render(self, values: Mapping[str, object]) -> str:
        if "boom" in self.text:
            raise ZeroDivisionError("division by zero")
        return f"{values['task']}: {values['value_text']} of {values['limit']}, {values['affected']}"


def _compile(text: str) -> Template:
    if "broken" in text:
        raise ValueError("line 1: broken")
    return _Upper(text)


def test_annotations_may_be_templates_and_a_failing_one_is_shown_as_written() -> None:
    about = incident(
        annotations={
            "plain": "see {this}",
            "good": "{{ task }}",
            "bad": "{{ broken",
            "worse": "{{ boom }}",
        }
    )
    notification = Notification(channel="team", kind=MessageKind.FIRST, incident=about, decided_at=T)

    body = render(notification, LOOK, _compile).body

    assert "plain: see {this}" in body
    assert "good: llama-70b: 4.1 % of below 10 %, 56" in body
    assert "bad: {{ broken (the template failed: line 1: broken)" in body
    assert "worse: {{ boom }} (the template failed: division by zero)" in body
    assert "bad: {{ broken\n" in render(notification, LOOK).body


def notice(kind: NoticeKind, params: dict[str, str], **changes: object) -> Incident:
    return incident(
        rule=f"watchdog/{kind}",
        notice=kind,
        labels=Labels.of(source="alaya"),
        severity=Severity.WARNING,
        first=Evidence(),
        latest=Evidence(),
        members=(),
        params={"subject": "alaya/metrics", **params},
        **changes,
    )


BLIND = {
    "source": "alaya",
    "capability": "logs, metrics",
    "task": "",
    "failure": "key expired",
    "detail": "HTTP 200, status 403",
    "since": T.isoformat(),
}


def test_blindness_is_named_and_says_what_it_means() -> None:
    about = notice(NoticeKind.SOURCE_BLIND, BLIND)

    told, said = message(about), message(about, look=CHINESE)

    assert told.title == "WARNING · watchdog · cannot read logs, metrics of alaya: key expired"
    assert told.body.split("\n")[:3] == [
        "alaya has given no usable answer for logs, metrics since 10:05 (1 h): key expired.",
        "It said: HTTP 200, status 403",
        "Until it can be read again, what depends on it neither fires nor recovers.",
    ]
    assert "Will remind in 24 h" in told.body
    assert said.title == "警告 · 监控程序 · 无法读取 alaya 的日志、指标：密钥已过期"
    assert "返回内容：HTTP 200, status 403" in said.body


def test_seeing_again_says_for_how_long_it_was_blind() -> None:
    over = notice(
        NoticeKind.SOURCE_BLIND,
        BLIND,
        closed_at=T + timedelta(minutes=23),
        close_reason=CloseReason.RECOVERED,
    )

    told = message(over, MessageKind.CLOSED)

    assert told.title == "OK · watchdog · sees logs, metrics of alaya again"
    assert told.body.startswith("Blind from 10:05 to 10:28 (23 min): key expired.")


def test_a_notice_that_ends_for_another_reason_is_not_called_over() -> None:
    over = notice(NoticeKind.SOURCE_BLIND, BLIND, closed_at=T, close_reason=CloseReason.UNWATCHED)

    told = message(over, MessageKind.CLOSED)

    assert (
        told.title == "Closed · watchdog · cannot read logs, metrics of alaya: key expired: no longer watched"
    )
    assert told.body.split("\n")[0].startswith("Blind from ")
    assert "It is not known to have recovered." in told.body
    assert "judged again" not in told.body


def test_not_watching_is_told_with_both_times() -> None:
    gap = {
        "from": T.isoformat(),
        "to": (T + timedelta(minutes=20)).isoformat(),
        "gap": "20m",
        "reason": "it was not running",
    }

    told = message(notice(NoticeKind.NOT_WATCHING, gap, event=True))

    assert told.title == "WARNING · watchdog · was not watching from 10:05 to 10:25"
    assert told.body.startswith(
        "Nothing was evaluated from 10:05 to 10:25 (20 min).\nWhy: it was not running"
    )


@pytest.mark.parametrize("kind", NoticeKind)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_notice_has_a_title_and_lists_params_that_no_text_uses(kind: NoticeKind, language: str) -> None:
    look = replace(LOOK, language=language)
    bare = message(notice(kind, {}), look=look)
    full = message(notice(kind, {"novel": "a fact"}), look=look)
    over = notice(kind, {}, closed_at=T, close_reason=CloseReason.RECOVERED)

    assert bare.title
    assert "{" not in bare.title + bare.body
    assert "a fact" in full.body
    assert "{" not in message(over, MessageKind.CLOSED, look).body


class _NoZone(tzinfo):
    def utcoffset(self, _moment: datetime | None) -> timedelta:
        raise LookupError("no such zone")


def test_a_fault_in_the_words_costs_the_polish_and_not_the_alert() -> None:
    told = message(incident(), look=replace(LOOK, timezone=_NoZone()))

    assert told.title == "CRITICAL · gpu-idle · llama-70b"
    assert told.body.split("\n") == [
        "first: gpu avg over 1h 0.041",
        "(rendering failed: LookupError('no such zone'))",
        "Incident 7k3mq2xz",
    ]


def test_characters_are_counted_where_a_channel_counts_characters() -> None:
    look = replace(CHINESE, limits=ChannelLimits(body=120, unit=LimitUnit.CHARACTERS))

    body = message(incident(), look=look).body

    assert len(body) <= 120
    assert len(body.encode()) > 120


def test_a_rule_without_reminders_promises_none() -> None:
    assert "\nWill say when it is over.\n" in message(incident(repeat=timedelta())).body


def test_a_status_event_says_what_was_entered_why_and_how_often() -> None:
    failed = Evidence(summary="running → failed", detail="OOMKilled", affected=1, of=1, covered=1)

    body = message(event(first=failed, latest=failed, count=2)).body

    assert body.startswith("Status running → failed\nOOMKilled\nHappened 2 times so far\nAt 10:05:00")


def test_a_reminder_of_a_notice_is_numbered() -> None:
    title = message(notice(NoticeKind.SOURCE_BLIND, BLIND), MessageKind.REMINDER, reminder=3).title

    assert title.endswith(": key expired · reminder 3")


def test_nodes_are_named_and_members_that_give_no_data_have_no_value() -> None:
    gone = Evidence(
        metric="gpu",
        summary="no point of gpu for",
        value=720.0,
        unit="s",
        members=(
            Member(labels=Labels.of(pod="p0", node="n7"), value=0.2),
            Member(labels=Labels.of(node="n8"), value=1.0),
        ),
        spark=(0.2, 0.3),
        spark_span=timedelta(hours=1),
    )

    body = message(incident(first=gone, latest=gone)).body

    assert "Where:\n  p0 (n7)\n  n8\n" in body
    assert "min 20 %, last 30 %" in body


def test_one_gpu_a_pod_is_not_grouped() -> None:
    members = tuple(
        IncidentMember(labels=Labels.of(pod=f"p{n}", gpu="0"), since=T, value=n / 100) for n in range(12)
    )

    assert "  p0 gpu 0  0 %" in message(incident(members=members)).body


def test_an_end_of_which_nothing_was_measured_is_short() -> None:
    bare = closed(first=Evidence(), latest=Evidence())

    assert message(bare, MessageKind.CLOSED).body.split("\n") == [
        "It recovered at 11:30 Asia/Shanghai, after 1 h 25 min (since 10:05).",
        "Incident 7k3mq2xz",
    ]
