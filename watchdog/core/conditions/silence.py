"""Silent: no new log line has come.

Goes by when lines arrived, not by when they were written: lines that are regularly late are no
silence. Knows TRUE, FALSE and ERROR only.
"""

import numpy as np

from watchdog.core.columns import Ints
from watchdog.core.conditions.kinds import By, Capability, Silent
from watchdog.core.conditions.panel import SKEW_NS, Part
from watchdog.core.durations import SECOND_NS, duration_ns
from watchdog.core.labels import NODE, POD, Labels
from watchdog.core.logs import StreamState
from watchdog.core.outcomes import Evidence, Member, Outcome
from watchdog.core.rules import Rule
from watchdog.core.tasks import TaskState
from watchdog.core.view import View, floor_ns, moment_ns, too_early

NARROWED = "the log is read through a filter only"


def silent(rule: Rule, condition: Silent, view: View, states: list[TaskState], slots: Ints) -> Part:
    """Judge a `Silent` for tasks of one source. The value is for how long no line came, in seconds."""
    labels: list[Labels] = []
    heard: list[int] = []
    owner: list[int] = []
    reasons: list[str] = []
    for task, state in enumerate(states):
        streams = view.streams.get(state.task.key, ())
        reason = view.blind(state, Capability.LOGS)
        if not reason and streams and all(stream.key.prefilter for stream in streams):
            reason = NARROWED
        reasons.append(reason)
        for own, when in _last_heard(state, streams, condition.by):
            labels.append(own)
            heard.append(when)
            owner.append(task)
    last, task_of = np.array(heard, np.int64)[:, None], np.array(owner, np.int64)
    poll = view.poll_ns(states[0].task.source)
    out = np.where(slots - last >= poll, int(Outcome.TRUE), int(Outcome.FALSE))
    blind = np.array([bool(reason) for reason in reasons], np.bool_)[task_of]
    early = too_early(rule, states, slots)[task_of]
    unsure = last - slots > SKEW_NS  # our clock was set back: until it is there again nothing can be said
    out = np.where(blind[:, None] | early | unsure, int(Outcome.ERROR), out)
    value = np.where(last > 0, (slots - last) / SECOND_NS, np.nan)

    def explain(group: int, t: int) -> Evidence:
        seconds = float(value[group, t])
        own = labels[group].only((POD, NODE))
        return Evidence(
            summary="no line for",
            value=None if np.isnan(seconds) else seconds,
            threshold=duration_ns(rule.hold) / SECOND_NS if rule.hold else None,
            above=True,
            unit="s",
            members=(Member(labels=own, value=seconds),) if own else (),
            affected=int(out[group, t] == Outcome.TRUE),
            of=1,
            covered=1,
            detail=reasons[int(task_of[group])],
        )

    since = np.where(out == Outcome.TRUE, last, 0)
    return Part(labels=tuple(labels), outcome=out, value=value, since_ns=since, explain=explain)


def _last_heard(state: TaskState, streams: tuple[StreamState, ...], by: By) -> list[tuple[Labels, int]]:
    """Return each labelset with when its last line arrived, or from when on one could have; ns."""
    begun = max(floor_ns(state), moment_ns(state.watched_since))
    pods: dict[str, int] = {}
    for stream in streams:
        for pod, arrived in stream.arrived_ns.items():
            pods[pod] = max(pods.get(pod, 0), arrived)
    if by is By.TASK:
        last = max([*pods.values(), 0])
        return [(state.task.identity, last if last > floor_ns(state) else begun)]
    groups: dict[str, int] = {}
    for pod, since in _known_pods(state, pods, begun).items():
        name = state.nodes.get(pod, "") if by is By.NODE else pod
        groups[name] = max(groups.get(name, 0), since)
    label = NODE if by is By.NODE else POD
    return [(state.task.identity.plus({label: name}), since) for name, since in sorted(groups.items())]


def _known_pods(state: TaskState, arrived: dict[str, int], begun: int) -> dict[str, int]:
    """Return the expected pods, and those whose lines came in this attempt, with the last arrival."""
    floor = floor_ns(state)
    pods = {pod: when for pod, when in arrived.items() if pod and when > floor}
    for seen in state.expected:
        pod = seen.labels.get(POD, "")
        if pod and pod not in pods:
            pods[pod] = max(begun, moment_ns(seen.first))
    return pods
