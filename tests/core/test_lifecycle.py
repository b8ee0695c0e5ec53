"""The table of DESIGN §6, cell by cell, and the scenarios that rest on it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from watchdog.core import carrying, lifecycle
from watchdog.core.alerts import Alert, Change, CloseReason, Incident, Phase
from watchdog.core.conditions.kinds import Absent, Aggregate, By, Comparison, StatusIs, Threshold
from watchdog.core.durations import to_ns
from watchdog.core.endings import close_rule_removed, close_unwatched, forget, renew
from watchdog.core.incidents import Book, Step, apply, join
from watchdog.core.labels import Labels
from watchdog.core.lifecycle import Gate, advance, gate, left_out
from watchdog.core.membership import Verdicts
from watchdog.core.moments import Moment, Tick
from watchdog.core.outcomes import Evaluation, Evidence, Outcome
from watchdog.core.rules import Level, OnNoData, Rule, Selector, Severity
from watchdog.core.tasks import Status, Task, TaskState

T0 = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TASK = Task(key="alaya/1", source="alaya", id="1", name="llama")
ME = TASK.identity
F, T, B, N, H, E = Outcome.FALSE, Outcome.TRUE, Outcome.BETWEEN, Outcome.NODATA, Outcome.THIN, Outcome.ERROR
LETTERS = {"F": F, "T": T, "B": B, "N": N, "H": H, "E": E}

RUNNING = frozenset({Status.RUNNING, Status.UNKNOWN})
CONDITION = Threshold(
    metric="gpu",
    aggregate=Aggregate.AVG,
    window=timedelta(minutes=10),
    comparison=Comparison(above=False, threshold=0.2),
)
LOW = Rule(name="low", condition=CONDITION, hold=10 * MINUTE, while_status=RUNNING)
NOW = replace(LOW, hold=timedelta())


def gpu(number: int, pod: str = "p0") -> Labels:
    return ME.plus({"pod": pod, "gpu": str(number)})


class Play:
    """Feeds verdicts to `advance`, one slot a minute, and keeps what it decided."""

    def __init__(self, rule: Rule = LOW) -> None:
        self.rule = rule
        self.book = Book()
        self.minute = -1
        self.watched = timedelta()
        self.run = timedelta()
        self.tasks = {TASK.key: TaskState(task=TASK, status=Status.RUNNING)}
        self.told: list[tuple[int, Change]] = []
        self.closed: list[Incident] = []
        self.explained: list[tuple[int, int]] = []
        self.restarting = True
        self.last: Evaluation | None = None  # of the slot before
        self.before: Moment | None = None

    def restart(self, minutes: int = 0) -> None:
        """The process ends now and starts so many minutes after the next slot was due."""
        self.minute += minutes
        self.restarting, self.last = True, None
        self.book = Book.of(self.book.all_alerts(), self.book.open.values())

    def evaluation(
        self,
        verdicts: Mapping[Labels, Outcome],
        value: float | Mapping[Labels, float],
        since: datetime | None,
    ) -> Evaluation:
        labels = tuple(verdicts)
        values = [value[one] if isinstance(value, Mapping) else value for one in labels]

        def explain(g: int, t: int) -> Evidence:
            self.explained.append((g, t))
            return Evidence(metric="gpu", value=values[g], detail=f"minute {self.minute}")

        return Evaluation(
            rule=self.rule.name,
            labels=labels,
            outcome=np.array([[int(verdict)] for verdict in verdicts.values()], np.int8).reshape(-1, 1),
            value=np.array([[one] for one in values], np.float64).reshape(-1, 1),
            since_ns=np.full((len(labels), 1), to_ns(since) if since else 0, np.int64),
            explain=explain,
        )

    def slot(
        self,
        verdict: Outcome | Mapping[Labels, Outcome] | None = None,
        *,
        settling: bool = False,
        value: float | Mapping[Labels, float] = 0.05,
        since: datetime | None = None,
    ) -> Step:
        verdicts = verdict if isinstance(verdict, Mapping) else {} if verdict is None else {ME: verdict}
        elapsed = timedelta() if self.restarting or settling else MINUTE
        self.run = timedelta() if self.restarting or settling else self.run + elapsed
        self.watched += elapsed
        self.minute += 1
        self.restarting = False
        tick = Tick(
            moment=Moment(at=self.at, watched=self.watched),
            elapsed=elapsed,
            run=self.run,
            interval=MINUTE,
            settling=settling,
            before=self.before,
        )
        self.before = tick.moment
        evaluation = self.evaluation(verdicts, value, since)
        step = advance(Verdicts(self.rule, evaluation, 0, tick, self.tasks, self.last), self.book)
        self.last = evaluation
        return self.take(step)

    def take(self, step: Step) -> Step:
        self.book = apply(self.book, step)
        self.told += [(self.minute, one.change) for one in step.transitions]
        self.closed += [one for one in step.incidents if not one.open]
        return step

    def slots(self, letters: str) -> "Play":
        for letter in letters.replace(" ", ""):
            self.slot(LETTERS[letter])
        return self

    @property
    def at(self) -> datetime:
        return T0 + self.minute * MINUTE

    @property
    def alert(self) -> Alert | None:
        """The alert as the newest slot left it."""
        known = [one for one in self.book.known(self.rule.name).values() if one.labels == ME]
        if not known or self.before is None:
            return None
        measured = {} if self.last is None else carrying.values(self.last, 0)
        return carrying.as_of(known, measured, self.before)[0]

    @property
    def incident(self) -> Incident:
        return next(iter(self.book.open.values()))

    @property
    def phase(self) -> Phase:
        return self.alert.phase if self.alert else Phase.INACTIVE

    def status(self, status: Status, **more: datetime) -> None:
        self.tasks = {TASK.key: replace(self.tasks[TASK.key], status=status, **more)}


def told(letters: str, rule: Rule = LOW) -> list[tuple[int, Change]]:
    return Play(rule).slots(letters).told


OPENED, GREW, ESCALATED, CLOSED = Change.OPENED, Change.GREW, Change.ESCALATED, Change.CLOSED


# The table -------------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", "BFNHE")
def test_inactive_stays_inactive_unless_true(letter: str) -> None:
    play = Play(NOW).slots(letter * 3)
    assert play.phase is Phase.INACTIVE
    assert play.book == Book()


def test_inactive_and_true_is_pending_with_for_and_fires_without() -> None:
    assert Play(LOW).slots("T").phase is Phase.PENDING
    assert told("FT", NOW) == [(1, OPENED)]


@pytest.mark.parametrize(
    ("on_no_data", "changes"),
    [(OnNoData.HOLD, []), (OnNoData.FIRE, [(0, OPENED)]), (OnNoData.OK, [])],
)
def test_inactive_and_no_data(on_no_data: OnNoData, changes: list[tuple[int, Change]]) -> None:
    assert told("NNN", replace(NOW, on_no_data=on_no_data)) == changes


def test_pending_fires_at_the_first_slot_where_held_reaches_for() -> None:
    assert told("T" * 12) == [(10, OPENED)]


@pytest.mark.parametrize("letter", "BF")
def test_pending_and_false_or_between_is_inactive_and_starts_anew(letter: str) -> None:
    play = Play().slots("TTTTT" + letter)
    assert play.phase is Phase.INACTIVE
    assert play.slots("T" * 11).told == [(16, OPENED)]


def test_pending_survives_two_intervals_without_data_and_time_goes_on() -> None:
    assert told("TTTTTT N TTTT") == [(10, OPENED)]  # A1
    assert told("TTTTT NN TTTT") == [(10, OPENED)]


def test_pending_is_inactive_after_longer_without_data() -> None:
    assert Play().slots("TTTT NN").phase is Phase.PENDING
    assert Play().slots("TTTT NNN").phase is Phase.INACTIVE
    assert told("TTTT NNN TTTTTTTTTT") == []


def test_pending_never_fires_on_missing_data() -> None:
    assert told("TTTTTTTTT NN T") == [(11, OPENED)]


def test_missing_data_with_fire_counts_as_true_and_with_ok_as_false() -> None:
    assert told("TTTT NNNNNNN", replace(LOW, on_no_data=OnNoData.FIRE)) == [(10, OPENED)]
    assert Play(replace(LOW, on_no_data=OnNoData.OK)).slots("TTN").phase is Phase.INACTIVE


@pytest.mark.parametrize("letter", "HE")
def test_pending_and_blocked_stays_but_time_does_not_count(letter: str) -> None:
    assert told("TTTTTT" + letter * 3 + "TTTTTT") == [(13, OPENED)]


@pytest.mark.parametrize("letter", "HE")
def test_pending_is_inactive_after_an_hour_blocked(letter: str) -> None:
    assert Play().slots("T" + letter * 59).phase is Phase.PENDING
    assert Play().slots("T" + letter * 60).phase is Phase.INACTIVE


def test_blindness_does_not_reset_what_is_missing() -> None:
    assert Play().slots("T NE NE N").phase is Phase.INACTIVE


def test_firing_stays_while_true_without_another_word() -> None:
    assert told("T" * 500, NOW) == [(0, OPENED)]


def test_firing_resolves_at_once_without_keep_firing_for() -> None:
    play = Play(NOW).slots("TTTF")
    assert play.told == [(0, OPENED), (3, CLOSED)]
    assert play.closed[0].close_reason is CloseReason.RECOVERED
    assert play.book == Book()


def test_firing_resolves_after_unbroken_false() -> None:
    keep = replace(NOW, keep_firing_for=5 * MINUTE, repeat=timedelta(hours=2))
    assert told("T" * 30 + "F" * 6, keep) == [(0, OPENED), (35, CLOSED)]  # A9


@pytest.mark.parametrize("letter", "TBN")
def test_keep_firing_for_starts_anew_after_anything_but_false(letter: str) -> None:
    keep = replace(NOW, keep_firing_for=5 * MINUTE)
    assert told("T FFFF" + letter + "FFFFF", keep) == [(0, OPENED)]
    assert told("T FFFF" + letter + "FFFFFF", keep) == [(0, OPENED), (11, CLOSED)]


@pytest.mark.parametrize("letter", "HE")
def test_blindness_freezes_keep_firing_for(letter: str) -> None:
    keep = replace(NOW, keep_firing_for=5 * MINUTE)
    assert told("T FFFF" + letter * 50 + "FF", keep) == [(0, OPENED), (56, CLOSED)]


@pytest.mark.parametrize("letter", "BTHE")
def test_firing_stays_for_ever_without_false(letter: str) -> None:
    assert told("T" + letter * 300, NOW) == [(0, OPENED)]


def test_firing_without_data_is_held_30_minutes_then_closed_as_gone() -> None:
    play = Play(NOW).slots("T" + "N" * 30)
    assert play.told == [(0, OPENED)]
    play.slots("N")
    assert play.told == [(0, OPENED), (31, CLOSED)]
    assert play.closed[0].close_reason is CloseReason.DATA_GONE


@pytest.mark.parametrize("letter", "TB")
def test_data_in_between_starts_the_30_minutes_anew(letter: str) -> None:
    assert told("T" + "N" * 20 + letter + "N" * 30, NOW) == [(0, OPENED)]


def test_blindness_freezes_the_30_minutes() -> None:
    assert told("T" + "N" * 20 + "E" * 60 + "N" * 10, NOW) == [(0, OPENED)]
    assert told("T" + "N" * 20 + "E" * 60 + "N" * 11, NOW) == [(0, OPENED), (91, CLOSED)]


def test_firing_without_data_under_fire_stays_and_under_ok_never_says_recovered() -> None:
    assert told("T" + "N" * 200, replace(NOW, on_no_data=OnNoData.FIRE)) == [(0, OPENED)]
    play = Play(replace(NOW, on_no_data=OnNoData.OK)).slots("TN")
    assert play.closed[0].close_reason is CloseReason.DATA_GONE


def test_absent_rules_never_see_missing_data() -> None:
    absent = replace(NOW, condition=Absent(metric="gpu"))
    play = Play(absent)
    play.slot({gpu(0): T})
    for _ in range(200):
        play.slot({})
    assert play.told == [(0, OPENED)]


# Time --------------------------------------------------------------------------------------------


def test_since_gives_a_head_start_that_never_exceeds_the_watch() -> None:
    silent = Play()
    silent.slots("FFFF")
    silent.slot(T, since=T0 - timedelta(days=1))
    assert silent.alert is not None
    assert silent.alert.held == 4 * MINUTE
    assert silent.alert.since == T0 - timedelta(days=1)
    fresh = Play().slots("FFFFFF")
    fresh.slot(T, since=T0 + 4 * MINUTE)
    assert fresh.alert is not None
    assert fresh.alert.held == 2 * MINUTE


def test_a_start_in_the_future_is_no_head_start() -> None:
    play = Play().slots("FFFF")
    play.slot(T, since=T0 + timedelta(hours=3))
    assert play.alert is not None
    assert play.alert.held == timedelta()
    assert play.alert.since == play.at


def test_downtime_does_not_count_for_pending() -> None:
    play = Play().slots("TTTTTTTTT")  # T+0 … T+8
    play.restart(minutes=0)
    assert play.slots("TTT").told == [(11, OPENED)]  # C3: slots at T+9 (0), T+10, T+11


def test_a_long_downtime_completes_nothing() -> None:
    play = Play().slots("TTTTT")
    play.restart(minutes=600)
    play.slots("TTTTT")
    assert play.told == []
    assert play.slots("TT").told == [(play.minute, OPENED)]


def test_settling_slots_freeze_everything() -> None:
    play = Play(NOW).slots("T")
    before = play.alert
    for verdict in (F, N, T, B):
        assert not play.slot(verdict, settling=True).transitions
        assert play.alert == before
    play.status(Status.FAILED)
    assert play.slot(settling=True).empty
    assert play.alert == before
    assert Play(NOW).slot(T, settling=True).empty


def test_clock_jumps_complete_nothing() -> None:  # C15
    play = Play().slots("TTTTT")
    for hours in (-1, 6):
        play.minute += 60 * hours
        play.slot(T, settling=True)
        play.slot(T, settling=True)
    assert play.told == []
    assert play.alert is not None
    assert play.alert.held == 4 * MINUTE


def test_jitter_and_a_slow_query_fire_once() -> None:  # A11
    play = Play(LOW)
    told_in_all: list[Change] = []
    watched = at = run = timedelta()
    for number in range(360):
        elapsed = timedelta(seconds=[60, 45, 80, 60, 90][number % 5]) if number else timedelta()
        watched, at, run = watched + elapsed, at + elapsed, run + elapsed
        tick = Tick(moment=Moment(at=T0 + at, watched=watched), elapsed=elapsed, run=run, interval=MINUTE)
        step = advance(Verdicts(LOW, play.evaluation({ME: T}, 0.1, None), 0, tick, play.tasks), play.book)
        play.book = apply(play.book, step)
        told_in_all += [one.change for one in step.transitions]
    assert told_in_all == [OPENED]


# Life and its telling ----------------------------------------------------------------------------


def test_changing_values_are_one_incident() -> None:  # A5
    play = Play(NOW)
    for value in (4.1, 4.3, 3.9):
        play.slot(T, value=value)
    assert play.told == [(0, OPENED)]
    assert play.alert is not None
    assert play.alert.value == 3.9
    assert len(play.book.open) == 1


def test_a_second_life_needs_the_full_hold_and_is_another_incident() -> None:  # A8, E18
    play = Play().slots("T" * 11 + "F" + "T" * 10)
    assert play.told == [(10, OPENED), (11, CLOSED)]
    play.slots("T")
    assert play.told[2:] == [(22, OPENED)]
    assert play.incident.id != play.closed[0].id


def test_restart_while_firing_says_nothing_until_false() -> None:  # C1
    play = Play(NOW).slots("TTTTTT")
    incident = play.incident.id
    play.restart()
    play.slots("ENTTT")
    assert play.told == [(0, OPENED)]
    assert play.incident.id == incident
    play.slots("F")
    assert [change for _, change in play.told] == [OPENED, CLOSED]
    assert play.closed[0].close_note == ""


@pytest.mark.parametrize("before", ["", "E", "NN", "EE"])
def test_recovery_during_downtime_says_so(before: str) -> None:  # C2
    play = Play(NOW).slots("TTTTT")
    play.restart(minutes=20)
    play.slots(before + "F")
    assert play.closed[0].close_reason is CloseReason.RECOVERED
    assert play.closed[0].close_note == "while the watchdog was not running"


def test_recovery_during_downtime_is_said_after_the_hold() -> None:
    play = Play(replace(NOW, keep_firing_for=3 * MINUTE)).slots("TTTTT")
    play.restart(minutes=20)
    play.slots("FFF")
    assert play.closed == []
    play.slots("F")
    assert play.closed[0].close_note == "while the watchdog was not running"


@pytest.mark.parametrize("after", ["TF", "BF", "EEEEEEEEEF"])
def test_recovery_seen_by_us_does_not_blame_the_downtime(after: str) -> None:
    play = Play(NOW).slots("TTTTT")
    play.restart(minutes=20)
    play.slots(after)
    assert play.closed[0].close_note == ""


def test_healthy_tasks_say_nothing_after_a_restart() -> None:  # C10
    play = Play(NOW).slots("FFF")
    play.restart()
    assert play.slots("FFF").told == []


def test_blindness_keeps_the_incident() -> None:  # B1
    play = Play(NOW).slots("T")
    incident = play.incident
    play.slots("E" * 20 + "T")
    assert play.told == [(0, OPENED)]
    assert play.incident.id == incident.id


def test_evidence_is_asked_for_only_when_something_is_told() -> None:
    play = Play(replace(NOW, keep_firing_for=2 * MINUTE)).slots("TTTTTT")
    assert play.explained == [(0, 0)]
    assert play.incident.first.detail == "minute 0"
    play.slots("FF")
    assert len(play.explained) == 1
    play.slots("F")
    assert len(play.explained) == 2
    assert play.closed[0].first.detail == "minute 0"
    assert play.closed[0].latest.detail == "minute 8"


def test_levels_escalate_on_one_incident_and_never_go_back() -> None:
    levels = (
        Level(hold=2 * MINUTE, severity=Severity.INFO),
        Level(hold=5 * MINUTE, severity=Severity.WARNING),
        Level(hold=9 * MINUTE, severity=Severity.CRITICAL),
    )
    play = Play(replace(LOW, levels=levels, keep_firing_for=30 * MINUTE))
    play.slots("T" * 7)
    assert play.told == [(2, OPENED), (5, ESCALATED)]
    assert play.incident.severity is Severity.WARNING
    play.slots("B" + "T" * 8)  # without a break: counted anew
    assert play.told[2:] == []
    play.slots("FTT")
    assert play.incident.severity is Severity.WARNING
    play.slots("T" * 8)
    assert [change for _, change in play.told[2:]] == [ESCALATED]
    assert play.incident.severity is Severity.CRITICAL


def test_a_first_level_of_zero_fires_at_once() -> None:
    levels = (
        Level(hold=timedelta(), severity=Severity.WARNING),
        Level(hold=30 * MINUTE, severity=Severity.CRITICAL),
    )
    assert told("T" * 40, replace(LOW, levels=levels)) == [(0, OPENED), (30, ESCALATED)]


# Members -----------------------------------------------------------------------------------------


def test_gpus_of_a_task_share_one_incident_that_grows() -> None:
    play = Play(replace(NOW, condition=replace(CONDITION, by=By.GPU)))
    values = {gpu(n): n / 100 for n in range(8)}
    play.slot({gpu(n): T if n < 5 else F for n in range(8)}, value=values)
    assert play.told == [(0, OPENED)]
    first = play.incident
    assert len(first.members) == 5
    assert (first.first.affected, first.first.of) == (5, 8)
    assert [member.value for member in first.first.members] == [0.0, 0.01, 0.02, 0.03, 0.04]
    play.slot({gpu(n): T if n < 7 else F for n in range(8)}, value=values)
    assert play.told[1:] == [(1, GREW)]
    assert (play.incident.latest.affected, play.incident.first.affected) == (7, 5)
    play.slot({gpu(n): F if n else T for n in range(8)}, value=values)
    assert len(play.told) == 2
    assert [member.labels for member in play.incident.active] == [gpu(0)]
    play.slot({gpu(n): T if n < 7 else F for n in range(8)}, value=values)
    assert len(play.told) == 2, "who left and is back is no news"
    play.slot(dict.fromkeys(values, F), value=values)
    assert [change for _, change in play.told] == [OPENED, GREW, CLOSED]
    assert play.closed[0].close_reason is CloseReason.RECOVERED


def test_the_worst_member_is_explained() -> None:
    play = Play(replace(NOW, condition=replace(CONDITION, by=By.GPU)))
    play.slot({gpu(0): T, gpu(1): T}, value={gpu(0): 0.1, gpu(1): 0.02})
    assert play.incident.first.value == 0.02


def test_an_incident_is_recovered_only_if_every_member_is() -> None:
    play = Play(replace(NOW, condition=replace(CONDITION, by=By.GPU)))
    play.slot({gpu(0): T, gpu(1): T})
    for _ in range(31):
        play.slot({gpu(0): T, gpu(1): N})
    assert play.closed == []
    play.slot({gpu(0): F, gpu(1): N})
    assert play.closed[0].close_reason is CloseReason.DATA_GONE
    assert play.closed[0].close_note == "1 of 2 recovered"


def test_tasks_do_not_share_incidents() -> None:
    other = Task(key="alaya/2", source="alaya", id="2", name="other")
    play = Play(NOW)
    play.tasks = {**play.tasks, other.key: TaskState(task=other, status=Status.RUNNING)}
    play.slot({ME: T, other.identity: T})
    assert play.told == [(0, OPENED), (0, OPENED)]
    play.slot({ME: F, other.identity: T})
    assert [incident.labels for incident in play.book.open.values()] == [other.identity]


# Tasks that stop being judged ---------------------------------------------------------------------


@pytest.mark.parametrize("status", [Status.QUEUED, Status.PAUSED, Status.LOADING])
def test_held_still_by_status_is_frozen(status: Status) -> None:
    play = Play(NOW).slots("T")
    play.status(status)
    for verdict in [None] * 100 + [F, N, T]:
        play.slot(verdict)
    assert play.told == [(0, OPENED)]
    idle = Play(NOW)
    idle.status(status)
    assert idle.slot(T).empty


def test_pending_and_held_still_is_as_blocked() -> None:
    play = Play().slots("TTTTTT")
    play.status(Status.PAUSED)
    for _ in range(10):
        play.slot()
    play.status(Status.RUNNING)
    assert play.slots("TTTTT").told == [(20, OPENED)]


def test_after_start_holds_still() -> None:
    play = Play(replace(NOW, after_start=30 * MINUTE)).slots("T")
    play.status(Status.RUNNING, attempt_started=T0)
    for _ in range(29):
        play.slot()
    assert play.told == [(0, OPENED)]
    play.slot(F)
    assert play.told == [(0, OPENED), (30, CLOSED)]


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.CANCELED, Status.VANISHED])
@pytest.mark.parametrize("verdict", [None, T, F])
def test_the_end_of_the_task_closes_at_once(status: Status, verdict: Outcome | None) -> None:  # B6
    play = Play(NOW).slots("T")
    play.status(status)
    play.slot(verdict)
    assert play.told == [(0, OPENED), (1, CLOSED)]
    assert play.closed[0].close_reason is CloseReason.TASK_ENDED
    assert play.closed[0].close_note == str(status)
    for _ in range(20):
        play.slot(T)
    assert len(play.told) == 2


def test_the_end_of_the_task_drops_pending_in_silence() -> None:
    play = Play().slots("TT")
    play.status(Status.FAILED)
    play.slot()
    assert play.book == Book()
    assert play.told == []


def test_rules_about_the_end_itself_go_on_after_it() -> None:
    failed = Rule(name="failed", condition=StatusIs(statuses=frozenset({Status.FAILED})))
    play = Play(failed)
    play.status(Status.FAILED)
    play.slots("TTT")
    assert play.told == [(0, OPENED)]
    play.status(Status.SUCCEEDED)
    play.slots("F")
    assert play.closed[0].close_reason is CloseReason.RECOVERED


def test_a_task_that_is_no_longer_watched_closes_so() -> None:
    play = Play(NOW).slots("T")
    play.tasks = {}
    play.slot(T)
    assert play.closed[0].close_reason is CloseReason.UNWATCHED
    assert play.book == Book()


def test_a_labelset_that_is_not_judged_any_more_has_no_data() -> None:
    play = Play(NOW).slots("T")
    for _ in range(31):
        play.slot()
    assert play.closed[0].close_reason is CloseReason.DATA_GONE


def test_unknown_status_counts_as_running() -> None:
    state = TaskState(task=TASK, status=Status.UNKNOWN)
    assert gate(replace(LOW, while_status=frozenset({Status.RUNNING})), state, T0) is Gate.OPEN


# Edited rules -------------------------------------------------------------------------------------


def test_a_raised_for_does_not_unfire() -> None:
    play = Play(NOW).slots("T")
    play.rule = replace(NOW, hold=timedelta(hours=5))
    assert play.slots("TT").told == [(0, OPENED)]
    assert play.slots("F").told[1:] == [(3, CLOSED)]


def test_an_edited_condition_resets_pending() -> None:
    play = Play().slots("T" * 8)
    play.rule = replace(LOW, condition=replace(CONDITION, metric="cpu"))
    play.slots("TTTTT")
    assert play.told == []
    assert play.slots("TTTTTT").told == [(18, OPENED)]
    other = Play().slots("TT")
    other.rule = replace(LOW, coverage=0.5)
    assert other.slots("N").phase is Phase.INACTIVE


def test_an_unrelated_edit_resets_nothing() -> None:
    play = Play().slots("T" * 8)
    play.rule = replace(LOW, description="new", notify=("mail",), severity=Severity.CRITICAL)
    assert play.slots("TTT").told == [(10, OPENED)]


def test_firing_stays_under_an_edited_condition_until_false() -> None:
    play = Play(NOW).slots("T")
    play.rule = replace(NOW, condition=replace(CONDITION, metric="cpu"))
    assert play.slots("TTBE").told == [(0, OPENED)]
    assert play.slots("F").told[1:] == [(5, CLOSED)]


def test_a_removed_rule_closes_its_incidents_and_starts_unknown_later() -> None:  # H8
    play = Play(NOW).slots("T")
    assert close_rule_removed(play.book, [NOW], play.at).empty
    play.take(close_rule_removed(play.book, [replace(NOW, name="other")], play.at))
    assert play.closed[0].close_reason is CloseReason.RULE_REMOVED
    assert play.closed[0].members[0].reason is CloseReason.RULE_REMOVED
    assert play.book == Book()
    play.rule = LOW
    assert play.slots("T").phase is Phase.PENDING


def test_close_unwatched_takes_alerts_and_incidents() -> None:
    play = Play(NOW).slots("T")
    assert close_unwatched(play.book, {TASK.key}, play.at).empty
    play.take(close_unwatched(play.book, set(), play.at))
    assert play.closed[0].close_reason is CloseReason.UNWATCHED
    assert play.book == Book()


def test_forgetting_a_pod_ends_what_was_said_of_it_only() -> None:
    play = Play(replace(NOW, condition=Absent(metric="gpu")))
    pods = [ME.plus({"pod": name}) for name in ("p0", "p1")]
    play.slot(dict.fromkeys(pods, T))
    play.take(forget(play.book, TASK.key, [Labels.of(pod="p0")], play.at))
    assert play.closed == []
    assert [member.labels for member in play.incident.active] == [pods[1]]
    assert list(play.book.known("low")) == [pods[1]]
    play.take(forget(play.book, TASK.key, [Labels.of(pod="p1")], play.at))
    assert play.closed[0].close_reason is CloseReason.FORGOTTEN
    assert play.book == Book()


def test_a_select_that_leaves_a_task_out_ends_what_the_rule_said_of_it() -> None:
    play = Play(NOW).slots("T")
    play.rule = replace(NOW, select=Selector(patterns=(("name", "llam*"),)))
    assert play.slots("T").told == [(0, OPENED)]
    play.rule = replace(NOW, select=Selector(patterns=(("name", "other"),)))
    play.slot()
    assert play.closed[0].close_reason is CloseReason.RULE_REMOVED
    assert play.book == Book()


def test_open_incidents_take_over_new_wording() -> None:
    play = Play(NOW).slots("T")
    assert renew(play.book, [NOW]).empty
    play.take(renew(play.book, [replace(NOW, description="look", repeat=timedelta(hours=1))]))
    assert (play.incident.description, play.incident.repeat) == ("look", timedelta(hours=1))


# The book -----------------------------------------------------------------------------------------


def test_many_quiet_labelsets_leave_no_trace() -> None:
    labels = [gpu(number) for number in range(10_000)]
    play = Play(NOW)
    verdicts = dict.fromkeys(labels, F) | {labels[7]: T}
    step = play.slot(verdicts)
    assert [alert.labels for alert in step.alerts] == [labels[7]]
    assert len(play.book.all_alerts()) == 1


def test_applying_a_step_leaves_the_old_book_as_it_was() -> None:
    play = Play(NOW).slots("T")
    before = play.book
    alerts, incidents = dict(before.alerts["low"]), dict(before.open)
    play.slots("F")
    assert play.book != before
    assert (before.alerts["low"], before.open) == (alerts, incidents)


def test_joined_steps_have_the_effect_of_all() -> None:
    play = Play(NOW)
    steps: Sequence[Step] = [play.slot(verdict) for verdict in (T, F, T, T)]
    assert apply(Book(), join(steps)) == play.book
    assert len(join(steps).transitions) == 3
    assert not join(steps).dropped
    gone = join([*steps, play.slot(F)])
    assert not gone.alerts
    assert len(gone.dropped_ids) == 1
    assert apply(Book(), gone) == Book()


# Too many of them (K6) ---------------------------------------------------------------------------


def test_no_more_labelsets_are_followed_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "MOST_ALERTS", 3)
    play = Play(NOW)
    bomb = {gpu(number): T for number in range(10)}
    evaluation = play.evaluation(bomb, 0.05, None)
    assert left_out(NOW, evaluation, 0, play.book) == 0
    play.slot(bomb)
    assert [alert.labels for alert in play.book.all_alerts()] == [gpu(0), gpu(1), gpu(2)]
    assert left_out(NOW, evaluation, 0, play.book) == 7
    assert play.told == [(0, OPENED)]


def test_what_was_left_out_is_followed_once_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "MOST_ALERTS", 3)
    play = Play(NOW)
    play.slot({gpu(number): T for number in range(5)})
    play.slot({gpu(number): F if number == 1 else T for number in range(5)})
    play.slot({gpu(number): F if number == 1 else T for number in range(5)})
    assert [alert.labels for alert in play.book.all_alerts()] == [gpu(0), gpu(2), gpu(3)]


def test_the_room_is_each_rules_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "MOST_ALERTS", 3)
    play = Play(NOW)
    play.slot({gpu(number): T for number in range(5)})
    play.rule = replace(NOW, name="other")
    play.slot({gpu(number): T for number in range(2)})
    assert len(play.book.known("other")) == 2


def test_that_a_task_waits_no_longer_because_it_failed_is_no_recovery() -> None:
    queued = Rule(name="waits", condition=StatusIs(statuses=frozenset({Status.QUEUED})))
    failed = Rule(name="down", condition=StatusIs(statuses=frozenset({Status.FAILED})))
    state = TaskState(task=TASK, status=Status.FAILED)
    assert gate(queued, state, T0) is Gate.ENDED
    assert gate(failed, state, T0) is Gate.OPEN
    assert gate(failed, replace(state, status=Status.VANISHED), T0) is Gate.ENDED
    assert gate(queued, replace(state, status=Status.RUNNING), T0) is Gate.OPEN
