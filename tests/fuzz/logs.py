"""Lines of a log, however garbled: split, cleaned, matched, joined, masked, stored and told.

Promises: every planted line that matches is found, whatever stands around it; no planted secret is in what is
kept or told; masking twice changes nothing more; a message fits its channel.
"""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.fuzz.mutating import text
from tests.fuzz.running import Shown
from watchdog.core.alerts import Incident
from watchdog.core.conditions.kinds import LogEvent, LogMatch
from watchdog.core.conditions.log import log_occurrences
from watchdog.core.durations import SECOND_NS, to_ns
from watchdog.core.incidents import new_incident
from watchdog.core.logs import LogLine
from watchdog.core.masking import mask
from watchdog.core.notifications import ChannelLimits, LimitUnit, MessageKind, Notification
from watchdog.core.rendering import ChannelLook, compose
from watchdog.core.rules import Rule
from watchdog.core.scanning import LogScanner
from watchdog.core.tasks import Task
from watchdog.core.trimming import size
from watchdog.store.codec import INCIDENT, decode, encode
from watchdog.text.patterns import Re2Engine

ENGINE = Re2Engine()
NOW = datetime(2026, 9, 10, 4, 0, tzinfo=UTC)
TASK = Task(key="s/1", source="s", id="1", name="run")
TOKEN = "eyJhbGciOiJIUzI1NiJ9.c2VjcmV0LWJlYXJlcg.k3Y7pQ9wErTyUiOpAsDf"
EXPECTED = ("found", "nothing planted")
WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett")
RULES = (
    Rule(
        name="planted",
        condition=LogEvent(
            lines=LogMatch(match=(ENGINE.compile(r"\bERROR: planted \w+"),)), before=2, after=2
        ),
    ),
    Rule(
        name="wide",
        condition=LogEvent(lines=LogMatch(match=(ENGINE.compile(r"(?i)error|[^\x00-\x7f]|\d{3}"),))),
    ),
    Rule(
        name="narrow",
        condition=LogEvent(
            lines=LogMatch(
                match=(ENGINE.compile("Error|\\x{fffd}"), ENGINE.compile(r"^\s*at .*$")),
                ignore=(ENGINE.compile("(a|b)*c"),),
            )
        ),
    ),
)
PIECES = (
    "ERROR",
    "Traceback (most recent call last):",
    '  File "/a/b.py", line 3, in f',
    "ValueError: bad",
    "    raise ValueError('bad')",
    "During handling of the above exception, another exception occurred:",
    "[rank3]: ",
    "[rank3]:[rank4]: ",
    "(pid=7, ip=1.2.3.4) ",
    "0: ",
    "\r",
    "\n",
    "\r\n",
    "\t",
    "\0",
    " 10%|█▉        | 1/10 [00:01<00:09, 1.0s/it]",
    "\x1b[31m",
    "\x1b]0;",
    "\x07",
    "\x1b[",
    "\x9b",
    "\x1bP",
    "\x1b\\",
    "\u202e",
    "\u2028",
    "\x85",
    "\x0b",
    "\x0c",
    "\ufeff",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----",
    "MIIEpAIBAAKCAQEA" * 4 + "xyz",
    "password=",
    "password: 'hunter2hunter2'",
    "token=",
    "://u:p@",
    "https://u:secret@h/?token=abcdefgh",
    "Bearer ",
    "Authorization: ",
    "hf_",
    "sk-",
    "--api-key ",
    "api_key=",
    "WANDB_API_KEY=",
    "=",
    ":",
    "'",
    '"',
    "\\",
    '\\"',
    "eyJ",
    "a" * 5000,
    "9" * 3000,
    "= " * 2000,
    "://" * 2000,
    "token=" * 1500,
    "\x1b[" * 3000,
    "key " * 2000,
    "()[]{}" * 800,
    "/a" * 3000,
    "…",
    " […12,345 characters cut…] ",
    "#" * 3000,
    "é" * 4000,
    "\U0001f4a5" * 2000,
    "\u0301" * 3000,
    "- " * 3000,
    ">" * 500,
    "\ud800",
    "<!channel> @everyone",
    "{{ value }}",
    "](http://x)",
    "job-watchdog",
    "1970-01-01 00:00:00",
    "step 12 loss 0.123",
    " " * 4000,
    "AKIA",
    "\r" * 3000,
    "x\r" * 2000,
    "\n" * 2000,
    "_key=" * 2000,
    "login is " * 900,
)
SHORT = tuple(piece for piece in PIECES if len(piece) < 200)


