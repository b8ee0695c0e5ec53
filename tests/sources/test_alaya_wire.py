"""Decoding of answers, without a network: odd shapes, odd text, and bodies made up by hypothesis."""

import contextlib
import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.core.durations import EPOCH, to_ns
from watchdog.core.health import Failure
from watchdog.core.logs import LogLine, LogQuery
from watchdog.core.tasks import Status, Task
from watchdog.errors import SourceError
from watchdog.sources.alaya import period_covering
from watchdog.sources.alaya_tasks import read_list_page, read_pod
from watchdog.sources.alaya_wire import read_logs, read_metrics, read_reply
from watchdog.sources.answers import HttpAnswer, failure_of_status, parse_retry_after
from watchdog.sources.naive_times import read_time

SHANGHAI = ZoneInfo("Asia/Shanghai")
TASK = Task(key="alaya/1", source="alaya", id="1", name="run")
NS = 1762837199838553596


def data_of(body: bytes | object, **answer: object) -> msgspec.Raw:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = read_reply(HttpAnswer(**{"status": 200, "body": text, **answer}))
    if reply.error is not None:
        raise reply.error
    return reply.data


def ok(data: object) -> object:
    return {"status": 200, "message": "OK", "data": data}


def metrics(*series: object, since: datetime = EPOCH):
    return read_metrics(data_of(ok({"metricData": list(series)})), task=TASK, metric="gpu", since=since)


def points(*pairs: tuple[object, object]) -> list[object]:
    return [{"timestamp": time, "value": value} for time, value in pairs]


def logs(*rows: object, start_ns: int = 0, end_ns: int = 1 << 62, limit: int = 500):
    query = LogQuery(start_ns=start_ns, end_ns=end_ns, limit=limit)
    return read_logs(data_of(ok(list(rows))), query)


def failure_of(call, *args: object, **kwargs: object) -> SourceError:
    with pytest.raises(SourceError) as caught:
        call(*args, **kwargs)
    return caught.value


def test_the_documented_metrics_answer() -> None:
    answer = metrics(
        {
            "type": "gpu",
            "podName": "pod_name_master",
            "maxRate": "0.93",
            "avgRate": "0.7",
            "currentRate": "0.65",
            "gpuName": "NVIDIA-H800A-NV-80G-3",
            "metricData": points((1636457100, "0.95")),
        }
    )

    (series,) = answer.series
    assert dict(series.labels) == {
        "source": "alaya",
        "task": "alaya/1",
        "task_name": "run",
        "pod": "pod_name_master",
        "gpu": "NVIDIA-H800A-NV-80G-3",
    }
    assert (series.times.dtype, series.values.dtype) == (np.int64, np.float64)
    assert (series.times.tolist(), series.values.tolist()) == ([1636457100 * 10**9], [0.95])


