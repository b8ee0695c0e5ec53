"""What was sent against what was expected: which message answers which expectation, and in what they differ.

Pure. A scenario passes only if every expected message came, in time and in words, and none else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import SequenceMatcher

from watchdog.config.scenario import Expectation, Scenario
from watchdog.config.scenario_schema import Span
from watchdog.core.durations import format_duration
from watchdog.replay.world import Sent

TOLERANCE = timedelta(seconds=5)  # after the expected time; sending takes a moment
NOT_EXPECTED = "not expected"
NOTHING_LIKE_IT = "nothing like it was sent"
LIKE = 0.6  # of a text's letters, in runs of at least `RUN`: the line was probably meant
RUN = 3
SHOWN = 160  # characters of a line that is quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was expected and what came, each at most once. `differences`: none if it is as expected."""

    wanted: Expectation | None
    sent: Sent | None
    differences: tuple[str, ...] = ()

    @property
    def at(self) -> timedelta:
        """Where it stands in the story."""
        if self.sent is not None:
            return self.sent.at
        assert self.wanted is not None
        return self.wanted.at[0]

    @property
    def line(self) -> int:
        """Where the expectation stands in the file; 0 if nothing was expected."""
        return self.wanted.line if self.wanted else 0

    @property
    def expected(self) -> str:
        """Say what was expected; "" if nothing was."""
        if self.wanted is None:
            return ""
        begin, end = self.wanted.at
        at = offset_text(begin) if begin == end else f"{offset_text(begin)}..{offset_text(end)}"
        about = " ".join(filter(None, (self.wanted.rule, self.wanted.task)))
        return f"{at} {self.wanted.channel} {self.wanted.kind}" + (f" [{about}]" if about else "")

    @property
    def came(self) -> str:
        """Say what was sent; "" if nothing was."""
        return "" if self.sent is None else _sent(self.sent)

    @property
    def came_shortly(self) -> str:
        """Say when it was sent, and what only if that is not what was expected."""
        if self.sent is None or self.wanted is None:
            return self.came
        same = (self.wanted.channel, self.wanted.kind) == (self.sent.channel, self.sent.kind)
        return offset_text(self.sent.at) if same and _is_about(self.wanted, self.sent) else self.came


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one scenario. `broken`: silences that were not kept; `rows`: by time."""

    failures: tuple[str, ...]
    rows: tuple[Row, ...]
    broken: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return not self.failures


def judge(scenario: Scenario, sent: Sequence[Sent]) -> Verdict:
    """Compare what was sent with what the scenario expects."""
    left = list(sent)
    letters: dict[str, str] = {}
    missed: list[tuple[Expectation, dict[str, str]]] = []
    rows: list[Row] = []
    for wanted in sorted(scenario.expect, key=lambda expectation: expectation.at[0]):
        found = next((message for message in left if _fits(wanted, message, letters)), None)
        if found is None:
            missed.append((wanted, dict(letters)))
            continue
        left.remove(found)
        if wanted.incident:
            letters[wanted.incident] = found.incident
        rows.append(Row(wanted=wanted, sent=found))
    near = _nearest([wanted for wanted, _ in missed], left)
    for number, (wanted, then) in enumerate(missed):
        message = near.get(number)
        why = _differences(wanted, message, then) if message else (NOTHING_LIKE_IT,)
        rows.append(Row(wanted=wanted, sent=message, differences=tuple(why)))
    told = list(near.values())
    rest = [message for message in left if not any(message is other for other in told)]
    rows += [
        Row(wanted=None, sent=message, differences=() if scenario.others else (NOT_EXPECTED,))
        for message in rest
    ]
    rows.sort(key=lambda row: row.at)
    broken = tuple(_broken_silence(scenario.none_between, sent))
    return Verdict(failures=(*_failures(rows), *broken), rows=tuple(rows), broken=broken)


def _failures(rows: Sequence[Row]) -> Iterator[str]:
    """One sentence for each row that is not as expected: first what is missing, then what is too much."""
    for row in sorted((r for r in rows if r.wanted and r.differences), key=lambda row: row.line):
        yield f"line {row.line}: expected {row.expected}: {'; '.join(row.differences)}"
    for row in rows:
        if row.sent and not row.wanted and row.differences:
            yield f"sent, but not expected: {_sent(row.sent)} {row.sent.title}"


def offset_text(offset: timedelta) -> str:
    """Print a time relative to the scenario's start: `T+10m`."""
    whole = timedelta(seconds=round(offset.total_seconds(), 1))
    return f"T{'-' if whole < timedelta() else '+'}{format_duration(abs(whole))}"


# --- which message was probably meant


def _nearest(missed: Sequence[Expectation], left: Sequence[Sent]) -> dict[int, Sent]:
    """Return for expectations, by number, the message that comes nearest; each message once."""
    pairs = sorted(
        (_distance(wanted, message), number, place)
        for number, wanted in enumerate(missed)
        for place, message in enumerate(left)
        if _alike(wanted, message)
    )
    found: dict[int, Sent] = {}
    taken: set[int] = set()
    for _, number, place in pairs:
        if number not in found and place not in taken:
            found[number] = left[place]
            taken.add(place)
    return found


