"""Both languages say everything, with the same blanks, in forms a person writes."""

import string
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchdog.core.alerts import CloseReason, NoticeKind
from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import Failure
from watchdog.core.outcomes import Evidence, Outcome
from watchdog.core.rules import Severity
from watchdog.core.tasks import Status
from watchdog.core.wording.languages import LANGUAGES, wording
from watchdog.core.wording.shape import NoticeText, Noun, Wording
from watchdog.core.wording.verdicts import affected, finding, verdict
from watchdog.core.wording.voice import Voice, voice_of

NOW = datetime(2026, 9, 17, 3, 0, tzinfo=UTC)
SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.fixture
def english() -> Voice:
    return voice_of(wording("en"), SHANGHAI, NOW)


@pytest.fixture
def chinese() -> Voice:
    return voice_of(wording("zh"), SHANGHAI, NOW)


def _texts(words: Wording) -> Iterator[tuple[str, str]]:
    for each in fields(words):
        value = getattr(words, each.name)
        if isinstance(value, str):
            yield each.name, value
        elif isinstance(value, Mapping) and each.name != "notices":
            for key, text in value.items():
                if isinstance(text, Noun):
                    yield f"{each.name}.{key}", text.one
                    yield f"{each.name}.{key}", text.many
                else:
                    yield f"{each.name}.{key}", text


def _blanks(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_every_text_has_the_same_blanks_in_every_language() -> None:
    english = dict(_texts(LANGUAGES["en"]))
    for words in LANGUAGES.values():
        for key, text in _texts(words):
            assert text.strip(), key
            if key in english:
                assert _blanks(text) == _blanks(english[key]), key


def test_every_notice_is_worded_in_every_language_with_the_same_blanks() -> None:
    parts = [part.name for part in fields(NoticeText)]
    for words in LANGUAGES.values():
        assert set(words.notices) == set(NoticeKind)
        for kind, text in words.notices.items():
            for part in parts:
                ours = [_blanks(one) for one in getattr(text, part)]
                theirs = [_blanks(one) for one in getattr(LANGUAGES["en"].notices[kind], part)]
                assert ours == theirs, (kind, part)


def test_everything_that_can_be_named_has_a_name() -> None:
    english, chinese = LANGUAGES["en"], LANGUAGES["zh"]
    for words in (english, chinese):
        assert set(words.severity) == set(Severity)
        assert set(words.reasons) == set(CloseReason)
        assert set(words.capabilities) == {str(one) for one in Capability}
        assert set(words.nouns) == set(english.nouns)
        assert set(words.aggregates) == set(english.aggregates)
        assert set(words.acrosses) == set(english.acrosses)
        assert set(words.durations) == set(english.durations)
    assert set(chinese.failures) == {str(one) for one in Failure}
    assert set(chinese.statuses) == {str(one) for one in Status}


def test_languages_are_found_by_their_first_part_and_english_is_the_default() -> None:
    assert wording("zh-CN") is LANGUAGES["zh"]
    assert wording("ZH_hans") is LANGUAGES["zh"]
    assert wording("") is LANGUAGES["en"]
    assert wording("tlh") is LANGUAGES["en"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.041, "ratio", "4.1 %"),
        (0.9534, "ratio", "95.3 %"),
        (1.0, "ratio", "100 %"),
        (0.0, "ratio", "0 %"),
        (0.00041, "ratio", "0.041 %"),
        (17.0, "ratio", "1700 %"),
        (83.26, "°C", "83.3 °C"),
        (14200.0, "", "14200"),
        (-0.04, "", "-0.04"),
        (1e21, "W", "1.00e+21 W"),
        (float("nan"), "", "NaN"),
        (float("inf"), "ratio", "∞ %"),
        (None, "ratio", "no value"),
    ],
)
def test_values_are_said_with_sensible_digits(
    english: Voice, value: float | None, unit: str, text: str
) -> None:
    assert english.value(value, unit) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (6480381477.0, "Bytes/s", "6.5 GB/s"),
        (999.0, "bytes", "999 B"),
        (1_500.0, "B", "1.5 kB"),
        (0.0, "Bytes/s", "0 B/s"),
        (-2e12, "B", "-2 TB"),
        (4e22, "B", "40000000 PB"),
        (float("inf"), "B/s", "∞ B/s"),
        (3.0, "count", "3"),
        (91.5, "°C", "91.5 °C"),
    ],
)
def test_bytes_are_said_in_a_multiple_and_counts_without_a_unit(
    english: Voice, value: float, unit: str, text: str
) -> None:
    assert english.value(value, unit) == text