def test_only_points_after_since_and_in_order() -> None:
    since = datetime(2021, 11, 9, 11, 25, tzinfo=UTC)  # 1636457100
    times = [1636457160, 1636457100, 1636457040, 1636457220]

    (series,) = metrics(
        {"podName": "p", "metricData": points(*((t, "0.5") for t in times))}, since=since
    ).series

    assert (series.times // 10**9).tolist() == [1636457160, 1636457220]


def test_a_series_without_a_new_point_is_left_out() -> None:
    since = datetime(2022, 1, 1, tzinfo=UTC)
    assert not metrics({"podName": "p", "metricData": points((1636457100, "0.5"))}, since=since).series


def test_cards_without_a_name_are_averaged_and_said_to_be() -> None:
    answer = metrics(
        {"podName": "p", "metricData": points((100, "0.2"), (200, "0.4"))},
        {"podName": "p", "metricData": points((100, "0.6"), (300, "1"))},
    )

    (series,) = answer.series
    np.testing.assert_allclose(series.values, [0.4, 0.4, 1.0])
    assert answer.remarks == ("2 series of gpu came twice and disagree; averaged",)


@pytest.mark.parametrize("value", ["", " ", "NaN", "nan", "-", "null", None, "inf", "-inf", "1e999", "1_0"])
def test_no_value_is_no_point_and_no_remark(value) -> None:
    answer = metrics({"podName": "p", "metricData": points((100, value), (200, "0.5"))})
    assert (answer.series[0].times.tolist(), answer.remarks) == ([200 * 10**9], ())


def test_an_unreadable_value_is_dropped_with_a_remark() -> None:
    answer = metrics({"podName": "p", "metricData": points((100, "95%"), (200, "0.5"))})
    assert answer.remarks == ("1 values of gpu are no numbers; dropped",)


def test_times_as_text_or_fraction_are_read_and_bad_ones_dropped_with_a_remark() -> None:
    answer = metrics(
        {"podName": "p", "metricData": points(("100", 1), (200.5, 1), ("x", 1), (None, 1), (-5, 1))}
    )

    assert (answer.series[0].times // 10**9).tolist() == [100, 200]
    assert answer.remarks == ("3 points of gpu have no readable time; dropped",)


def test_times_in_another_unit_are_malformed_not_silence() -> None:
    error = failure_of(metrics, {"podName": "p", "metricData": points((1636457100000, "0.5"))})
    assert (error.failure, error.detail) == (Failure.MALFORMED, "no point has a time in Unix seconds")


@pytest.mark.parametrize("time", [2**53, 9_900_000_000, "99999999999", 9.5e10])
def test_a_time_that_no_column_holds_is_no_time(time) -> None:
    answer = metrics({"podName": "a", "metricData": points((time, "0.5"), (1762837260, "0.5"))})
    (one,) = answer.series
    assert one.times.tolist() == [1762837260 * 10**9]
    assert answer.remarks == ("1 points of gpu have no readable time; dropped",)


@pytest.mark.parametrize(
    "odd", [{"podName": ["x"]}, "x", None, 5, {"metricData": 7}, {"podName": "a", "metricData": "none"}]
)
def test_a_series_that_cannot_be_read_costs_only_itself_and_the_answer_is_not_whole(odd) -> None:
    answer = metrics(odd, {"podName": "good", "metricData": points((1762837260, "0.5"))})
    assert [one.labels["pod"] for one in answer.series] == ["good"]
    assert answer.complete is False
    assert answer.remarks == ("1 series of gpu cannot be read; what is missing is not judged",)


def test_a_point_of_another_type_costs_only_itself() -> None:
    odd = [{"timestamp": 1762837200, "value": {}}, 5, {"timestamp": [], "value": "1"}]
    answer = metrics({"podName": "a", "metricData": [*odd, *points((1762837260, "0.5"))]})
    assert [one.values.tolist() for one in answer.series] == [[0.5]]
    assert (answer.complete, answer.remarks) == (True, ("3 values of gpu are no numbers; dropped",))


@pytest.mark.parametrize("value", [b"NaN", b"Infinity", b"-Infinity", b"9" * 5000, b"1e999"])
def test_numbers_that_json_has_not_got_cost_a_value_not_the_answer(value: bytes) -> None:
    body = json.dumps(ok({"metricData": [{"podName": "a", "metricData": points((60, "0.5"), (120, 7))}]}))
    answer = read_metrics(data_of(body.encode().replace(b"7", value)), task=TASK, metric="gpu", since=EPOCH)
    assert [one.times.tolist() for one in answer.series] == [[60 * 10**9]]


def test_cards_may_be_numbered() -> None:
    answer = metrics({"podName": "a", "gpuName": 3, "metricData": points((60, "0.5"))})
    assert [one.labels["gpu"] for one in answer.series] == ["3"]


def test_a_series_of_another_type_is_dropped_with_a_remark() -> None:
    answer = metrics({"type": "cpu", "podName": "p", "metricData": points((100, "0.5"))})
    assert not answer.series
    assert answer.remarks == ("1 series are of another type than gpu; dropped",)


@pytest.mark.parametrize("data", ["text", [], 5, {"metricData": {}}, {"metricData": ["x"]}, True])
def test_metrics_of_the_wrong_type_are_malformed(data) -> None:
    error = failure_of(lambda: read_metrics(data_of(ok(data)), task=TASK, metric="gpu", since=EPOCH))
    assert error.failure is Failure.MALFORMED


def test_the_documented_log_row_keeps_its_nanoseconds() -> None:
    page = logs({"timestamp": str(NS), "log": "[INFO] Line 000100", "podName": "m-0"})
    assert page.lines == (LogLine(NS, "m-0", "[INFO] Line 000100"),)


def test_rows_that_are_no_text_are_kept_as_json() -> None:
    page = logs(
        {"timestamp": NS, "log": {"level": "错误", "n": 1}, "podName": None},
        {"timestamp": NS + 1, "log": 17, "podName": 3},
        {"timestamp": NS + 2, "log": None, "podName": "p"},
    )
    assert page.lines == (LogLine(NS, "", '{"level": "错误", "n": 1}'), LogLine(NS + 1, "3", "17"))


def test_rows_without_a_time_are_dropped_and_counted() -> None:
    bad = [None, "", "soon", "1.7e18", 1.5, True, -1, "9" * 25, {}]
    page = logs(*({"timestamp": time, "log": "x", "podName": "p"} for time in bad))
    assert (page.lines, page.remarks) == ((), ("9 log rows have no readable time; dropped",))


def test_a_row_that_is_none_costs_only_itself() -> None:
    page = logs(5, {"timestamp": str(NS), "log": "ERROR", "podName": "a"}, None, limit=3)
    assert [line.text for line in page.lines] == ["ERROR"]
    assert page.remarks == ("2 log rows cannot be read; dropped",)
    assert page.full


def test_rows_outside_the_asked_bounds_are_left_out() -> None:
    rows = [{"timestamp": str(time), "log": str(time), "podName": "p"} for time in (9, 10, 20, 21)]
    page = logs(*rows, start_ns=10, end_ns=20, limit=4)

    assert [line.time_ns for line in page.lines] == [10, 20]
    assert page.full is True
    assert page.remarks == ("2 log rows lie outside the time span asked for; left out",)


def test_a_full_page_newest_first_is_remarked_upon() -> None:
    rows = [{"timestamp": str(time), "log": "x", "podName": "p"} for time in (30, 20, 10)]
    page = logs(*rows, limit=3)

    assert [line.time_ns for line in page.lines] == [10, 20, 30]
    assert "newest first" in page.remarks[0]


@pytest.mark.parametrize("data", [{}, "text", 5, [5], [[]]])
def test_logs_of_the_wrong_type_are_malformed(data) -> None:
    error = failure_of(lambda: read_logs(data_of(ok(data)), LogQuery(start_ns=0, end_ns=9)))
    assert error.failure is Failure.MALFORMED


def test_bytes_that_are_no_utf8_cost_a_character_not_the_page() -> None:
    body = b'{"status":200,"data":[{"timestamp":"5","log":"a\xff\\ud800b","podName":"p"}]}'
    page = read_logs(data_of(body), LogQuery(start_ns=0, end_ns=9))
    assert page.lines == (LogLine(5, "p", "a\ufffd?b"),)


def test_declared_character_sets_are_decoded() -> None:
    body = json.dumps(ok([{"timestamp": "5", "log": "错误", "podName": "p"}]), ensure_ascii=False)
    data = data_of(body.encode("gbk"), content_type="application/json;charset=GBK")
    assert read_logs(data, LogQuery(start_ns=0, end_ns=9)).lines[0].text == "错误"

    error = failure_of(data_of, b"\x80\x81\xff", content_type="application/json; charset=gbk")
    assert (error.failure, error.detail) == (Failure.MALFORMED, "the text is not gbk")


@pytest.mark.parametrize(
    ("body", "kind", "failure", "detail"),
    [
        (b"<html>", "text/html; charset=utf-8", Failure.NOT_JSON, "text/html"),
        (b"", "application/json", Failure.NOT_JSON, "empty body"),
        (b'{"status": 200', "application/json", Failure.MALFORMED, None),
        (b"[]", "application/json", Failure.MALFORMED, None),
        (b'{"status": "200"}', "application/json", Failure.MALFORMED, None),
        (b'{"data": []}', "application/json", Failure.MALFORMED, None),
        (b'{"status": 200, "data":' + b"[" * 100_000, "application/json", Failure.MALFORMED, None),
        (b'{"status": 0, "data": null}', "application/json", Failure.SERVER_ERROR, "code 0, HTTP 200"),
        (b'{"status": 42901, "message": "slow"}', "", Failure.THROTTLED, "slow, code 42901, HTTP 200"),
    ],
)
def test_what_is_not_an_answer_is_named(body, kind, failure, detail) -> None:
    error = failure_of(data_of, body, content_type=kind)
    assert error.failure is failure
    assert detail is None or error.detail == detail


def test_a_byte_order_mark_and_a_missing_type_are_tolerated() -> None:
    assert data_of(b'\xef\xbb\xbf{"status":200,"data":null}', content_type="") is not None


def test_the_servers_message_is_cut_and_our_secrets_are_masked() -> None:
    body = json.dumps({"status": 403, "message": "no\nkey SECRET-1 " + "x" * 200}).encode()
    error = read_reply(HttpAnswer(status=403, body=body), ["SECRET-1", ""]).error

    assert error is not None
    assert error.detail.startswith("no key **** xxx")
    assert error.detail.endswith("…, HTTP 403")
    assert len(error.detail) < 100


def test_a_message_that_is_no_text_is_ignored() -> None:
    error = failure_of(data_of, {"status": 500, "message": {"trace": "hf_secret"}})
    assert error.detail == "code 500, HTTP 200"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-09-10 12:00:00", datetime(2025, 9, 10, 4, tzinfo=UTC)),
        ("2025-09-10T12:00:00", datetime(2025, 9, 10, 4, tzinfo=UTC)),
        ("2026-06-01T08:54:13.309Z", datetime(2026, 6, 1, 8, 54, 13, 309000, tzinfo=UTC)),
        ("2025-09-10T12:00:00+00:00", datetime(2025, 9, 10, 12, tzinfo=UTC)),
        (1757476800, datetime(2025, 9, 10, 4, tzinfo=UTC)),
        (1757476800000, datetime(2025, 9, 10, 4, tzinfo=UTC)),
        ("0001-01-01 00:00:00", None),
        ("", None),
        ("-", None),
        (None, None),
        (1e300, None),
        ("9999-12-31T23:59:59Z", None),
        ("2300-01-01T00:00:00Z", None),
    ],
)
def test_times_of_every_spelling(text, expected) -> None:
    assert read_time(text, SHANGHAI) == expected


