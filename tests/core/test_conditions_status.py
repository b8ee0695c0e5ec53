"""Status: being in one (a state) and entering one (an event)."""

from datetime import timedelta

from watchdog.core.conditions.kinds import Capability, StatusEnters, StatusIs
from watchdog.core.health import Standing
from watchdog.core.outcomes import Outcome
from watchdog.core.rules import Rule, Selector
from watchdog.core.tasks import Status, StatusChange

QUEUED = Rule(name="queued", condition=StatusIs(statuses=frozenset({Status.QUEUED})), hold=timedelta(hours=2))


def enters(*statuses, **more):
    return Rule(name="state", condition=StatusEnters(statuses=frozenset(statuses)), **more)


def changed(lab, before, after, key="src/1", **more):
    return StatusChange(task=lab.tasks[key].task, before=before, after=after, at=lab.at(3), **more)


def test_a_status_is_true_since_it_began(lab):
    lab.change(status=Status.QUEUED, status_since=lab.at(2), status_text="Waiting")
    found = lab.evaluate(QUEUED, 30)
    assert (found.outcome[0, 0], found.since_ns[0, 0]) == (Outcome.TRUE, lab.ns(2))
    assert found.labels == (lab.labels(),)
    assert (found.explain(0, 0).summary, found.explain(0, 0).detail) == ("status is queued", "Waiting")


def test_another_status_is_false(lab):
    assert lab.judge(QUEUED, 30) == {"": Outcome.FALSE}


def test_a_status_that_cannot_be_read_is_an_error(lab):
    lab.standings[Capability.STATUS, "src/1"] = Standing.FAILING
    assert lab.judge(QUEUED, 30) == {"": Outcome.ERROR}


def test_entering_a_status_happens_once_per_change(lab):
    change = changed(lab, Status.RUNNING, Status.PAUSED, reason="balance negative", text="Paused")
    (found,) = lab.happened(enters(Status.PAUSED, Status.FAILED), 3, (change,))
    assert (found.labels, found.at, found.fingerprint, found.count) == (lab.labels(), lab.at(3), "paused", 1)
    assert (found.evidence.summary, found.evidence.detail) == ("running → paused", "balance negative")
    assert lab.happened(enters(Status.SUCCEEDED), 3, (change,)) == ()
    assert lab.happened(enters(Status.PAUSED), 4) == ()


def test_only_selected_tasks_and_allowed_statuses(lab):
    change = changed(lab, Status.QUEUED, Status.FAILED)
    assert lab.happened(enters(Status.FAILED, select=Selector(patterns=(("id", "2"),))), 3, (change,)) == ()
    running = enters(Status.FAILED, while_status=frozenset({Status.RUNNING}))
    assert lab.happened(running, 3, (change,)) == ()
    assert len(lab.happened(running, 3, (changed(lab, Status.UNKNOWN, Status.FAILED),))) == 1