def test_a_value_never_looks_like_the_limit_it_passed(english: Voice) -> None:
    assert english.value(0.0998, "ratio", beside=0.1) == "9.98 %"
    assert english.value(0.1000001, "ratio", beside=0.1) == "10.00001 %"
    assert english.value(0.1, "ratio", beside=0.1) == "10 %"
    assert english.value(9.999e9, "Bytes/s", beside=1e10) == "9.999 GB/s"


def test_durations_are_said_in_two_units(english: Voice, chinese: Voice) -> None:
    assert english.duration(timedelta(hours=1, minutes=12, seconds=9)) == "1 h 12 min"
    assert english.duration(timedelta(seconds=45)) == "45 s"
    assert english.duration(timedelta(hours=24)) == "24 h"
    assert english.duration(timedelta(days=3, minutes=5)) == "3 d"
    assert english.duration(timedelta()) == "0 s"
    assert english.duration(timedelta(milliseconds=300)) == "300 ms"
    assert chinese.duration(timedelta(hours=1, minutes=12)) == "1 小时 12 分钟"


def test_times_are_in_the_listeners_zone_with_the_date_unless_it_is_today(english: Voice) -> None:
    assert english.time(datetime(2026, 9, 17, 2, 5, 9, tzinfo=UTC)) == "10:05"
    assert english.time(datetime(2026, 9, 17, 2, 5, 9, tzinfo=UTC), seconds=True) == "10:05:09"
    assert english.time(datetime(2026, 9, 16, 15, 59, tzinfo=UTC)) == "2026-09-16 23:59"
    assert english.zone_name == "Asia/Shanghai"
    assert english.time(datetime.max.replace(tzinfo=UTC))


def test_an_hour_that_the_clocks_show_twice_is_told_apart() -> None:
    voice = voice_of(wording("en"), ZoneInfo("Europe/Berlin"), datetime(2026, 10, 25, 2, tzinfo=UTC))
    assert voice.time(datetime(2026, 10, 25, 0, 30, tzinfo=UTC)) == "02:30 (UTC+02:00)"
    assert voice.time(datetime(2026, 10, 25, 1, 30, tzinfo=UTC), seconds=True) == "02:30:00 (UTC+01:00)"
    assert voice.time(datetime(2026, 10, 25, 2, 30, tzinfo=UTC)) == "03:30"
    assert voice.time(datetime(2026, 3, 29, 1, 30, tzinfo=UTC)) == "2026-03-29 03:30"


def test_params_of_notices_are_said_in_the_listeners_way(english: Voice, chinese: Voice) -> None:
    assert english.param("2026-09-17T02:05:00+00:00") == "10:05"
    assert english.param("20m") == "20 min"
    assert chinese.param("+6h") == "+6 小时"
    assert chinese.param("it has no point of xid") == "没有 xid 的数据点"
    assert chinese.param("key expired") == "密钥已过期"
    assert english.param("2026-09-17T02:05:00") == "2026-09-17T02:05:00"
    assert english.param("anything else") == "anything else"


def test_log_lines_without_a_usable_time_have_none(english: Voice) -> None:
    assert english.log_time(0) == ""
    assert english.log_time(2**63 - 1) != ""


