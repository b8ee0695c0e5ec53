"""The second part of `watchdog init`: which tasks to watch, and whether their data can really be read.

Owns how an answer (a number of the table, a name, a glob, an id) becomes watch entries. Knows no kind of
source.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from watchdog.cli.asking import INDENT, Asker
from watchdog.cli.init_cloud import Look, SourceDraft
from watchdog.cli.init_files import is_glob
from watchdog.cli.output import cut
from watchdog.core.conditions.kinds import Capability
from watchdog.core.durations import duration_ns, format_duration, from_ns, to_ns
from watchdog.core.logs import LogQuery
from watchdog.core.ruleset import WatchEntry
from watchdog.core.tasks import Status, Task, TaskObservation
from watchdog.errors import SourceError
from watchdog.ports import Clock, Source

ROWS_SHOWN = 30
TRIED = 3  # of the chosen tasks
RECENT = timedelta(minutes=15)
NAME_WIDTH = 44
_SEPARATORS = re.compile(r"[,\s]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What to watch, and the tasks that this means right now, as far as they are known."""

    entries: tuple[WatchEntry, ...]
    tasks: tuple[Task, ...]
    listed: bool  # the list has them: they exist


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Whether a task's data can be read. `words`: the answer for people; `doubt`: nothing came back."""

    ok: bool
    words: str
    doubt: bool = False


def live(look: Look) -> list[TaskObservation]:
    """Return the listed tasks that have not ended, those that began last first."""
    found = [one for one in (look.listing.tasks if look.listing else ()) if not one.status.ended]
    found.sort(key=lambda one: (one.started is not None, one.started, one.task.name), reverse=True)
    return found


def show(look: Look, asker: Asker, now: datetime) -> None:
    """Write the live tasks as a numbered table."""
    assert look.listing is not None
    rows = live(look)
    ended = len(look.listing.tasks) - len(rows)
    note = f" ({ended} ended ones are not shown)" if ended else ""
    if not rows:
        asker.say(f"No task runs or waits{note}.")
        return
    asker.say(f"{len(rows)} {'task runs or waits' if len(rows) == 1 else 'tasks run or wait'}{note}:")
    cells = [
        (
            f"{INDENT}{number}",
            cut(one.task.name, NAME_WIDTH),
            str(one.status),
            one.extra.get("gpus", ""),
            _age(one, now),
            one.task.id,
        )
        for number, one in enumerate(rows[:ROWS_SHOWN], 1)
    ]
    asker.output.table((f"{INDENT}#", "NAME", "STATUS", "GPUS", "FOR", "ID"), cells)
    if len(rows) > ROWS_SHOWN:
        asker.say(f"… and {len(rows) - ROWS_SHOWN} more: give a name or an id")


def ask(draft: SourceDraft, look: Look, asker: Asker) -> Chosen:
    """Ask which tasks, until the answer means some."""
    rows = live(look)
    question = "Its id, as the cloud's console shows it"
    if rows:
        question = "Which? Numbers (1 3), a name or glob (pretrain-*), or an id"
    elif look.listing is not None:
        question = "A name or glob that will come (pretrain-*), or an id"
    default = "1" if len(rows) == 1 else ""
    return resolve(asker.text(question, default, lambda text: _wrong(text, rows, look)), draft.name, look)


def resolve(answer: str, source: str, look: Look) -> Chosen:
    """Return what an answer means: numbers of the table, names, globs, ids, in any mixture."""
    rows = live(look)[:ROWS_SHOWN]
    words = [answer] if _known(answer, look) else _SEPARATORS.split(answer.strip(", "))
    entries: dict[WatchEntry, None] = {}
    tasks: dict[str, Task] = {}
    listed = True
    for word in words:
        entry, found = _meaning(word, source, rows, look)
        entries.setdefault(entry)
        tasks.update((task.id, task) for task in found)
        listed = listed and bool(look.listing) and (bool(found) or not entry.id)
        if entry.id and not found:
            tasks[entry.id] = Task(key=entry.key, source=source, id=entry.id, name=entry.id)
    return Chosen(entries=tuple(entries), tasks=tuple(tasks.values()), listed=listed)


def by_options(ids: Sequence[str], globs: Sequence[str], source: str, look: Look) -> Chosen:
    """Return what `--task` and `--name` mean; a number is an id here."""
    known = {one.task.id: one.task for one in (look.listing.tasks if look.listing else ())}
    entries = [_by_id(known.get(one), one, source) for one in ids]
    entries += [WatchEntry(source=source, name=glob) for glob in globs]
    tasks = {
        one: known.get(one) or Task(key=f"{source}/{one}", source=source, id=one, name=one) for one in ids
    }
    tasks |= {task.id: task for glob in globs for task in _fitting(glob, look)}
    return Chosen(
        entries=tuple(dict.fromkeys(entries)),
        tasks=tuple(tasks.values()),
        listed=all(one in known for one in ids),
    )


