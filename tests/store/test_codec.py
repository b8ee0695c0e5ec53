"""Every stored value comes back equal: any text, any time, any number the field can hold."""

import math
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchdog.core.alerts import Alert, Change, Incident, Phase, Transition
from watchdog.core.health import ProbeState
from watchdog.core.labels import Labels
from watchdog.core.logs import StreamState
from watchdog.core.moments import Moment
from watchdog.core.notifications import Delivery, DeliveryResult, DeliveryState, LedgerEntry
from watchdog.core.outcomes import Evidence, EvidenceLine
from watchdog.core.rules import Severity
from watchdog.core.tasks import TaskState
from watchdog.errors import StoreError
from watchdog.ports import AttemptCommit, LogSample, PlanCommit, SlotCommit, Stored
from watchdog.store import codec
from watchdog.store.memory import MemoryState

T0 = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Chinese, emoji, NUL, quotes: everything but lone surrogates, which have a test of their own.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["显存快满了", "a'b\"c\\", "line\nline", "\x00", "🔥", "{}", "null"]
)
LEAVES: dict[object, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
    datetime: st.integers(0, 2**52).map(codec.from_moment_us),
    timedelta: st.timedeltas(timedelta(), timedelta(days=40_000)),
    Labels: st.dictionaries(TEXTS, TEXTS, max_size=3).map(Labels),
}
SEEN = st.dictionaries(
    st.integers(-(2**63), 2**64 - 1), st.tuples(st.integers(0, 2**63 - 1), st.integers(1, 2**31)), max_size=5
)


