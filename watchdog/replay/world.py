"""What a simulation puts in place of the outside: channels that answer as scripted, a disk that
fills up, crashes at chosen points. The engine in the middle is the live one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from watchdog.config.scenario import ScenarioAnswer
from watchdog.config.scenario_schema import CrashPoint
from watchdog.core.alerts import Transition
from watchdog.core.notifications import (
    Answer,
    ChannelLimits,
    Delivery,
    DeliveryResult,
    Message,
    MessageKind,
)
from watchdog.errors import StoreError
from watchdog.ports import AttemptCommit, Clock, PlanCommit, SlotCommit, Store, Stored


class SimulatedCrashError(BaseException):
    """The process dies here; nothing after this point happens, so that nobody must catch it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One message that a channel accepted. `at`: offset from T+0."""

    at: timedelta
    channel: str
    kind: MessageKind
    rule: str
    task: str
    incident: str
    title: str
    body: str

    @property
    def text(self) -> str:
        """Everything a person sees."""
        return f"{self.title}\n{self.body}"


@dataclass(slots=True, kw_only=True)
class Trap:
    """Where the process is to die next; shared by everything that can die."""

    armed: CrashPoint | None = None
    down: timedelta = timedelta()  # how long it stays dead

    def spring(self, point: CrashPoint) -> None:
        """Die, if this is the point."""
        if self.armed is point:
            self.armed = None
            raise SimulatedCrashError(point)


@dataclass(slots=True, kw_only=True)
class ScriptedChannel:
    """A Notifier that answers as the scenario says and records what it accepted."""

    name: str
    limits: ChannelLimits
    answers: tuple[ScenarioAnswer, ...]
    clock: Clock
    offset: Callable[[], timedelta]
    trap: Trap
    record: Callable[[str, Message], None]
    used: dict[int, int] = field(default_factory=dict)  # answers given so far, over all lives

    async def send(self, message: Message) -> DeliveryResult:
        """Answer; an accepted message is recorded when the answer is given."""
        self.trap.spring(CrashPoint.BEFORE_SEND)
        answer = self._scripted()
        if answer is not None and answer.takes:
            await self.clock.sleep(answer.takes)
        result = self._measured(message) if answer is None else answer.result
        if result.answer in (Answer.OK, Answer.UNKNOWN):
            self.record(self.name, message)
        self.trap.spring(CrashPoint.AFTER_SEND)
        return result

    def _measured(self, message: Message) -> DeliveryResult:
        """What a channel in good health answers: it refuses a text that is longer than it takes."""
        size, room = len(message.body.encode()), self.limits.body
        if size > room:
            return DeliveryResult(answer=Answer.TOO_LONG, detail=f"{size} bytes, at most {room}")
        return DeliveryResult(answer=Answer.OK)

    async def close(self) -> None:
        """Nothing to stop."""

    def _scripted(self) -> ScenarioAnswer | None:
        now = self.offset()
        for number, answer in enumerate(self.answers):
            used = self.used.get(number, 0)
            if answer.begin <= now < answer.end and (answer.times is None or used < answer.times):
                self.used[number] = used + 1
                return answer
        return None


@dataclass(slots=True, kw_only=True)
class FragileStore:
    """A real store on a disk that may be full, in a process that may die between transactions."""

    inner: Store
    trap: Trap
    full: Callable[[], bool] = field(default=lambda: False)

    def load(self) -> Stored:
        """Read all that a start needs."""
        return self.inner.load()

    def commit_slot(self, commit: SlotCommit) -> tuple[Transition, ...]:
        """T1."""
        matters = bool(commit.transitions)
        if matters:
            self.trap.spring(CrashPoint.BEFORE_T1)
        self._write()
        numbered = self.inner.commit_slot(commit)
        if matters:
            self.trap.spring(CrashPoint.AFTER_T1)
        return numbered

    def commit_plan(self, commit: PlanCommit) -> tuple[Delivery, ...]:
        """T2."""
        self._write()
        rows = self.inner.commit_plan(commit)
        if commit.deliveries:
            self.trap.spring(CrashPoint.AFTER_T2)
        return rows

    def start_attempt(self, delivery: Delivery) -> None:
        """Mark a row as in flight."""
        self._write()
        self.inner.start_attempt(delivery)

    def commit_attempt(self, commit: AttemptCommit) -> None:
        """T3."""
        self._write()
        self.inner.commit_attempt(commit)

    def prune(self, now: datetime) -> None:
        """Drop what nobody needs any more."""
        self._write()
        self.inner.prune(now)

    def close(self) -> None:
        """The file stays open for the next life."""

    def _write(self) -> None:
        if self.full():
            raise StoreError("the disk is full (scripted)")
