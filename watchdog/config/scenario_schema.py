"""The tables of a scenario file: every key that `watchdog test` understands.

Rules, defaults and channels are those of the rule file. Times are relative to the scenario's
start (T+0): `10m`, `-30m`, `0m`.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum

from watchdog.config.kinds import (
    Kind,
    choice,
    duration,
    flag,
    list_of,
    named,
    number,
    scalar,
    several,
    text,
    text_map,
)
from watchdog.config.report import Mark, Report
from watchdog.config.schema import NAME, NAME_HINT
from watchdog.config.series_notation import Segment, parse_offset, parse_segments
from watchdog.config.tables import Key, Table
from watchdog.config.yaml_nodes import ListNode, MapNode, Node
from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import Failure
from watchdog.core.notifications import Answer, MessageKind
from watchdog.core.tasks import Status

Span = tuple[timedelta, timedelta]
NOWHERE = Mark()


class CrashPoint(StrEnum):
    """Between which steps a crash happens."""

    BEFORE_T1 = "before T1"
    AFTER_T1 = "after T1"
    AFTER_T2 = "after T2"
    BEFORE_SEND = "before send"
    AFTER_SEND = "after send"


def _parsed(words: str, parse: Callable[[str], object]) -> Kind[object]:
    def read(node: Node, report: Report) -> object | None:
        value = scalar(node, report, words)
        if value is None:
            return None
        try:
            return parse(value.text)
        except (ValueError, OverflowError) as error:
            report.error(value.mark, str(error))
            return None

    return Kind(words=words, read=read, schema={"type": "string"})


def _span(text_value: str) -> Span:
    match = re.fullmatch(r"(\S+?)(?:\s*\.\.\s*(\S+))?", text_value.strip())
    if match is None:
        raise ValueError(f"{text_value!r} is no time: write 10m, or 10m..12m for a span")
    begin = parse_offset(match[1])
    end = parse_offset(match[2]) if match[2] else begin
    if end < begin:
        raise ValueError(f"{text_value!r} ends before it begins")
    return begin, end


def offset() -> Kind[timedelta]:
    """A time relative to the scenario's start."""
    return _parsed("time such as 10m or -30m", parse_offset)  # type: ignore[return-value]


def span() -> Kind[Span]:
    """One time, or a span `10m..12m`."""
    return _parsed("time such as 10m, or a span 10m..12m", _span)  # type: ignore[return-value]


def segments() -> Kind[tuple[Segment, ...]]:
    """A series in the compact notation."""
    return _parsed("series such as 95% until 0m, 5%", parse_segments)  # type: ignore[return-value]


def anything() -> Kind[Node]:
    """A part that the rule file's own tables read."""

    def read(node: Node, report: Report) -> Node | None:
        if isinstance(node, MapNode | ListNode):
            return node
        report.error(node.mark, "needs a list or a mapping, as in a rule file")
        return None

    return Kind(words="as in the rule file", read=read, schema={})


AT = Key(name="at", kind=offset(), meaning="When.", required=True)
TASK = Key(name="task", kind=text("name of a task"), meaning="Which task; needed if there are several.")
FROM = Key(name="from", kind=offset(), default="0m", meaning="From when on.")
UNTIL = Key(name="until", kind=offset(), default="the end", meaning="Until when (not included).")

TASK_NAME = Key(
    name="name", kind=text(pattern=NAME, hint=NAME_HINT), required=True, meaning="Its name, and its id."
)
TASK_PODS = Key(
    name="pods", kind=number(low=1, high=5000, whole=True), default="1", meaning="How many: pod-0, pod-1, …"
)
TASK_GPUS = Key(
    name="gpus", kind=number(high=64, whole=True), default="8", meaning="GPUs of each pod: GPU-0, GPU-1, …"
)
TASK_STATUS = Key(
    name="status", kind=choice(Status), default="running", meaning="Its status from the beginning."
)
TASK_LABELS = Key(name="labels", kind=text_map(), meaning="Labels of its watch entry.")
TASK_FOUND = Key(
    name="found", kind=flag(), default="false", meaning="Watched by name, through the list, not by id."
)
SCENARIO_TASK = Table(
    name="task",
    keys=(TASK_NAME, TASK_PODS, TASK_GPUS, TASK_STATUS, TASK_LABELS, TASK_FOUND),
    example="{ name: job, pods: 8, gpus: 8 }",
)