VERDICTS = [
    (
        Evidence(metric="gpu", summary="avg over 1h", value=0.041, threshold=0.1, unit="ratio"),
        "GPU average 4.1 % over 1 h, below 10 %",
        "GPU 利用率 1 小时平均 4.1%，低于 10%",
    ),
    (
        Evidence(
            metric="vram", summary="max of max over 5m", value=0.97, threshold=0.95, above=True, unit="ratio"
        ),
        "VRAM maximum 97 % over 5 min, above 95 %",
        "显存占用 5 分钟最高 97%，高于 95%",
    ),
    (
        Evidence(metric="gpu", summary="newest value", value=0.02, threshold=0.1, unit="ratio"),
        "GPU 2 %, below 10 %",
        "GPU 利用率 2%，低于 10%",
    ),
    (
        Evidence(
            metric="gpu", summary="share of 1h below 10%", value=0.92, threshold=0.8, above=True, unit="ratio"
        ),
        "GPU below 10 % for 92 % of 1 h, limit 80 %",
        "GPU 利用率在 1 小时内有 92% 的时间低于 10%，限值 80%",
    ),
    (
        Evidence(
            metric="gpu",
            summary="avg over 10m, against 50% of the median of its task",
            value=0.4,
            threshold=0.475,
            unit="ratio",
        ),
        "GPU average 40 % over 10 min, below 47.5 % (50 % of the median of its task)",
        "GPU 利用率 10 分钟平均 40%，低于 47.5%（任务中位数的 50%）",
    ),
    (
        Evidence(summary="matching lines within 5m", value=23.0, threshold=20, above=True),
        "23 matching lines within 5 min, above 20",
        "5 分钟内有 23 行匹配，高于 20",
    ),
    (
        Evidence(metric="gpu", summary="no point of gpu for", value=720.0, above=True, unit="s"),
        "No GPU data for 12 min",
        "已 12 分钟没有 GPU 利用率数据",
    ),
    (
        Evidence(summary="no line for", value=960.0, threshold=900.0, above=True, unit="s"),
        "No log line for 16 min, limit 15 min",
        "已 16 分钟没有新日志，限值 15 分钟",
    ),
    (Evidence(summary="status is queued"), "Status is queued", "状态：排队中"),
    (Evidence(summary="running → failed"), "Status running → failed", "状态：运行中 → 已失败"),
    (
        Evidence(metric="XidErrors", summary="XidErrors 2 → 3", value=3.0, above=True),
        "XidErrors 2 → 3",
        "XidErrors 2 → 3",
    ),
    (
        Evidence(metric="temp", summary="a novel thing", value=3.0, threshold=2.0, above=True, unit="K"),
        "temp a novel thing: 3 K, above 2 K",
        "temp a novel thing：3 K，高于 2 K",
    ),
    (
        Evidence(metric="t", summary="max of 95th percentile over 5m", value=91.2, threshold=90, above=True),
        "t 95th percentile 91.2 over 5 min (highest of its members), above 90",
        "t 5 分钟 P95 91.2（取各成员的最高），高于 90",
    ),
    (Evidence(metric="gpu", summary="no point of gpu for"), "No GPU data so far", "从未有过 GPU 利用率数据"),
    (Evidence(summary="no line for"), "No log line so far", "从未有过日志"),
    (Evidence(summary="no line for", value=60.0), "No log line for 1 min", "已 1 分钟没有新日志"),
    (Evidence(), "", ""),
]


@pytest.mark.parametrize(("evidence", "english_text", "chinese_text"), VERDICTS)
def test_each_condition_has_its_verdict(
    english: Voice, chinese: Voice, evidence: Evidence, english_text: str, chinese_text: str
) -> None:
    assert verdict(evidence, english) == english_text
    assert verdict(evidence, chinese) == chinese_text


