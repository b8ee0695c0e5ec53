"""Which log streams serve the rules, and where a stream goes on that takes the place of others.

Pure decisions about keys and states; reading is `log_reader`, and who holds the readers is `world`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from watchdog.core.conditions.kinds import Capability, LogCount, LogEvent, LogMatch
from watchdog.core.logs import StreamKey, StreamState
from watchdog.core.reading import taken_over
from watchdog.core.rules import Rule
from watchdog.core.tasks import Task, TaskState


def wanted_streams(
    states: Iterable[TaskState], rules: Sequence[Rule]
) -> dict[StreamKey, tuple[Task, tuple[LogMatch, ...]]]:
    """Return the streams that rules about logs need, each with its task and what is looked for in it."""
    wanted: dict[StreamKey, tuple[Task, tuple[LogMatch, ...]]] = {}
    for state in states:
        applying = [r for r in rules if Capability.LOGS in r.condition.uses and r.applies(state.task)]
        for prefilter in _prefilters(applying):
            matches = (_match(rule) for rule in applying if prefilter in ("", _prefilter(rule)))
            key = StreamKey(task=state.task.key, prefilter=prefilter)
            wanted[key] = state.task, tuple(match for match in matches if match is not None)
    return wanted


def state_of(
    key: StreamKey, streams: Mapping[StreamKey, StreamState], wanted: Collection[StreamKey]
) -> StreamState | None:
    """Where a stream goes on: where it was, or where those that it replaces are. None = it begins.

    streams: as consumed by slots. wanted: the keys of all streams that are to be read from now on.
    """
    if key in streams:
        return streams[key]
    gone = [state for other, state in streams.items() if other.task == key.task and other not in wanted]
    return taken_over(key, gone) if gone else None


def _prefilters(rules: Sequence[Rule]) -> tuple[str, ...]:
    """The streams that serve these rules: one without a filter serves them all."""
    found = dict.fromkeys(_prefilter(rule) for rule in rules)
    return ("",) if "" in found else tuple(found)


def _match(rule: Rule) -> LogMatch | None:
    return rule.condition.lines if isinstance(rule.condition, LogEvent | LogCount) else None


def _prefilter(rule: Rule) -> str:
    match = _match(rule)
    return match.prefilter if match is not None else ""