def case(dice: random.Random, shown: Shown) -> str:
    rows, planted = _rows(dice)
    shown(rows)
    scanner = LogScanner(RULES, ENGINE)
    told: list[str] = []
    cut = dice.randrange(len(rows) + 1)
    for part in (rows[:cut], rows[cut:]):
        hits = scanner.scan(TASK, part)
        for rule in RULES:
            own = hits.of(rule.name)
            if own is None:
                continue
            if rule.name == "planted":
                told += [line.text for line in own.lines()]
            for occurrence in log_occurrences(rule, TASK, own, NOW):
                assert occurrence.evidence.lines
                _tell(replace(_incident(rule, occurrence.evidence), count=occurrence.count), dice)
    for word in planted:
        assert any(f"ERROR: planted {word}" in line for line in told), f"{word} was not found"
    for row in rows[:3]:
        once = mask(row.text[:4_000])
        assert mask(once) == once, f"masked twice it is another: {once[:200]!r}"
    return "found" if planted else "nothing planted"


def _rows(dice: random.Random) -> tuple[list[LogLine], list[str]]:
    """Return rows, and the words of the lines planted among them."""
    rows: list[LogLine] = []
    planted: list[str] = []
    for number in range(dice.choice((1, 2, 4, 8))):
        pod = dice.choice(("", "p-0", "p-0", "p-1", text(dice, 5)))
        parts = [_garbage(dice) for _ in range(dice.choice((1, 1, 2)))]
        if len(planted) < len(WORDS) and dice.randrange(3):
            word = WORDS[len(planted)]
            planted.append(word)
            parts.insert(dice.randrange(len(parts) + 1), _planted(word, dice))
        time_ns = to_ns(NOW) - dice.choice((0, 0, 1, 60, 500)) * SECOND_NS + number
        rows.append(LogLine(time_ns, pod, "\n".join(parts)))
    return rows, planted


def _planted(word: str, dice: random.Random) -> str:
    line = f"ERROR: planted {word}"
    return dice.choice(
        (
            line,
            line,
            f"[rank1]: {line}",
            f"\x1b[31m{line}\x1b[0m",
            f"{line}\r",
            f"12% \r{line}",
            f"{line} Authorization: Bearer {TOKEN}",
            f"{line} {'x' * dice.choice((20, 20_000))}",
            f"{'y' * dice.choice((20, 20_000))} {line}",
            f"\ufeff{line}\0",
            f"{line} \ud800",
        )
    )


def _garbage(dice: random.Random) -> str:
    kind = dice.randrange(5)
    if kind == 0:
        codec, errors = dice.choice(
            (
                ("utf-8", "replace"),
                ("utf-8", "surrogateescape"),
                ("latin-1", "strict"),
                ("utf-16-le", "replace"),
                ("gbk", "replace"),
            )
        )
        return dice.randbytes(dice.choice((0, 3, 40, 400))).decode(codec, errors)
    if kind == 1:
        return text(dice, 60)
    if kind == 2 and dice.randrange(4) == 0:
        return dice.choice(PIECES) * dice.choice((1, 1, 1, 3))
    pieces = PIECES if dice.randrange(8) == 0 else SHORT
    return dice.choice(("", " ")).join(dice.choice(pieces) for _ in range(dice.choice((2, 3, 5, 8))))


def _incident(rule: Rule, evidence: object) -> Incident:
    incident = new_incident(rule, TASK.identity, TASK.key, NOW, NOW - timedelta(seconds=5))
    return replace(incident, first=evidence, latest=evidence)


def _tell(incident: Incident, dice: random.Random) -> None:
    """Store an incident and render it as messages."""
    stored = encode(incident)
    assert TOKEN not in stored, "a secret is stored"
    decode(INCIDENT, stored, "incident")
    limits = ChannelLimits(
        body=dice.choice((200, 900, 4000, 30_000)),
        title=dice.choice((0, 60, 250)),
        unit=dice.choice(list(LimitUnit)),
    )
    look = ChannelLook(language=dice.choice(("en", "zh")), limits=limits)
    kind = dice.choice((MessageKind.FIRST, MessageKind.UPDATE, MessageKind.REMINDER, MessageKind.CLOSED))
    message = compose(Notification(channel="c", kind=kind, incident=incident, decided_at=NOW), look)
    assert size(message.body, limits.unit) <= limits.body
    assert size(message.title, limits.unit) <= limits.title
    whole = message.title + message.body
    assert TOKEN not in whole, "a secret is told"
    assert incident.id in message.body
    whole.encode("utf-8")