FINDINGS = [
    (
        Evidence(metric="vram", summary="max over 5m", value=0.92, threshold=0.95, above=True, unit="ratio"),
        {
            Outcome.FALSE: (
                "VRAM maximum 92 % over 5 min, not above 95 %",
                "显存占用 5 分钟最高 92%，未高于 95%",
            ),
            Outcome.BETWEEN: (
                "VRAM maximum 92 % over 5 min, not above 95 %, but not clear of it either",
                "显存占用 5 分钟最高 92%，未高于 95%，但尚未明显回落",
            ),
            Outcome.THIN: ("VRAM maximum 92 % over 5 min", "显存占用 5 分钟最高 92%"),
        },
    ),
    (
        Evidence(metric="gpu", summary="avg over 1h", threshold=0.1, unit="ratio"),
        {Outcome.THIN: ("GPU average over 1 h", "GPU 利用率 1 小时平均")},
    ),
    (
        Evidence(metric="gpu", summary="no point of gpu for", value=13.0, above=True, unit="s"),
        {
            Outcome.TRUE: ("No GPU data for 13 s", "已 13 秒没有 GPU 利用率数据"),
            Outcome.FALSE: ("Newest GPU data 13 s ago", "最新的 GPU 利用率数据在 13 秒前"),
            Outcome.ERROR: ("", ""),
        },
    ),
    (
        Evidence(summary="no line for", value=60.0, threshold=900.0, above=True, unit="s"),
        {Outcome.FALSE: ("Newest log line 1 min ago, limit 15 min", "最新日志在 1 分钟前，限值 15 分钟")},
    ),
    (
        Evidence(summary="matching lines within 5m", value=1.0, threshold=20, above=True),
        {Outcome.FALSE: ("1 matching line within 5 min, not above 20", "5 分钟内有 1 行匹配，未高于 20")},
    ),
    (Evidence(summary="status is running"), {Outcome.FALSE: ("Status is running", "状态：运行中")}),
    (
        Evidence(
            metric="memory",
            summary="max of slope per hour over 1h",
            value=0.1,
            threshold=0.04,
            above=True,
            unit="ratio",
        ),
        {
            Outcome.TRUE: (
                "Memory changes by 10 % per hour over 1 h (highest of its members), above 4 %",
                "内存占用 1 小时内平均每小时变化 10%（取各成员的最高），高于 4%",
            )
        },
    ),
]


@pytest.mark.parametrize(("evidence", "said"), FINDINGS)
def test_what_is_found_is_said_as_it_is(
    english: Voice, chinese: Voice, evidence: Evidence, said: Any
) -> None:
    for outcome, texts in said.items():
        assert (finding(evidence, outcome, english), finding(evidence, outcome, chinese)) == texts


def test_a_passed_limit_is_said_as_passed(english: Voice, chinese: Voice) -> None:
    good = Evidence(metric="gpu", summary="avg over 1h", value=0.95, threshold=0.1, unit="ratio")

    assert verdict(good, english, over=True) == "GPU average 95 % over 1 h, no longer below 10 %"
    assert verdict(good, chinese, over=True) == "GPU 利用率 1 小时平均 95%，不再低于 10%"


def test_how_many_are_affected_and_seen(english: Voice, chinese: Voice) -> None:
    evidence = Evidence(affected=56, of=64, covered=60)

    assert affected(evidence, "gpu", english) == ["Affected: 56 of 64 GPUs", "Data from 60 of 64 GPUs"]
    assert affected(evidence, "gpu", chinese) == ["受影响：56/64 个 GPU", "有数据：60/64 个 GPU"]
    assert affected(Evidence(affected=1, of=1, covered=1), "pod", english) == []
    assert affected(Evidence(affected=3), "pod", english) == ["Affected: 3 pods"]


@given(
    st.builds(
        Evidence,
        metric=st.text(max_size=8),
        summary=st.text(max_size=20) | st.sampled_from([row[0].summary for row in VERDICTS]),
        value=st.none() | st.floats(),
        threshold=st.none() | st.floats(),
        above=st.booleans(),
        unit=st.sampled_from(["", "ratio", "s", "°C"]),
    ),
    st.sampled_from(["en", "zh"]),
    st.booleans(),
)
def test_any_evidence_has_a_verdict(evidence: Evidence, language: str, over: bool) -> None:
    assert isinstance(verdict(evidence, voice_of(wording(language), UTC, NOW), over=over), str)