SERIES_METRIC = Key(
    name="metric", kind=text(), required=True, meaning="gpu, vram, cpu, memory or a name of your own."
)
SERIES_VALUES = Key(name="values", kind=segments(), required=True, meaning="The points: `95% until 0m, 5%`.")
SERIES_POD = Key(
    name="pod",
    kind=several(text()),
    default="every pod",
    meaning="Names or globs of pods; `none` leaves the label out.",
)
SERIES_GPU = Key(
    name="gpu",
    kind=several(text()),
    default="every GPU",
    meaning="Names or globs of GPUs; `none`: one series a pod.",
)
SERIES_EVERY = Key(name="every", kind=duration(zero=False), default="60s", meaning="The points' spacing.")
SERIES_BEGIN = Key(name="from", kind=offset(), default="-2h", meaning="The first point.")
SERIES_LAG = Key(
    name="lag", kind=duration(), default="0s", meaning="How long after its time a point becomes visible."
)
SERIES_NODE = Key(name="node", kind=text(), meaning="A node label.")
SERIES_LABELS = Key(
    name="labels",
    kind=text_map(reserved=("source", "task", "task_name", "pod", "gpu", "node")),
    meaning='More labels that a source gives its series, such as `{ xid: "79" }`.',
)
SERIES = Table(
    name="series",
    keys=(
        SERIES_METRIC,
        TASK,
        SERIES_VALUES,
        SERIES_POD,
        SERIES_GPU,
        SERIES_EVERY,
        SERIES_BEGIN,
        SERIES_LAG,
        SERIES_NODE,
        SERIES_LABELS,
    ),
    example="{ metric: gpu, values: '95% until 0m, 5%' }",
)

LOG_TEXT = Key(
    name="text",
    kind=text(longest=2_000_000, multiline=True),
    required=True,
    meaning="The row; `{n}` is its number.",
)
LOG_POD = Key(
    name="pod", kind=several(text()), default="pod-0", meaning="Names or globs of the pods that print it."
)
LOG_EVERY = Key(name="every", kind=duration(zero=False), meaning="Print it again and again, until `until`.")
LOG_TIMES = Key(
    name="times",
    kind=number(low=1, high=100_000, whole=True),
    default="1",
    meaning="How many rows at once, with one timestamp.",
)
LOG_VISIBLE = Key(
    name="late", kind=duration(), default="0s", meaning="How long after its time it becomes visible."
)
LOG_REPEAT = Key(
    name="repeat_text",
    kind=number(low=1, high=1_000_000, whole=True),
    default="1",
    meaning="The text, so many times in a row: for very long lines.",
)
LOG_THEN = Key(
    name="then",
    kind=text(longest=2_000_000, multiline=True),
    meaning="What stands once at the end, after the repeated text.",
)
LOG = Table(
    name="log rows",
    keys=(AT, TASK, LOG_TEXT, LOG_POD, LOG_EVERY, UNTIL, LOG_TIMES, LOG_VISIBLE, LOG_REPEAT, LOG_THEN),
    example="{ at: 3m, text: 'ERROR boom' }",
)

STATUS_WORD = Key(name="status", kind=choice(Status), required=True, meaning="The status it enters.")
STATUS_TEXT = Key(name="text", kind=text(), meaning="The cloud's own word.")
STATUS_REASON = Key(name="reason", kind=text(), meaning="Why, as the cloud says.")
STATUS_LISTED = Key(
    name="listed", kind=flag(), default="true", meaning="false: the task is gone from the list."
)
STATUS_ID = Key(name="new_id", kind=text(), meaning="It comes back under this id (same name).")
STATUS = Table(
    name="status",
    keys=(AT, TASK, STATUS_WORD, STATUS_TEXT, STATUS_REASON, STATUS_LISTED, STATUS_ID),
    example="{ at: 20m, status: succeeded }",
)