def try_tasks(chosen: Chosen, draft: SourceDraft, look: Look, clock: Clock) -> list[tuple[Task, Trial]]:
    """Read a little of the first few chosen tasks' data."""
    waiting = {
        one.task.id: one.status
        for one in (look.listing.tasks if look.listing else ())
        if not one.status.counts_as_running
    }

    async def all_of_them() -> list[tuple[Task, Trial]]:
        source = draft.kind.build(draft.spec(), clock)
        try:
            return [
                (task, await _try(task, source, clock.now(), waiting.get(task.id), draft))
                for task in chosen.tasks[:TRIED]
            ]
        finally:
            await source.close()

    return asyncio.run(all_of_them())


def unfitting(chosen: Chosen) -> list[str]:
    """Return the globs that no task fits now: they may be meant for later, or mistyped."""
    names = [task.name for task in chosen.tasks]
    globs = [entry.name for entry in chosen.entries if not entry.id]
    return [glob for glob in globs if not any(fnmatchcase(name, glob) for name in names)]


async def _try(
    task: Task, source: Source, now: datetime, waiting: Status | None, draft: SourceDraft
) -> Trial:
    if waiting is not None:
        return Trial(ok=True, words=f"is {waiting}: nothing to read yet")
    said, failed, nothing = [], False, True
    for question in (_metric, _logs):
        try:
            words, empty = await question(task, source, now)
        except SourceError as error:
            words, empty, failed = draft.book.redact(str(error)), True, True
            words = f"{'metrics' if question is _metric else 'logs'} cannot be read: {words}"
        if words:
            said.append(words)
        nothing = nothing and empty
    return Trial(ok=not failed, words="; ".join(said), doubt=nothing)


async def _metric(task: Task, source: Source, now: datetime) -> tuple[str, bool]:
    infos = source.metric_infos()
    if Capability.METRICS not in source.capabilities or not infos:
        return "", True
    name = infos[0].name
    answer = await source.metric(task, name, since=now - RECENT, now=now)
    newest = max((int(one.times[-1]) for one in answer.series if len(one.times)), default=0)
    if not newest:
        return f"no data of {name} in the last 15 minutes", True
    count = f"{len(answer.series)} series of {name}"
    age = max(now - from_ns(newest), timedelta())
    return f"{count}, the newest point is {short(age)} old", False


async def _logs(task: Task, source: Source, now: datetime) -> tuple[str, bool]:
    if Capability.LOGS not in source.capabilities:
        return "", True
    end = to_ns(now)
    page = await source.logs(task, LogQuery(start_ns=end - duration_ns(RECENT), end_ns=end, limit=10))
    return ("logs can be read", False) if page.lines else ("no log line in the last 15 minutes", True)


def short(age: timedelta) -> str:
    """Return an age by its largest unit: 3d, 5h, 12m, 40s."""
    for unit in (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)):
        if age >= unit:
            return format_duration(age // unit * unit)
    return f"{max(0, int(age.total_seconds()))}s"


def _age(one: TaskObservation, now: datetime) -> str:
    return short(now - one.started) if one.started and one.started < now else ""


def _known(word: str, look: Look) -> list[Task]:
    tasks = [one.task for one in (look.listing.tasks if look.listing else ())]
    return [task for task in tasks if word == task.id] or [task for task in tasks if word == task.name]


def _fitting(glob: str, look: Look) -> list[Task]:
    return [one.task for one in live(look) if fnmatchcase(one.task.name, glob)]


def _meaning(
    word: str, source: str, rows: Sequence[TaskObservation], look: Look
) -> tuple[WatchEntry, list[Task]]:
    """Return the entry that one word stands for, and the tasks that it means now."""
    if word.isdecimal() and 1 <= int(word) <= len(rows):
        task = rows[int(word) - 1].task
        return _by_id(task, task.id, source), [task]
    known = _known(word, look)
    if known and known[0].id == word:
        return _by_id(known[0], word, source), known
    if known and not is_glob(word):
        return WatchEntry(source=source, name=word), known
    if known:  # a name that happens to look like a glob
        return _by_id(known[0], known[0].id, source), known[:1]
    if is_glob(word):
        return WatchEntry(source=source, name=word), _fitting(word, look)
    return _by_id(None, word, source), []


def _by_id(task: Task | None, task_id: str, source: str) -> WatchEntry:
    name = task.name if task and task.name != task_id else ""
    return WatchEntry(source=source, id=task_id, name=name)


def _wrong(text: str, rows: Sequence[TaskObservation], look: Look) -> str:
    """Say why an answer cannot be meant."""
    for word in _SEPARATORS.split(text.strip(", ")):
        row = word.isdecimal() and 1 <= int(word) <= min(len(rows), ROWS_SHOWN)
        if word.isdecimal() and len(word) < 5 and not row and not _known(word, look):
            return f"there is no number {word}" if rows else f"{word} is no id"
        if is_glob(word) and look.listing is None:
            return "names are found through the task list, which cannot be read: give an id"
    return ""