@pytest.mark.parametrize("name", ["createdTime", "createTime", "createAt"])
def test_three_spellings_of_creation(name) -> None:
    page = read_list_page(
        data_of(ok({"records": [{"id": 7, name: "2025-09-10 12:00:00"}], "totalRows": "1"})),
        source="alaya",
        zone=SHANGHAI,
    )
    (observation,) = page.tasks
    assert observation.extra == {"created": "2025-09-10T04:00:00+00:00"}
    assert (observation.task.id, observation.task.name, page.total) == ("7", "7", 1)


def test_a_row_that_cannot_be_read_makes_the_list_incomplete_not_shorter() -> None:
    page = read_list_page(
        data_of(ok({"records": [{"id": "1"}, {"name": "no id"}, "x", {"id": {}}], "totalRows": 4})),
        source="alaya",
        zone=SHANGHAI,
    )
    assert (len(page.tasks), page.rows, page.unreadable) == (1, 4, 3)


@pytest.mark.parametrize(
    "odd", [{"resource": "x"}, {"reason": {"code": 1}}, {"name": ["x"]}, {"startTime": []}, {"aidcId": {}}]
)
def test_a_field_of_another_type_is_as_if_it_were_not_there(odd) -> None:
    row = {
        "id": "1",
        "status": "Running",
        "resource": {"gpuCount": [], "gpuName": 7, "workerCount": 2},
        **odd,
    }
    page = read_list_page(data_of(ok({"records": [row], "totalRows": 1})), source="alaya", zone=SHANGHAI)
    assert [(one.task.id, one.status, one.task.name) for one in page.tasks] == [("1", Status.RUNNING, "1")]
    assert page.unreadable == 0


