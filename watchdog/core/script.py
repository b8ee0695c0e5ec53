"""A script: everything a scripted source will answer, as values on an absolute time line.

Owns what was written (points, lines, statuses, faults) and when each becomes visible. The
scenario file is read by `config.scenario`; answering is `sources.scripted`.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from watchdog.core.conditions.kinds import Capability
from watchdog.core.health import Failure
from watchdog.core.logs import LogLine
from watchdog.core.series import SeriesPoints
from watchdog.core.tasks import Status, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedStatus:
    """From `at` on, the task is in `status`; `text` is the source's own word."""

    at: datetime
    status: Status
    text: str = ""
    reason: str = ""
    listed: bool = True  # False: the list no longer has the task
    new_id: str = ""  # the cloud gave it a new id (a restart under the same name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTask:
    """One task of the scripted cloud; statuses in order of time, the first at or before the start."""

    task: Task
    statuses: tuple[ScriptedStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedSeries:
    """One series; each point becomes visible `lag` after its time."""

    task: str  # task key
    metric: str
    points: SeriesPoints
    lag: timedelta = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedLine:
    """One log row (may hold newlines), visible from `visible` on."""

    task: str
    line: LogLine
    visible: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Between begin and end, matching questions fail, or take long.

    capability None = all; task "" = all tasks; metric "" = all metrics, else only that one's questions.
    """

    begin: datetime
    end: datetime
    capability: Capability | None = None
    task: str = ""
    metric: str = ""
    failure: Failure | None = Failure.SERVER_ERROR
    detail: str = ""
    retry_after: timedelta | None = None
    takes: timedelta = timedelta()  # each question takes this long (and fails only if `failure`)
    partial_list: bool = False  # the list comes without the task and says that it may be incomplete


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One scripted source."""

    source: str
    tasks: tuple[ScriptedTask, ...] = ()
    series: tuple[ScriptedSeries, ...] = ()
    lines: tuple[ScriptedLine, ...] = ()
    faults: tuple[Fault, ...] = ()
    units: tuple[tuple[str, str], ...] = field(default=())  # metric → unit, beyond the four ratios
    page: int = 500  # log rows a page
    listing: bool = True  # whether it has a task list
    status_calls: bool = True  # whether one task's status can be asked for
