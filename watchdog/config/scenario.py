"""From a scenario file to what `watchdog test` plays: a script, a ruleset, events, expectations.

Owns the defaults of a scenario and the expansion of pods, GPUs and repeated log rows. Problems
carry file:line:column like those of a rule file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from watchdog.config import scenario_schema as keys
from watchdog.config.report import Report
from watchdog.config.scenario_schema import CrashPoint, Span
from watchdog.config.series_notation import points
from watchdog.config.tables import Fields, Key
from watchdog.config.yaml_nodes import MapNode, Node, ScalarNode
from watchdog.core.durations import to_ns
from watchdog.core.health import Failure
from watchdog.core.labels import GPU, NODE, POD, Labels
from watchdog.core.logs import LogLine
from watchdog.core.notifications import Answer, DeliveryResult, MessageKind
from watchdog.core.script import (
    Fault,
    Script,
    ScriptedLine,
    ScriptedSeries,
    ScriptedStatus,
    ScriptedTask,
)
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Status, Task

SOURCE = "cloud"
DEFAULT_START = datetime(2026, 11, 30, 2, tzinfo=UTC)
NO_LABEL = "none"

TextKey = Key[ScalarNode]
ManyTextsKey = Key[tuple[ScalarNode, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioTask:
    """One task of a scenario."""

    task: Task
    pods: tuple[str, ...]
    gpus: tuple[str, ...]
    status: Status
    found: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioEvent:
    """Something that befalls the watchdog itself, `at` after T+0."""

    at: timedelta
    restart: timedelta | None = None
    kill: timedelta | None = None
    crash: CrashPoint | None = None
    down: timedelta = timedelta()
    jump: timedelta = timedelta()
    suspend: timedelta = timedelta()
    stall: timedelta = timedelta()
    disk_full: timedelta = timedelta()
    rules: Node | None = None
    reload: Node | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioAnswer:
    """What a channel answers between two times."""

    channel: str
    begin: timedelta
    end: timedelta
    result: DeliveryResult
    times: int | None
    takes: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One message that is to be delivered. `line`: where it stands in the file."""

    line: int
    at: Span
    channel: str
    kind: MessageKind
    rule: str = ""
    task: str = ""
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    incident: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario file, read. `rules`, `defaults` and `channels` are still nodes: see `rule_tree`."""

    description: str
    start: datetime
    begin: timedelta
    length: timedelta
    poll: timedelta | None
    script: Script
    tasks: tuple[ScenarioTask, ...]
    rules: Node
    defaults: Node | None
    channels: Mapping[str, Node]
    events: tuple[ScenarioEvent, ...] = ()
    answers: tuple[ScenarioAnswer, ...] = ()
    expect: tuple[Expectation, ...] = ()
    none_between: tuple[Span, ...] = field(default=())
    others: bool = False


def read_scenario(node: Node, report: Report) -> Scenario | None:
    """Read a scenario's tree; None with the reasons in `report`."""
    fields = keys.SCENARIO.read(node, report)
    if fields is None or report.errors:
        return None
    return _Reader(fields, report).scenario()


