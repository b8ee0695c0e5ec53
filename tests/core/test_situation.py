"""How the task stood when an incident opened, kept with it."""

from dataclasses import replace
from datetime import UTC, datetime

from watchdog.core.alerts import Change, Incident, Transition
from watchdog.core.incidents import Step, situated
from watchdog.core.labels import Labels
from watchdog.core.rules import Severity
from watchdog.core.tasks import Seen, Status, Task, TaskState

T = datetime(2026, 9, 17, 2, 0, tzinfo=UTC)
TASK = Task(key="a/1", source="a", id="1", name="llama")
STATE = TaskState(
    task=TASK,
    status=Status.RUNNING,
    status_text="Running",
    attempt=3,
    attempt_started=T,
    expected=tuple(
        Seen(labels=Labels.of(pod=f"p{pod}", gpu=str(gpu)), first=T, last=T)
        for pod in range(2)
        for gpu in range(8)
    ),
)
INCIDENT = Incident(
    id="abc",
    rule="idle",
    labels=TASK.identity,
    severity=Severity.WARNING,
    event=False,
    opened_at=T,
    since=T,
    updated_at=T,
)


def step(change: Change, incident: Incident = INCIDENT) -> Step:
    return Step(incidents=(incident,), transitions=(Transition(incident=incident.id, change=change, at=T),))


def test_an_incident_that_opens_keeps_how_its_task_stood() -> None:
    kept = situated(step(Change.OPENED), {"a/1": STATE}).incidents[0].situation
    assert (kept["status"], kept["attempt"], kept["pods expected"]) == ("running", "3", "2")
    assert "reason" not in kept


def test_later_changes_keep_what_was_kept() -> None:
    opened = situated(step(Change.OPENED), {"a/1": STATE}).incidents[0]
    later = replace(STATE, status=Status.PAUSED)
    assert situated(step(Change.GREW, opened), {"a/1": later}).incidents[0] == opened


def test_a_notice_about_no_task_has_no_situation() -> None:
    about = replace(INCIDENT, labels=Labels())
    assert situated(step(Change.OPENED, about), {"a/1": STATE}).incidents[0].situation == {}
