"""Expecting: the pods and GPUs that a task is known to have, remembered across our restarts.

Owns who is expected, who retires quietly because an attempt ended or others took over, and who is
forgotten. Times of data come from the source; how long something is missing is watched time.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from watchdog.core.alerts import CloseReason, Notice, NoticeKind
from watchdog.core.labels import GPU, POD, Labels
from watchdog.core.moments import Tick
from watchdog.core.rules import Severity
from watchdog.core.tasks import Seen, TaskState

FORGET_AFTER = timedelta(hours=24)  # watched
PODS_NAMED = 5
_REASONS = {
    CloseReason.TASK_ENDED: "the task has ended",
    CloseReason.REPLACED: "another attempt began, or new pods took their place",
    CloseReason.FORGOTTEN: "not seen for 24 h of watching",
}
_ROLE = re.compile(r"(?:^|[-_.])([A-Za-z]+[-_.][0-9]+)$")
TAKEOVER = timedelta(minutes=10)  # how long after an old pod went a new one counts as its heir


def see_members(state: TaskState, seen: Mapping[Labels, datetime]) -> TaskState:
    """Note the members that gave data. seen: `{pod}` or `{pod, gpu}` → time of the newest point.

    Data from before the attempt's start belongs to an earlier one and says nothing.
    A GPU without a pod is the one of that name if there is only one: some sources lose the pod
    label at times.
    """
    members = {member.labels: member for member in state.expected}
    changed = False
    for labels, time in seen.items():
        member, known = labels, members.get(labels)
        if known is None or POD not in labels:
            member = _resolved(labels.only((POD, GPU)), members)
            known = members.get(member)
        earlier = state.attempt_started is not None and time < state.attempt_started
        if not member or earlier or (known is not None and time <= known.last):
            continue
        first, heir = (time, False) if known is None else (known.first, known.heir)
        members[member] = Seen(labels=member, first=first, last=time, heir=heir)
        changed = True
    return replace(state, expected=tuple(members.values())) if changed else state


def renew_members(state: TaskState, seen: Mapping[Labels, datetime]) -> TaskState:
    """Note when the known members gave data last. seen: as for `see_members`; nobody else is looked for."""
    if any(POD not in labels for labels in seen):  # whose GPU that is has to be found out
        return see_members(state, seen)
    begun = state.attempt_started
    expected: list[Seen] = []
    for member in state.expected:
        time = seen.get(member.labels)
        if time is not None and time > member.last and (begun is None or time >= begun):
            member = Seen(labels=member.labels, first=member.first, last=time, heir=member.heir)  # noqa: PLW2901
        expected.append(member)
    return replace(state, expected=tuple(expected))


def _resolved(labels: Labels, members: Mapping[Labels, Seen]) -> Labels:
    if POD in labels or GPU not in labels:
        return labels
    same = [member for member in members if POD in member and member.get(GPU) == labels[GPU]]
    return same[0] if len(same) == 1 else labels


def retire(
    state: TaskState, tick: Tick, now_seen: Collection[Labels], *, forget_after: timedelta = FORGET_AFTER
) -> tuple[TaskState, tuple[Labels, ...]]:
    """Stop expecting what will not come back. Returns the state and who went, for one quiet note.

    now_seen: the members (`{pod}` or `{pod, gpu}`) whose data is fresh. Call it only while the task's
    metrics are healthy: who cannot be seen is not missing.
    """
    members = {member.labels: member for member in state.expected}
    fresh = {_resolved(labels.only((POD, GPU)), members) for labels in now_seen}
    pods = {labels.get(POD, "") for labels in fresh} - {""}
    present = {labels for labels in members if labels in fresh or labels.pairs == _pod_only(labels, pods)}
    if len(present) == len(members) and not state.status.ended and not any(m.missing for m in state.expected):
        return state, ()  # everybody is here, as almost always: nobody went, so nobody is an heir
    going: set[Labels] = set()
    if state.status.ended:
        going = set(members)
    else:
        going |= _of_earlier_attempts(state, present)
        replaced, heirs = _takeovers(state, present)
        going |= {labels for labels in members if labels.get(POD) in replaced}
        members = {
            labels: replace(member, heir=True) if labels.get(POD) in heirs else member
            for labels, member in members.items()
        }
    kept: list[Seen] = []
    for labels, member in members.items():
        missing = timedelta() if labels in present else member.missing + tick.elapsed
        if missing >= forget_after:
            going.add(labels)
        elif labels not in going:
            kept.append(member if missing == member.missing else replace(member, missing=missing))
    after = tuple(kept)
    gone = tuple(labels for labels in members if labels in going)
    return (state if after == state.expected else replace(state, expected=after)), gone


def retired_reason(before: TaskState, gone: Collection[Labels]) -> CloseReason:
    """Return why these members are expected no more. before: the state given to `retire`."""
    if before.status.ended:
        return CloseReason.TASK_ENDED
    gone = frozenset(gone)
    members = [member for member in before.expected if member.labels in gone]
    if not may_return(before, gone) and all(member.missing >= TAKEOVER for member in members):
        return CloseReason.FORGOTTEN
    return CloseReason.REPLACED


def may_return(before: TaskState, gone: Collection[Labels]) -> bool:
    """Whether these members went because another attempt began: it may have the same pods again.

    before: the state given to `retire`.
    """
    started, gone = before.attempt_started, frozenset(gone)
    members = (member for member in before.expected if member.labels in gone)
    return started is not None and all(member.last < started for member in members)


def retired_notice(before: TaskState, gone: Collection[Labels]) -> Notice:
    """Return the one quiet note about who is expected no more. before: the state given to `retire`."""
    names = sorted({labels.get(POD, labels.get(GPU, "")) for labels in gone})
    more = len(names) - PODS_NAMED
    return Notice(
        kind=NoticeKind.SET_RETIRED,
        subject=before.task.key,
        labels=before.task.identity,
        severity=Severity.INFO,
        params={
            "task": before.task.name,
            "reason": _REASONS[retired_reason(before, gone)],
            "pods": ", ".join(names[:PODS_NAMED])
            + (f" (+{more})" if (more := len(names) - PODS_NAMED) > 0 else ""),
        },
        lasting=False,
    )


def _pod_only(labels: Labels, pods: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The labelset of a pod as such, which is present as long as any of its GPUs is."""
    pod = labels.get(POD, "")
    return ((POD, pod),) if pod in pods else ()


