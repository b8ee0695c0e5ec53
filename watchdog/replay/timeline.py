"""What was sent against what was expected, and both side by side when they differ.

Pure. A scenario passes only if every expected message came, in time and in words, and none else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from watchdog.config.scenario import Expectation, Scenario
from watchdog.config.scenario_schema import Span
from watchdog.core.durations import format_duration
from watchdog.replay.world import Sent

TOLERANCE = timedelta(seconds=5)  # after the expected time; sending takes a moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one scenario. `pairs`: expected and sent, each at most once, by time."""

    failures: tuple[str, ...]
    pairs: tuple[tuple[Expectation | None, Sent | None, str], ...]

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return not self.failures


def judge(scenario: Scenario, sent: Sequence[Sent]) -> Verdict:
    """Compare what was sent with what the scenario expects."""
    left = list(sent)
    letters: dict[str, str] = {}
    missed: list[tuple[Expectation, dict[str, str]]] = []
    pairs: list[tuple[Expectation | None, Sent | None, str]] = []
    for wanted in sorted(scenario.expect, key=lambda expectation: expectation.at[0]):
        found = next((message for message in left if not _differs(wanted, message, letters)), None)
        if found is None:
            missed.append((wanted, dict(letters)))
            continue
        left.remove(found)
        if wanted.incident:
            letters[wanted.incident] = found.incident
        pairs.append((wanted, found, ""))
    failures: list[str] = []
    for wanted, then in missed:
        why = _why_missed(wanted, left, then)
        failures.append(f"line {wanted.line}: expected {_short(wanted)}: {why}")
        pairs.append((wanted, None, why))
    if not scenario.others:
        failures += [f"sent, but not expected: {_sent(message)}" for message in left]
    pairs += [(None, message, "" if scenario.others else "not expected") for message in left]
    failures += _broken_silence(scenario.none_between, sent)
    return Verdict(failures=tuple(failures), pairs=tuple(sorted(pairs, key=_when)))


def _why_missed(wanted: Expectation, left: Sequence[Sent], letters: Mapping[str, str]) -> str:
    """Say in what the nearest message that nobody expects differs."""
    near = min(left, key=lambda message: _distance(wanted, message), default=None)
    return "nothing more was sent" if near is None else _differs(wanted, near, letters)


def side_by_side(verdict: Verdict) -> list[tuple[str, str, str]]:
    """Return rows (expected, sent, remark) for a table."""
    return [
        (_short(wanted) if wanted else "", _sent(message) if message else "", remark)
        for wanted, message, remark in verdict.pairs
    ]


def offset_text(offset: timedelta) -> str:
    """Print a time relative to the scenario's start: `T+10m`."""
    whole = timedelta(seconds=round(offset.total_seconds(), 1))
    return f"T{'-' if whole < timedelta() else '+'}{format_duration(abs(whole))}"


def _differs(wanted: Expectation, message: Sent, letters: Mapping[str, str]) -> str:
    """Why a message is not the expected one; "" if it is."""
    if (wanted.channel, wanted.kind) != (message.channel, message.kind):
        return f"nearest is {_sent(message)}"
    if wanted.rule not in ("", message.rule) or wanted.task not in ("", message.task):
        return f"nearest is about {message.rule} of {message.task or 'no task'}"
    if not wanted.at[0] <= message.at <= wanted.at[1] + TOLERANCE:
        return f"came at {offset_text(message.at)}"
    for text in wanted.contains:
        if text not in message.text:
            return f"the text lacks {text!r}: {message.text!r}"
    for text in wanted.lacks:
        if text in message.text:
            return f"the text has {text!r}"
    return _wrong_incident(wanted.incident, message.incident, letters)


def _wrong_incident(letter: str, incident: str, letters: Mapping[str, str]) -> str:
    if not letter:
        return ""
    if letter in letters:
        return "" if letters[letter] == incident else f"is about another incident than the earlier {letter!r}"
    known = {known: name for name, known in letters.items()}
    return f"is about the same incident as {known[incident]!r}" if incident in known else ""


def _distance(wanted: Expectation, message: Sent) -> tuple[bool, bool, timedelta]:
    return (
        wanted.channel != message.channel,
        wanted.kind != message.kind or wanted.rule not in ("", message.rule),
        abs(message.at - wanted.at[0]),
    )


def _broken_silence(spans: Sequence[Span], sent: Sequence[Sent]) -> list[str]:
    return [
        f"sent between {offset_text(begin)} and {offset_text(end)}: {_sent(message)}"
        for begin, end in spans
        for message in sent
        if begin <= message.at <= end
    ]


def _short(wanted: Expectation) -> str:
    begin, end = wanted.at
    at = offset_text(begin) if begin == end else f"{offset_text(begin)}..{offset_text(end)}"
    about = " ".join(filter(None, (wanted.rule, wanted.task)))
    return f"{at} {wanted.channel} {wanted.kind}" + (f" [{about}]" if about else "")


def _sent(message: Sent) -> str:
    return f"{offset_text(message.at)} {message.channel} {message.kind} [{message.rule}] {message.title}"


def _when(pair: tuple[Expectation | None, Sent | None, str]) -> timedelta:
    wanted, message, _ = pair
    if message is not None:
        return message.at
    assert wanted is not None
    return wanted.at[0]