@pytest.mark.parametrize("data", [None, {}, [], {"totalRows": 3}, {"records": None, "totalRows": 3}])
def test_a_list_without_records_is_malformed(data) -> None:
    error = failure_of(lambda: read_list_page(data_of(ok(data)), source="a", zone=SHANGHAI))
    assert error.failure is Failure.MALFORMED


@pytest.mark.parametrize(
    ("span", "word"),
    [
        (timedelta(seconds=-5), "15m"),
        (timedelta(minutes=15), "15m"),
        (timedelta(minutes=15, seconds=1), "1h"),
        (timedelta(hours=6), "6h"),
        (timedelta(hours=7), "24h"),
        (timedelta(hours=25), "3d"),
        (timedelta(days=4), "7d"),
        (timedelta(days=8), "30d"),
        (timedelta(days=90), "30d"),
    ],
)
def test_the_smallest_period_that_covers_the_gap(span, word) -> None:
    assert period_covering(span) == word


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (200, None),
        (302, Failure.NOT_JSON),
        (408, Failure.TIMEOUT),
        (422, Failure.BAD_REQUEST),
        (599, Failure.SERVER_ERROR),
    ],
)
def test_http_statuses_have_names(status, failure) -> None:
    assert failure_of_status(status) is failure


def test_a_retry_after_date_is_measured_on_the_servers_clock() -> None:
    now = datetime(2026, 9, 10, 4, tzinfo=UTC)
    until, served = "Thu, 10 Sep 2026 08:02:00 GMT", "Thu, 10 Sep 2026 08:00:00 GMT"

    assert parse_retry_after(until, served, now=now) == timedelta(minutes=2)
    assert parse_retry_after(served, until, now=now) == timedelta()
    assert parse_retry_after("9" * 30, "", now=now) == timedelta(days=1)
    assert parse_retry_after("-5", "", now=now) is None