def _alike(wanted: Expectation, message: Sent) -> bool:
    """Whether it is of the same channel, and of the same kind or about the same."""
    if wanted.channel != message.channel:
        return False
    return wanted.kind == message.kind or (bool(wanted.rule) and _is_about(wanted, message))


def _is_about(wanted: Expectation, message: Sent) -> bool:
    return wanted.rule in ("", message.rule) and wanted.task in ("", message.task)


def _distance(wanted: Expectation, message: Sent) -> tuple[int, timedelta]:
    wrong = (wanted.kind != message.kind) + (not _is_about(wanted, message))
    return wrong, abs(_outside(wanted.at, message.at))


def _outside(span: Span, at: timedelta) -> timedelta:
    """How much later than the span a time is; negative: earlier; zero: within it."""
    begin, end = span
    if at < begin:
        return at - begin
    return at - end if at > end + TOLERANCE else timedelta()


# --- in what they differ


def _fits(wanted: Expectation, message: Sent, letters: Mapping[str, str]) -> bool:
    return next(_differences(wanted, message, letters, quote=False), None) is None


def _differences(
    wanted: Expectation, message: Sent, letters: Mapping[str, str], *, quote: bool = True
) -> Iterator[str]:
    """Say in what a message is not the expected one. quote: with the line that comes nearest."""
    yield from _wrong_kind(wanted, message)
    off = _outside(wanted.at, message.at)
    if off:
        which = "late" if off > timedelta() else "early"
        yield f"it came at {offset_text(message.at)}, {_about(abs(off))} {which}"
    for text in wanted.contains:
        if text not in message.text:
            yield f"the text lacks {text!r}" + (_instead(text, message) if quote else "")
    for text in wanted.lacks:
        if text in message.text:
            yield f"the text has {text!r}: {_quoted(_line_with(text, message), text)}"
    wrong = _wrong_incident(wanted.incident, message.incident, letters)
    if wrong:
        yield wrong


def _wrong_kind(wanted: Expectation, message: Sent) -> Iterator[str]:
    if wanted.channel != message.channel:
        yield f"it came on {message.channel}"
    if wanted.kind != message.kind:
        yield f"its kind is {message.kind}, not {wanted.kind}"
    if wanted.rule not in ("", message.rule):
        yield f"it is about {message.rule}, not {wanted.rule}"
    if wanted.task not in ("", message.task):
        yield f"it is about {message.task or 'no task'}, not {wanted.task}"


def _about(duration: timedelta) -> str:
    """Print how much a message is off, without milliseconds that nobody asked for."""
    return format_duration(timedelta(seconds=max(round(duration.total_seconds()), 1)))


def _instead(text: str, message: Sent) -> str:
    """Quote the line that was probably meant; "" if none is much like it."""
    like = {line.strip(): _likeness(text, line) for line in message.text.splitlines()}
    best = max(like, key=lambda line: like[line], default="")
    return f"; it says {_quoted(best, text)}" if best and like[best] >= LIKE else ""


def _likeness(text: str, line: str) -> float:
    """How much of a text is in a line: 0 to 1."""
    blocks = SequenceMatcher(None, text, line, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks if block.size >= RUN) / len(text)


def _line_with(text: str, message: Sent) -> str:
    return next((line.strip() for line in message.text.splitlines() if text in line), message.title)


def _quoted(line: str, text: str) -> str:
    """Quote a line; of a very long one, the part around what it was compared with."""
    if len(line) <= SHOWN:
        return repr(line)
    match = SequenceMatcher(None, line, text, autojunk=False).find_longest_match()
    begin = min(max(0, match.a - SHOWN // 2), len(line) - SHOWN)
    end = begin + SHOWN
    return repr(("…" if begin else "") + line[begin:end] + ("…" if end < len(line) else ""))


def _wrong_incident(letter: str, incident: str, letters: Mapping[str, str]) -> str:
    if not letter:
        return ""
    if letter in letters:
        return (
            "" if letters[letter] == incident else f"it is about another incident than the earlier {letter!r}"
        )
    known = {known: name for name, known in letters.items()}
    return f"it is about the same incident as {known[incident]!r}" if incident in known else ""


def _broken_silence(spans: Sequence[Span], sent: Sequence[Sent]) -> Iterator[str]:
    for begin, end in spans:
        for message in sent:
            if begin <= message.at <= end:
                between = f"sent between {offset_text(begin)} and {offset_text(end)}"
                yield f"{between}: {_sent(message)} {message.title}"


def _sent(message: Sent) -> str:
    about = " ".join(filter(None, (message.rule, message.task)))
    return f"{offset_text(message.at)} {message.channel} {message.kind} [{about}]"