def values(kind: Any, **fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw values of a type; of a dataclass every field, also those that have defaults."""
    if kind in LEAVES:
        return LEAVES[kind]
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(
            kind, **{name: fixed[name] if name in fixed else values(hint) for name, hint in hints.items()}
        )
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    parts = get_args(kind)
    if get_origin(kind) is tuple:
        if parts[1] is not ...:
            return st.tuples(*map(values, parts))
        return st.lists(values(parts[0]), max_size=3).map(tuple)
    if get_origin(kind) is Mapping:
        return st.dictionaries(values(parts[0]), values(parts[1]), max_size=3)
    return st.one_of(*map(values, parts))


def stored_after(*commits: SlotCommit | PlanCommit | AttemptCommit) -> Stored:
    state = MemoryState()
    store = state.open()
    for commit in commits:
        if isinstance(commit, SlotCommit):
            store.commit_slot(commit)
        elif isinstance(commit, PlanCommit):
            store.commit_plan(commit)
        else:
            store.commit_attempt(commit)
    loaded = state.open().load()
    state.discard()
    return loaded


def slot(**changes: Any) -> SlotCommit:
    return SlotCommit(moment=Moment(at=T0, watched=timedelta()), **changes)


@FEW
@given(values(Moment), values(Alert))
def test_alerts(moment: Moment, alert: Alert) -> None:
    stored = stored_after(SlotCommit(moment=moment, alerts=(alert,)))

    assert stored.alerts == (alert,)
    assert stored.moment == moment


@FEW
@given(values(Incident), st.sampled_from(Change))
def test_incidents_and_their_transitions(incident: Incident, change: Change) -> None:
    transition = Transition(incident=incident.id, change=change, at=incident.updated_at)

    stored = stored_after(slot(incidents=(incident,), transitions=(transition,)))

    assert stored.incidents == (incident,)
    assert stored.transitions == (replace(transition, seq=1),)


@FEW
@given(values(TaskState), values(ProbeState))
def test_tasks_and_probes(task: TaskState, probe: ProbeState) -> None:
    stored = stored_after(slot(tasks=(task,), probes=(probe,)))

    assert stored.tasks == (task,)
    assert stored.probes == (probe,)


@FEW
@given(values(StreamState, seen=SEEN), st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_streams_and_memory(stream: StreamState, memory: dict[str, str]) -> None:
    stored = stored_after(slot(streams=(stream,), memory=memory))

    assert stored.streams == (stream,)
    assert stored.memory == memory


@FEW
@given(st.lists(values(LogSample), max_size=4))
def test_samples(samples: list[LogSample]) -> None:
    stored = stored_after(slot(samples=tuple(samples)))

    assert sorted(stored.samples, key=repr) == sorted(samples, key=repr)


@FEW
@given(values(Delivery, id=st.just(0), state=st.just(DeliveryState.PENDING)))
def test_deliveries(row: Delivery) -> None:
    stored = stored_after(PlanCommit(mark=1, deliveries=(row,)))

    assert stored.outbox == (replace(row, id=1),)


@FEW
@given(values(LedgerEntry), values(Delivery, id=st.just(0)), values(DeliveryResult))
def test_ledger_and_attempts(entry: LedgerEntry, row: Delivery, result: DeliveryResult) -> None:
    incident = replace(row.notification.incident, closed_at=None, id=entry.incident)
    row = replace(row, notification=replace(row.notification, incident=incident))
    at = Moment(at=T0, watched=timedelta(seconds=1))

    stored = stored_after(
        slot(incidents=(incident,)), AttemptCommit(delivery=row, result=result, at=at, ledger=entry)
    )

    assert stored.ledger == (entry,)


BROKEN = "loss \ud800 nan"


def test_text_that_is_no_unicode_is_stored_with_replacements() -> None:
    lines = (EvidenceLine(time_ns=1, pod=BROKEN, text=BROKEN),)
    labels = Labels.of(source="alaya", task=BROKEN)
    alert = Alert(id=BROKEN, rule=BROKEN, labels=labels, phase=Phase.FIRING, since=T0)
    incident = Incident(
        id=BROKEN,
        rule=BROKEN,
        labels=labels,
        severity=Severity.INFO,
        event=True,
        opened_at=T0,
        since=T0,
        updated_at=T0,
        first=Evidence(lines=lines),
        params={BROKEN: BROKEN},
    )
    change = Transition(incident=BROKEN, change=Change.OPENED, at=T0)

    stored = stored_after(
        slot(alerts=(alert,), incidents=(incident,), transitions=(change,), memory={BROKEN: BROKEN})
    )

    whole = "loss \ufffd nan"
    assert stored.alerts[0].labels["task"] == whole
    assert stored.incidents[0].first.lines[0].text == whole
    assert stored.incidents[0].params == stored.memory == {whole: whole}
    assert stored.transitions[0].incident == stored.incidents[0].id == whole


def test_numbers_that_are_not_finite_become_no_value() -> None:
    nan = LogSample(metric="m", labels=Labels(), time_ns=1, value=math.nan)
    infinite = LogSample(metric="m", labels=Labels(), time_ns=2, value=math.inf)
    evidence_text = codec.encode(Evidence(value=math.nan, threshold=math.inf, spark=(math.nan, 1.0)))

    stored = stored_after(slot(samples=(nan, infinite)))

    assert math.isnan(stored.samples[0].value)
    assert stored.samples[1].value == math.inf
    assert '"value":null,"threshold":null' in evidence_text
    assert '"spark":[null,1.0]' in evidence_text


def test_a_row_that_cannot_be_read_is_named() -> None:
    with pytest.raises(StoreError, match=r"holds alert a1 in a form this version cannot read: .*phase"):
        codec.decode(
            codec.ALERT,
            '{"id":"a1","rule":"r","labels":{},"phase":"purple","since":"2026-11-30T08:00:00Z"}',
            "alert a1",
        )


@pytest.mark.parametrize("moment", [T0, datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)])
def test_times_are_exact_to_the_microsecond(moment: datetime) -> None:
    assert codec.from_moment_us(codec.moment_us(moment)) == moment
    span = timedelta(days=400, microseconds=1)
    assert codec.from_span_us(codec.span_us(span)) == span