# --- whatever a server may send: an answer or a SourceError, never anything else

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["0.5", "NaN", "-", "1e999", str(NS), "2025-09-10 12:00:00", "Running", "9" * 400])
)
_WORDS = (
    "status message data metricData type podName gpuName timestamp value log records totalRows id name "
    "resource workerCount gpuCount startTime endTime createdTime namespace hostName restartCount"
)
_NAMES = st.sampled_from(_WORDS.split()) | st.text(max_size=3)
_DOCUMENTS = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=6),
    max_leaves=25,
)
_SEEDS = (
    json.dumps(ok({"metricData": [{"podName": "p", "metricData": points((NS // 10**9, "0.5"))}]})).encode(),
    json.dumps(ok([{"timestamp": str(NS), "log": "x", "podName": "p"}])).encode(),
    json.dumps(ok({"records": [{"id": "1", "status": "Running"}], "totalRows": 1})).encode(),
)


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    body = bytearray(draw(st.sampled_from(_SEEDS)))
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(body) - 1))
        body[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
        if not body:
            break
    return bytes(body)


_BODIES = (
    st.binary(max_size=60)
    | _damaged()
    | _DOCUMENTS.map(lambda d: json.dumps(d).encode())
    | _DOCUMENTS.map(lambda d: json.dumps(ok(d)).encode())
    | st.lists(_DOCUMENTS).map(lambda d: json.dumps(ok({"metricData": d, "records": d})).encode())
)
_TYPES = st.sampled_from(
    ["application/json", "application/json; charset=gbk", "application/json;charset=utf-16", "", "text/html"]
)


def _everything(data: msgspec.Raw) -> None:
    query = LogQuery(start_ns=0, end_ns=1 << 62)
    for read in (
        lambda: read_metrics(data, task=TASK, metric="gpu", since=EPOCH),
        lambda: read_logs(data, query),
        lambda: read_list_page(data, source="alaya", zone=SHANGHAI),
        lambda: read_pod(data),
    ):
        with contextlib.suppress(SourceError):
            read()


@settings(max_examples=2500, deadline=None)
@given(body=_BODIES, kind=_TYPES, status=st.sampled_from([200, 200, 200, 204, 302, 401, 404, 429, 503, 999]))
def test_any_body_is_an_answer_or_a_source_error(body: bytes, kind: str, status: int) -> None:
    reply = read_reply(HttpAnswer(status=status, content_type=kind, body=body), ["k"])
    if reply.error is not None:
        assert isinstance(reply.error, SourceError)
        assert len(str(reply.error)) < 300
    _everything(reply.data)


@settings(max_examples=300, deadline=None)
@given(times=st.lists(st.integers(1, 2**62), min_size=1, max_size=30), limit=st.integers(1, 40))
def test_a_page_is_sorted_and_loses_no_row(times: list[int], limit: int) -> None:
    rows = [{"timestamp": str(time), "log": str(n), "podName": "p"} for n, time in enumerate(times)]
    page = read_logs(data_of(ok(rows)), LogQuery(start_ns=0, end_ns=1 << 62, limit=limit))

    assert sorted(times) == [line.time_ns for line in page.lines]
    assert page.full == (len(times) >= limit)


def test_since_is_exclusive_to_the_second() -> None:
    since = datetime(2021, 11, 9, 11, 25, tzinfo=UTC)
    assert to_ns(since) == 1636457100 * 10**9
    assert not metrics({"podName": "p", "metricData": points((1636457100, "1"))}, since=since).series