class _Reader:
    """Reads the parts of one scenario, which refer to each other's names."""

    def __init__(self, fields: Fields, report: Report) -> None:
        self.fields = fields
        self.report = report
        self.start = self._start()
        self.begin = fields.value(keys.BEGIN, timedelta(minutes=-5))
        self.length = fields.value(keys.LENGTH, timedelta(hours=1))
        self.tasks = self._tasks()
        named = fields.get(keys.CHANNELS_PART)
        self.channels: dict[str, Node] = (
            {key.text: node for key, node in named} if named else {"chat": _EMPTY}
        )

    def scenario(self) -> Scenario | None:
        """Put the parts together."""
        rules = self.fields.get(keys.RULES_PART)
        script = Script(
            source=SOURCE,
            tasks=tuple(self._scripted_tasks()),
            series=tuple(self._series()),
            lines=tuple(self._lines()),
            faults=tuple(self._faults()),
            page=int(self.fields.value(keys.PAGE, 500.0)),
            listing=self.fields.value(keys.LISTING, default=True),
            status_calls=self.fields.value(keys.STATUS_CALLS, default=True),
        )
        scenario = Scenario(
            description=self._text(keys.DESCRIPTION),
            start=self.start,
            begin=self.begin,
            length=self.length,
            poll=self.fields.get(keys.POLL),
            script=script,
            tasks=self.tasks,
            rules=rules if rules is not None else _EMPTY,
            defaults=self.fields.get(keys.DEFAULTS_PART),
            channels=self.channels,
            events=tuple(self._events()),
            answers=tuple(self._answers()),
            expect=tuple(self._expectations()),
            none_between=self._list_of("none_between"),
            others=self.fields.value(keys.OTHERS, default=False),
        )
        return None if self.report.errors else scenario

    def _list_of(self, name: str) -> tuple:  # type: ignore[type-arg]  # the table's keys say of what
        found = self.fields.values.get(name)
        return found if isinstance(found, tuple) else ()

    def _text(self, key: TextKey) -> str:
        node = self.fields.get(key)
        return node.text if node is not None else ""

    def _start(self) -> datetime:
        node = self.fields.get(keys.START)
        if node is None:
            return DEFAULT_START
        try:
            moment = datetime.fromisoformat(node.text)
            if moment.tzinfo is None:
                raise ValueError
        except ValueError:
            self.report.error(
                node.mark, f"{node.shown!r} is no time with a zone", "such as 2026-11-30T02:00:00Z"
            )
            return DEFAULT_START
        return moment.astimezone(UTC)

    def _tasks(self) -> tuple[ScenarioTask, ...]:
        rows = self._list_of("tasks")
        if not rows:
            return (_task("job", 1, 8, Status.RUNNING, Labels(), found=False),)
        tasks = []
        for row in rows:
            name = row.get(keys.TASK_NAME)
            labels = Labels((key.text, value.text) for key, value in row.get(keys.TASK_LABELS) or ())
            tasks.append(
                _task(
                    name.text if name else "",
                    int(row.value(keys.TASK_PODS, 1.0)),
                    int(row.value(keys.TASK_GPUS, 8.0)),
                    row.value(keys.TASK_STATUS, Status.RUNNING),
                    labels,
                    found=row.value(keys.TASK_FOUND, default=False),
                )
            )
        return tuple(tasks)

    def _task_of(self, row: Fields) -> ScenarioTask:
        node = row.get(keys.TASK)
        if node is None:
            if len(self.tasks) > 1:
                self.report.error(row.mark, "task is missing", "there are several tasks: say which")
            return self.tasks[0]
        for task in self.tasks:
            if task.task.name == node.text:
                return task
        self.report.error(node.mark, f"there is no task {node.shown!r} in this scenario")
        return self.tasks[0]

    def _scripted_tasks(self) -> Iterator[ScriptedTask]:
        entries: dict[str, list[ScriptedStatus]] = {
            task.task.key: [ScriptedStatus(at=self.start - timedelta(days=1), status=task.status)]
            for task in self.tasks
        }
        for row in self._list_of("statuses"):
            entries[self._task_of(row).task.key].append(
                ScriptedStatus(
                    at=self.start + row.value(keys.AT, timedelta()),
                    status=row.value(keys.STATUS_WORD, Status.UNKNOWN),
                    text=_shown(row, keys.STATUS_TEXT),
                    reason=_shown(row, keys.STATUS_REASON),
                    listed=row.value(keys.STATUS_LISTED, default=True),
                    new_id=_shown(row, keys.STATUS_ID),
                )
            )
        for task in self.tasks:
            statuses = sorted(entries[task.task.key], key=lambda status: status.at)
            yield ScriptedTask(task=task.task, statuses=tuple(statuses))

    def _series(self) -> Iterator[ScriptedSeries]:
        for row in self._list_of("series"):
            task = self._task_of(row)
            offsets, values = points(
                row.value(keys.SERIES_VALUES, ()),
                begin=row.value(keys.SERIES_BEGIN, timedelta(hours=-2)),
                end=self.length,
                every=row.value(keys.SERIES_EVERY, timedelta(minutes=1)),
            )
            node = _shown(row, keys.SERIES_NODE)
            more = {key.text: value.text for key, value in row.value(keys.SERIES_LABELS, ())}
            for pod in self._chosen(row, keys.SERIES_POD, task.pods):
                for gpu in self._chosen(row, keys.SERIES_GPU, task.gpus):
                    labels = task.task.identity.plus({**more, POD: pod, GPU: gpu, NODE: node})
                    found = SeriesPoints(labels=labels, times=offsets + to_ns(self.start), values=values)
                    lag = row.value(keys.SERIES_LAG, timedelta())
                    yield ScriptedSeries(
                        task=task.task.key, metric=_shown(row, keys.SERIES_METRIC), points=found, lag=lag
                    )

    def _chosen(self, row: Fields, key: ManyTextsKey, names: tuple[str, ...]) -> tuple[str, ...]:
        """The names that fit the globs; a name without a glob may be a new one."""
        globs = row.get(key)
        if globs is None:
            return names or ("",)
        chosen: list[str] = []
        for glob in globs:
            if glob.text == NO_LABEL:
                chosen.append("")
                continue
            fitting = [name for name in names if fnmatchcase(name, glob.text)]
            chosen += fitting or [glob.text]
        return tuple(dict.fromkeys(chosen))

    def _lines(self) -> Iterator[ScriptedLine]:
        for row in self._list_of("logs"):
            task = self._task_of(row)
            template = _shown(row, keys.LOG_TEXT) * int(row.value(keys.LOG_REPEAT, 1.0))
            template += _shown(row, keys.LOG_THEN)
            pods = self._chosen(row, keys.LOG_POD, task.pods) if row.get(keys.LOG_POD) else task.pods[:1]
            times = int(row.value(keys.LOG_TIMES, 1.0))
            late = row.value(keys.LOG_VISIBLE, timedelta())
            for number, at in enumerate(self._moments(row)):
                moment = self.start + at
                for pod in pods:
                    line = LogLine(time_ns=to_ns(moment), pod=pod, text=template.replace("{n}", str(number)))
                    for _ in range(times):
                        yield ScriptedLine(task=task.task.key, line=line, visible=moment + late)

    def _moments(self, row: Fields) -> Iterator[timedelta]:
        at, every = row.value(keys.AT, timedelta()), row.get(keys.LOG_EVERY)
        yield at
        until = row.value(keys.UNTIL, self.length)
        while every is not None and at + every < until:
            at += every
            yield at

    def _faults(self) -> Iterator[Fault]:
        for row in self._list_of("faults"):
            takes = row.value(keys.FAULT_TAKES, timedelta())
            partial = row.value(keys.FAULT_PARTIAL, default=False)
            bends = takes or partial
            yield Fault(
                begin=self.start + row.value(keys.FROM, timedelta()),
                end=self.start + row.value(keys.UNTIL, self.length + timedelta(days=1)),
                capability=row.get(keys.FAULT_CAPABILITY),
                task=self._task_of(row).task.key if row.get(keys.TASK) else "",
                metric=_shown(row, keys.FAULT_METRIC),
                failure=row.get(keys.FAULT_FAILURE) or (None if bends else Failure.SERVER_ERROR),
                detail=_shown(row, keys.FAULT_DETAIL),
                retry_after=row.get(keys.FAULT_RETRY),
                takes=takes,
                partial_list=partial,
            )

    def _events(self) -> Iterator[ScenarioEvent]:
        nothing = timedelta()
        for row in self._list_of("events"):
            yield ScenarioEvent(
                at=row.value(keys.AT, nothing),
                restart=row.get(keys.EVENT_RESTART),
                kill=row.get(keys.EVENT_KILL),
                crash=row.get(keys.EVENT_CRASH),
                down=row.value(keys.EVENT_DOWN, nothing),
                jump=row.value(keys.EVENT_JUMP, nothing),
                suspend=row.value(keys.EVENT_SUSPEND, nothing),
                stall=row.value(keys.EVENT_STALL, nothing),
                disk_full=row.value(keys.EVENT_DISK, nothing),
                rules=row.get(keys.EVENT_RULES),
                reload=row.get(keys.EVENT_RELOAD),
            )

    def _channel_of(self, row: Fields) -> str:
        node = row.get(keys.CHANNEL)
        if node is None:
            if len(self.channels) > 1:
                self.report.error(row.mark, "channel is missing", "there are several channels: say which")
            return next(iter(self.channels))
        if node.text not in self.channels:
            self.report.error(node.mark, f"there is no channel {node.shown!r} in this scenario")
        return node.text

    def _answers(self) -> Iterator[ScenarioAnswer]:
        for row in self._list_of("answers"):
            times = row.get(keys.ANSWER_TIMES)
            code = _shown(row, keys.ANSWER_CODE)
            yield ScenarioAnswer(
                channel=self._channel_of(row),
                begin=row.value(keys.FROM, timedelta()),
                end=row.value(keys.UNTIL, self.length + timedelta(days=1)),
                result=DeliveryResult(
                    answer=row.value(keys.ANSWER_WORD, Answer.RETRY),
                    code=code,
                    detail="scripted",
                    retry_after=row.get(keys.ANSWER_RETRY),
                ),
                times=None if times is None else int(times),
                takes=row.value(keys.ANSWER_TAKES, timedelta()),
            )

    def _expectations(self) -> Iterator[Expectation]:
        for row in self._list_of("expect"):
            yield Expectation(
                line=row.mark.line,
                at=row.value(keys.EXPECT_AT, (timedelta(), timedelta())),
                channel=self._channel_of(row),
                kind=row.value(keys.EXPECT_KIND, MessageKind.FIRST),
                rule=_shown(row, keys.EXPECT_RULE),
                task=_shown(row, keys.EXPECT_TASK),
                contains=tuple(node.text for node in row.get(keys.EXPECT_CONTAINS) or ()),
                lacks=tuple(node.text for node in row.get(keys.EXPECT_LACKS) or ()),
                incident=_shown(row, keys.EXPECT_INCIDENT),
            )


_EMPTY = MapNode(mark=keys.NOWHERE, entries=())


def _task(name: str, pods: int, gpus: int, status: Status, labels: Labels, *, found: bool) -> ScenarioTask:
    key = f"{SOURCE}/{name}"
    return ScenarioTask(
        task=Task(key=key, source=SOURCE, id=name, name=name, namespace="default", labels=labels),
        pods=tuple(f"pod-{number}" for number in range(pods)),
        gpus=tuple(f"GPU-{number}" for number in range(gpus)),
        status=status,
        found=found,
    )


def _shown(row: Fields, key: TextKey) -> str:
    node = row.get(key)
    return node.text if node is not None else ""