FAULT_CAPABILITY = Key(
    name="capability", kind=choice(Capability), default="all", meaning="What is asked in vain."
)
FAULT_METRIC = Key(name="metric", kind=text(), default="all", meaning="Only this metric is asked in vain.")
FAULT_FAILURE = Key(name="failure", kind=choice(Failure), default="server error", meaning="How it fails.")
FAULT_DETAIL = Key(name="detail", kind=text(), meaning="What the error says.")
FAULT_RETRY = Key(name="retry_after", kind=duration(), meaning="What the server asks for.")
FAULT_TAKES = Key(
    name="takes",
    kind=duration(),
    meaning="Each answer takes this long (and fails only if `failure` is given).",
)
FAULT_PARTIAL = Key(
    name="partial_list", kind=flag(), default="false", meaning="The list comes incomplete, without the task."
)
FAULT = Table(
    name="fault",
    keys=(
        FROM,
        UNTIL,
        TASK,
        FAULT_CAPABILITY,
        FAULT_METRIC,
        FAULT_FAILURE,
        FAULT_DETAIL,
        FAULT_RETRY,
        FAULT_TAKES,
        FAULT_PARTIAL,
    ),
    example="{ from: 5m, until: 25m, capability: metrics }",
)

EVENT_RESTART = Key(name="restart", kind=duration(), meaning="Stop, and start again after this long.")
EVENT_KILL = Key(name="kill", kind=duration(), meaning="kill -9, and start again after this long.")
EVENT_CRASH = Key(
    name="crash",
    kind=choice(CrashPoint),
    meaning="Die at this point of the first slot or delivery from then on.",
)
EVENT_DOWN = Key(
    name="down", kind=duration(), default="0s", meaning="After a crash: start again after this long."
)
EVENT_JUMP = Key(name="jump", kind=offset(), meaning="The machine's wall clock jumps.")
EVENT_SUSPEND = Key(name="suspend", kind=duration(), meaning="The machine sleeps.")
EVENT_STALL = Key(name="stall", kind=duration(), meaning="The process is stopped (SIGSTOP).")
EVENT_RULES = Key(name="rules", kind=anything(), meaning="With `restart`: start with these rules.")
EVENT_RELOAD = Key(
    name="reload",
    kind=anything(),
    meaning="The rule file is loaded anew, without a restart, with these rules.",
)
EVENT_DISK = Key(name="disk_full", kind=duration(), meaning="The state cannot be written for this long.")
EVENT = Table(
    name="event",
    keys=(
        AT,
        EVENT_RESTART,
        EVENT_KILL,
        EVENT_CRASH,
        EVENT_DOWN,
        EVENT_JUMP,
        EVENT_SUSPEND,
        EVENT_STALL,
        EVENT_RULES,
        EVENT_RELOAD,
        EVENT_DISK,
    ),
    example="{ at: 8m, restart: 1m }",
)

CHANNEL = Key(
    name="channel", kind=text("name of a channel"), meaning="Which channel; needed if there are several."
)
ANSWER_WORD = Key(name="answer", kind=choice(Answer), required=True, meaning="What the channel answers.")
ANSWER_CODE = Key(name="code", kind=text(), meaning="The provider's code.")
ANSWER_RETRY = Key(name="retry_after", kind=duration(), meaning="What the provider asks for.")
ANSWER_TIMES = Key(name="times", kind=number(low=1, high=1e6, whole=True), meaning="Only so many times.")
ANSWER_TAKES = Key(name="takes", kind=duration(), meaning="Each answer takes this long.")
ANSWER = Table(
    name="answer",
    keys=(FROM, UNTIL, CHANNEL, ANSWER_WORD, ANSWER_CODE, ANSWER_RETRY, ANSWER_TIMES, ANSWER_TAKES),
    example="{ from: 0m, until: 1h, answer: retry }",
)

