"""Events fold into one incident, are told again only when something new comes, and end quietly."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from watchdog.core import events
from watchdog.core.alerts import Change, CloseReason, Incident
from watchdog.core.conditions.kinds import LogEvent, LogMatch, Silent, StatusEnters
from watchdog.core.durations import to_ns
from watchdog.core.endings import close_rule_removed, close_unwatched
from watchdog.core.events import FINGERPRINTS_KEPT, NEWS_KEPT, advance_events, quiet_expired
from watchdog.core.evidence import LINES_SHOWN
from watchdog.core.incidents import Book, Step, apply
from watchdog.core.labels import Labels
from watchdog.core.moments import Moment, Tick
from watchdog.core.outcomes import Evidence, EvidenceLine, Member, Occurrence
from watchdog.core.rules import Rule
from watchdog.core.tasks import Status, Task

T0 = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ME = Task(key="alaya/1", source="alaya", id="1", name="llama").identity
RULE = Rule(name="errors", condition=LogEvent(lines=LogMatch(match=())))
ENDED = Rule(name="ended", condition=StatusEnters(statuses=frozenset({Status.FAILED})))


def line(
    text: str, seconds: float, pod: str = "p0", *, matched: bool = True, repeated: int = 1
) -> EvidenceLine:
    time_ns = to_ns(T0 + timedelta(seconds=seconds))
    return EvidenceLine(time_ns=time_ns, pod=pod, text=text, matched=matched, repeated=repeated)


def seen(
    kind: str = "error",
    seconds: float = 0,
    *,
    labels: Labels = ME,
    count: int = 1,
    lines: Sequence[EvidenceLine] = (),
    late: bool = False,
) -> Occurrence:
    return Occurrence(
        rule="errors",
        labels=labels,
        at=T0 + timedelta(seconds=seconds),
        fingerprint=kind,
        count=count,
        evidence=Evidence(lines=tuple(lines) or (line(kind, seconds, repeated=count),)),
        late=late,
    )


class Play:
    def __init__(self) -> None:
        self.book = Book()
        self.told: list[tuple[int, Change]] = []
        self.closed: list[Incident] = []

    def slot(self, minute: int, *occurrences: Occurrence, settling: bool = False, rule: Rule = RULE) -> Step:
        tick = Tick(
            moment=Moment(at=T0 + minute * MINUTE, watched=minute * MINUTE),
            elapsed=MINUTE,
            run=minute * MINUTE,
            interval=MINUTE,
            settling=settling,
        )
        step = advance_events(rule, occurrences, self.book, tick)
        self._take(minute, step)
        self._take(minute, quiet_expired(self.book, tick, {RULE.name: RULE}))
        return step

    def _take(self, minute: int, step: Step) -> None:
        self.book = apply(self.book, step)
        self.told += [(minute, one.change) for one in step.transitions]
        self.closed += [one for one in step.incidents if not one.open]

    @property
    def incident(self) -> Incident:
        return next(iter(self.book.open.values()))


OPENED, GREW, CLOSED = Change.OPENED, Change.GREW, Change.CLOSED


def texts(evidence: Evidence) -> list[str]:
    return [one.text for one in evidence.lines]


def test_like_events_fold_in_with_a_count() -> None:
    play = Play()
    play.slot(0, seen(), seen())
    play.slot(1, seen(seconds=70, count=5))
    assert play.told == [(0, OPENED)]
    assert play.incident.count == 7
    assert play.incident.event


def test_a_new_fingerprint_is_an_update_once_a_slot() -> None:
    play = Play()
    play.slot(0, seen("a"))
    play.slot(1, seen("a"), seen("b"), seen("c"))
    play.slot(2, seen("c"), seen("b"))
    assert play.told == [(0, OPENED), (1, GREW)]
    assert play.incident.fingerprints == ("a", "c", "b")


def test_it_ends_quietly_after_quiet_for_of_watched_time() -> None:  # D10
    play = Play()
    play.slot(0, seen())
    play.slot(20, seen(seconds=1200))
    play.slot(49)
    assert play.closed == []
    play.slot(50)
    assert play.closed[0].close_reason is CloseReason.QUIET
    assert play.book.open == {}
    play.slot(51, seen())
    assert play.told == [(0, OPENED), (50, CLOSED), (51, OPENED)]
    assert play.incident.id != play.closed[0].id


def test_a_hole_inside_a_burst_is_one_incident() -> None:  # B19
    play = Play()
    for minute in (0, 1, 2, 6, 7):
        play.slot(minute, seen())
    assert play.told == [(0, OPENED)]


def test_labelsets_have_incidents_of_their_own() -> None:
    play = Play()
    pods = [ME.plus({"pod": name}) for name in ("p0", "p1")]
    play.slot(0, *(seen(labels=labels) for labels in pods))
    assert play.told == [(0, OPENED), (0, OPENED)]
    assert [incident.labels for incident in play.book.open.values()] == pods


def test_settling_slots_lose_no_event() -> None:
    play = Play()
    play.slot(0, seen(), settling=True)
    assert play.told == [(0, OPENED)]


def test_what_came_late_is_marked() -> None:
    play = Play()
    play.slot(9, seen(seconds=10, late=True))
    assert play.incident.late
    assert play.incident.since == T0 + timedelta(seconds=10)


def test_fingerprints_are_capped_newest_last() -> None:
    play = Play()
    play.slot(0, *(seen(f"kind {number}") for number in range(FINGERPRINTS_KEPT + 50)))
    assert len(play.incident.fingerprints) == FINGERPRINTS_KEPT
    assert play.incident.fingerprints[-1] == f"kind {FINGERPRINTS_KEPT + 49}"


def test_the_cause_leads_500_consequences() -> None:  # D14
    play = Play()
    noise = [
        seen(
            "closed",
            2 + number / 1000,
            lines=[line("connection closed by peer", 2 + number / 1000, f"p{number}")],
        )
        for number in range(511)
    ]
    cause = seen("ecc", 0, lines=[line("CUDA error: uncorrectable ECC", 0, "p511")])
    play.slot(0, *noise[:300], cause, *noise[300:])
    evidence = play.incident.first
    assert texts(evidence)[0] == "CUDA error: uncorrectable ECC"
    assert evidence.lines[0].pod == "p511"
    assert len(evidence.lines) == LINES_SHOWN
    assert evidence.more_lines == 512 - LINES_SHOWN


def test_lines_lead_by_their_own_time_not_by_when_the_run_of_them_ended() -> None:
    play = Play()
    play.slot(0, seen("effect", 20), seen("cause", 50, lines=[line("cause", 10), line("cause again", 50)]))
    assert texts(play.incident.first)[0] == "cause"


def test_the_cause_still_leads_an_update() -> None:
    play = Play()
    play.slot(0, seen("cause", 0))
    play.slot(1, seen("later", 60))
    assert texts(play.incident.latest) == ["cause", "later"]
    assert texts(play.incident.first) == ["cause"]
    play.slot(2, seen("latest", 120))
    assert texts(play.incident.latest) == ["cause", "latest"]


def test_a_cause_that_comes_late_takes_the_lead() -> None:
    play = Play()
    play.slot(0, seen("effect", 30))
    play.slot(3, seen("cause", 5, late=True))
    play.slot(4, seen("more", 200))
    assert texts(play.incident.latest) == ["cause", "more"]
    assert texts(play.incident.first) == ["effect"]


def test_every_kind_is_shown_before_more_of_the_same() -> None:
    play = Play()
    block = [line(f"frame {number}", number, matched=number == 0) for number in range(10)]
    flood = [seen("a", 0, lines=block) for _ in range(1)]
    flood += [seen("a", 20 + n, lines=[line(f"again {n}", 20 + n)]) for n in range(60)]
    play.slot(0, *flood, seen("b", 100, lines=[line("other kind", 100)]))
    assert texts(play.incident.first)[-1] == "other kind"


def test_context_shared_by_two_hits_is_shown_once() -> None:
    play = Play()
    shared = [line("a", 0), line("between", 1, matched=False), line("b", 2)]
    first = [shared[0], shared[1], line("b", 2, matched=False)]
    second = [line("a", 0, matched=False), *shared[1:]]
    play.slot(0, seen("x", 0, lines=first), seen("y", 2, lines=second))
    assert [(one.text, one.matched) for one in play.incident.first.lines] == [
        ("a", True),
        ("between", False),
        ("b", True),
    ]
    assert play.incident.first.more_lines == 0


def test_events_without_lines_show_the_newest() -> None:
    play = Play()
    for minute, word in enumerate(("failed", "paused")):
        occurrence = Occurrence(
            rule="ended",
            labels=ME,
            at=T0 + minute * MINUTE,
            fingerprint=word,
            count=1,
            evidence=Evidence(detail=word),
        )
        play.slot(minute, occurrence, rule=ENDED)
    assert (play.incident.first.detail, play.incident.latest.detail) == ("failed", "paused")
    assert play.told == [(0, OPENED), (1, GREW)]


def test_a_removed_rule_and_an_unwatched_task_end_events() -> None:
    play = Play()
    play.slot(0, seen())
    at = T0 + MINUTE
    assert close_rule_removed(play.book, [RULE], at).empty
    assert close_rule_removed(play.book, [], at).incidents[0].close_reason is CloseReason.RULE_REMOVED
    assert close_unwatched(play.book, {"alaya/2"}, at).incidents[0].close_reason is CloseReason.UNWATCHED


def test_a_rule_that_turned_into_a_state_ends_its_events() -> None:
    play = Play()
    play.slot(0, seen())
    state = Rule(name="errors", condition=Silent())
    assert len(close_rule_removed(play.book, [state], T0).incidents) == 1


@pytest.mark.parametrize("restart", [False, True])
def test_the_book_finds_open_events_again(restart: bool) -> None:
    play = Play()
    play.slot(0, seen())
    if restart:
        play.book = Book.of((), play.book.open.values())
    play.slot(1, seen())
    assert play.told == [(0, OPENED)]


def test_the_leading_line_of_each_kind_is_kept_until_all_were_told() -> None:
    play = Play()
    play.slot(0, seen("a"))
    play.slot(1, seen("b", 60), seen("c", 61))
    play.slot(2, seen("b", 120), seen("d", 121))

    assert [(one.text, one.kind) for one in play.incident.news] == [(kind, kind) for kind in "abcd"]
    for number in range(NEWS_KEPT):
        play.slot(3, seen(f"more {number}", 200 + number))
    assert len(play.incident.news) == NEWS_KEPT
    assert play.incident.news[-1].text == f"more {NEWS_KEPT - 1}"


def test_what_has_no_line_is_kept_in_its_own_words() -> None:
    play = Play()
    play.slot(0, replace(seen("failed"), evidence=Evidence(summary="running → failed")), rule=ENDED)

    assert [(one.text, one.time_ns) for one in play.incident.news] == [("running → failed", to_ns(T0))]


def test_fingerprints_that_were_forgotten_are_counted() -> None:  # K5
    play = Play()
    for minute in range(4):
        play.slot(minute, *(seen(f"kind {minute}/{number}") for number in range(FINGERPRINTS_KEPT)))
    assert len(play.incident.fingerprints) == FINGERPRINTS_KEPT
    assert play.incident.evicted == 3 * FINGERPRINTS_KEPT
    assert play.incident.count == 4 * FINGERPRINTS_KEPT


def test_beyond_the_room_for_incidents_events_join_one_for_their_task(  # K6
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "MOST_INCIDENTS", 3)
    play = Play()
    pods = [ME.plus({"pod": f"p{number}"}) for number in range(10)]
    play.slot(0, *(seen(labels=labels) for labels in pods))
    incidents = {incident.labels: incident.count for incident in play.book.open.values()}
    assert incidents == {pods[0]: 1, pods[1]: 1, pods[2]: 1, ME: 7}
    play.slot(1, *(seen(labels=labels) for labels in pods))
    incidents = {incident.labels: incident.count for incident in play.book.open.values()}
    assert incidents == {pods[0]: 2, pods[1]: 2, pods[2]: 2, ME: 14}


def test_whom_an_incident_for_the_whole_task_is_about_is_counted_and_so_is_what_came_until_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "MOST_INCIDENTS", 3)
    play = Play()
    cards = [ME.plus({"pod": f"p{number}", "gpu": "0"}) for number in range(20)]
    stepped = [
        Occurrence(
            rule="errors",
            labels=labels,
            at=T0,
            fingerprint=labels["pod"],
            count=2,
            evidence=Evidence(
                summary=f"XidErrors 0 → {number}",
                value=float(number),
                above=True,
                members=(Member(labels=Labels.of(pod=labels["pod"], gpu="0"), value=float(number)),),
                affected=1,
                of=1,
                covered=1,
            ),
        )
        for number, labels in enumerate(cards)
    ]
    play.slot(0, *stepped)
    whole = next(incident for incident in play.book.open.values() if incident.labels == ME)
    assert (whole.first.affected, whole.first.of, whole.first.covered) == (17, 17, 17)
    assert [member.labels["pod"] for member in whole.first.members] == [f"p{19 - n}" for n in range(10)]

    play.slot(20, *stepped[10:])
    play.slot(60)
    assert {incident.labels: incident.count for incident in play.closed}[ME] == (17 + 10) * 2
    assert sum(incident.count for incident in play.closed) == (20 + 10) * 2


def test_pods_whose_lines_join_an_incident_for_the_whole_task_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "MOST_INCIDENTS", 0)
    play = Play()
    play.slot(0, *(seen(labels=ME.plus({"pod": f"p{n}"}), lines=[line("E", n, f"p{n}")]) for n in range(3)))
    assert play.incident.first.affected == 3
    assert [member.labels["pod"] for member in play.incident.first.members] == ["p0", "p1", "p2"]