def _of_earlier_attempts(state: TaskState, present: Collection[Labels]) -> set[Labels]:
    started = state.attempt_started
    if started is None:
        return set()
    return {
        member.labels for member in state.expected if member.labels not in present and member.last < started
    }


def _takeovers(state: TaskState, present: Collection[Labels]) -> tuple[set[str], set[str]]:
    """Return the pods that went, and the new pods that came in their place, as many of each.

    A pod of the same role (`…-worker-2`) takes over first: when two of three pods are back under new
    names, the third is the one that is missing.
    """
    first: dict[str, datetime] = {}
    last: dict[str, datetime] = {}
    here: set[str] = set()
    spent: set[str] = set()
    for member in state.expected:
        pod = member.labels.get(POD, "")
        if not pod:
            continue
        first[pod] = min(first.get(pod, member.first), member.first)
        last[pod] = max(last.get(pod, member.last), member.last)
        if member.labels in present:
            here.add(pod)
        if member.heir:
            spent.add(pod)
    free = sorted(here - spent, key=lambda pod: (first[pod], pod))
    gone = sorted(last.keys() - here, key=lambda pod: (last[pod], pod))
    heirs: dict[str, str] = {}
    by_role: dict[str, dict[str, None]] = {}
    for pod in free:
        by_role.setdefault(_role(pod), {})[pod] = None
    everybody = dict.fromkeys(free)
    for same_role in (True, False):
        for old in [pod for pod in gone if pod not in heirs]:
            own = by_role.get(_role(old), {}) if same_role and _role(old) else {}
            fits = own if same_role else everybody
            heir = next((pod for pod in fits if last[old] < first[pod] <= last[old] + TAKEOVER), None)
            if heir is not None:
                del everybody[heir]
                by_role[_role(heir)].pop(heir)
                heirs[old] = heir
    return set(heirs), set(heirs.values())


def _role(pod: str) -> str:
    match = _ROLE.search(pod)
    return match[1] if match else ""