EXPECT_AT = Key(
    name="at", kind=span(), required=True, meaning="When it is delivered: a time, or a span 10m..12m."
)
EXPECT_KIND = Key(name="kind", kind=choice(MessageKind), required=True, meaning="What kind of message.")
EXPECT_RULE = Key(name="rule", kind=text(), meaning="Its rule (a notice: watchdog/source blind, …).")
EXPECT_TASK = Key(name="task", kind=text(), meaning="Its task's name.")
EXPECT_CONTAINS = Key(name="contains", kind=several(text(multiline=True)), meaning="Texts that stand in it.")
EXPECT_LACKS = Key(name="lacks", kind=several(text(multiline=True)), meaning="Texts that do not.")
EXPECT_INCIDENT = Key(
    name="incident",
    kind=text(),
    meaning="A letter: messages with the same one are about the same incident, others are not.",
)
EXPECT = Table(
    name="expected message",
    keys=(
        EXPECT_AT,
        CHANNEL,
        EXPECT_KIND,
        EXPECT_RULE,
        EXPECT_TASK,
        EXPECT_CONTAINS,
        EXPECT_LACKS,
        EXPECT_INCIDENT,
    ),
    example="{ at: 10m, kind: first, contains: 'below 20 %' }",
)

DESCRIPTION = Key(
    name="description",
    kind=text(longest=2000, multiline=True),
    required=True,
    meaning="What is shown, in a sentence.",
)
START = Key(
    name="start",
    kind=text("UTC time such as 2026-11-30T02:00:00Z"),
    default="2026-11-30T02:00:00Z",
    meaning="The wall clock at T+0.",
)
LENGTH = Key(name="length", kind=duration(zero=False), required=True, meaning="How long it runs.")
BEGIN = Key(name="begin", kind=offset(), default="-5m", meaning="When the watchdog starts.")
DEFAULTS_PART = Key(name="defaults", kind=anything(), meaning="As in the rule file.")
RULES_PART = Key(name="rules", kind=anything(), required=True, meaning="As in the rule file.")
CHANNELS_PART = Key(
    name="channels",
    kind=named(anything(), pattern=NAME, hint=NAME_HINT),
    default="{ chat: {} }",
    meaning="As in the rule file, without `url`; `max_bytes` limits the text.",
)
PAGE = Key(
    name="page",
    kind=number(low=1, high=10_000, whole=True),
    default="500",
    meaning="Log rows the source gives at once.",
)
LISTING = Key(name="listing", kind=flag(), default="true", meaning="Whether the source has a task list.")
STATUS_CALLS = Key(
    name="status_calls",
    kind=flag(),
    default="true",
    meaning="Whether one task's status can be asked for; without, statuses come from the list.",
)
POLL = Key(
    name="poll",
    kind=duration(zero=False),
    default="that of `defaults`",
    meaning="How often the source is asked.",
)
OTHERS = Key(
    name="others",
    kind=flag(),
    default="false",
    meaning="true: messages that are not expected are no failure.",
)
SCENARIO = Table(
    name="scenario",
    keys=(
        DESCRIPTION,
        START,
        BEGIN,
        LENGTH,
        POLL,
        DEFAULTS_PART,
        RULES_PART,
        CHANNELS_PART,
        PAGE,
        LISTING,
        STATUS_CALLS,
        OTHERS,
        Key(
            name="tasks",
            kind=list_of(SCENARIO_TASK.kind),
            default="one task `job`, 1 pod, 8 GPUs",
            meaning="The tasks.",
        ),
        Key(name="series", kind=list_of(SERIES.kind), meaning="What metrics say."),
        Key(name="logs", kind=list_of(LOG.kind), meaning="What the pods print."),
        Key(name="statuses", kind=list_of(STATUS.kind), meaning="How statuses change."),
        Key(name="faults", kind=list_of(FAULT.kind), meaning="When and how the source fails."),
        Key(name="events", kind=list_of(EVENT.kind), meaning="What befalls the watchdog itself."),
        Key(name="answers", kind=list_of(ANSWER.kind), meaning="What channels answer, when not ok."),
        Key(
            name="expect",
            kind=list_of(EXPECT.kind, empty=True),
            required=True,
            meaning="The messages that are delivered; all of them, in any order.",
        ),
        Key(name="none_between", kind=several(span()), meaning="Spans in which nothing at all is delivered."),
    ),
    example="a description, a length, rules and expect",
    anchors=True,
)
