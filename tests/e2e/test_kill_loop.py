"""Kill -9, again and again: nothing decided is lost, nothing is told twice but by the kill, nothing is a lie.

The cloud and the webhook receiver outlive the daemon. Half of the kills come at random instants, the
others in a chosen window: after T1, after T2, once a message is marked as in flight, once it has arrived,
after T3, after any transaction. WATCHDOG_KILLS says how many (20).
"""

import os
import random
import re
import sys
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

KILLS = int(os.environ.get("WATCHDOG_KILLS", "20"))
SEED = int(os.environ.get("WATCHDOG_SEED", "4"))
PAUSE = 5  # after this kill
WINDOWS = ("T1", "T2", "step", "started", "sent", "T3", "step")
RULES = r"""
channels:
  fast: { url: "${FAST}" }
  slow: { url: "${SLOW}" }
rules:
  - { name: gpu-low, metric: gpu, below: 10% }
  - { name: gpu-stays-low, metric: gpu, below: 10%, for: 1s }
  # Quiet soon (in watched time, of which short lives have little): at most 500 incidents of a rule are open
  # at once, and each line is to have its own.
  - { name: errors, log: { match: '\bERROR\b', by: pod }, quiet_for: 5s }
  - { name: counted, log: { match: '\bERROR\b', count: { above: 1000000, within: 12h } } }
  - { name: pod-gone, enabled: false }
"""
LOW, HIGH = 0.02, 0.94
# Said about the watching itself, and true whenever a machine is busy or a daemon was killed.
NOTICES = re.compile(r"was not watching|its interval( again)?$")


@dataclass
class Low:
    """One stretch of low GPU values: when it was asked for, and when its end was."""

    begin: float
    end: float = float("inf")


@dataclass
class Training(threading.Thread):
    """The watched run: prints ERROR lines, each from a pod of its own, and lets its GPUs fall and rise."""

    cloud: Any
    receiver: Any
    seed: int
    said: list[str] = field(default_factory=list)
    lows: list[Low] = field(default_factory=list)
    failure: Exception | None = None

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self._random = random.Random(self.seed)
        self._over = threading.Event()

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        try:
            while not self._over.wait(self._random.uniform(0.2, 1.0)):
                self._say()
                self._turn()
            self._rise()
        except Exception as error:  # noqa: BLE001 - raised again by `end`
            self.failure = error

    def end(self) -> None:
        """Stop; the GPUs are busy again."""
        self._over.set()
        self.join(30)
        assert not self.is_alive()
        if self.failure is not None:
            raise self.failure

    def _say(self) -> None:
        name = f"{len(self.said):05d}"
        late = self._random.choice((0, 0, 0, 0.5, 2))
        self.cloud.say(f"ERROR no. {name}: no such shard", pod=f"pod-{name}", late=late)
        self.said.append(name)

    def _turn(self) -> None:
        """Fall or rise; mostly once the last turn was told, sometimes at once."""
        low = bool(self.lows) and self.lows[-1].end == float("inf")
        told = [one for one in self.receiver.told("fast") if "· gpu-low ·" in one.title]
        since = self.lows[-1].begin if low else self.lows[-1].end if self.lows else 0.0
        heard = any(one.at > since and ("ecovered" in one.title) is not low for one in told)
        patient = (heard or not self.lows) and self._random.random() < 0.3
        if patient or self._random.random() < 0.03:
            self._rise() if low else self._fall()

    def _fall(self) -> None:
        self.lows.append(Low(time.time()))
        self.cloud.gpu(LOW)

    def _rise(self) -> None:
        if self.lows and self.lows[-1].end == float("inf"):
            self.lows[-1].end = time.time()
            self.cloud.gpu(HIGH)


@dataclass
class Kills:
    """The kills of one run."""

    at: list[float] = field(default_factory=list)
    hit: Counter[str] = field(default_factory=Counter)


def kill_once(stage: Any, daemon: Any, receiver: Any, chance: random.Random, kills: Kills) -> None:
    """Let a daemon live for a moment, and kill it at a random instant or in a chosen window."""
    number = len(kills.at)
    if number % 2:
        window = WINDOWS[number // 2 % len(WINDOWS)]
        arguments = (stage.state.path, daemon.pid, window, receiver.file, 5)
        if number > 1:
            until_slot(stage, daemon)
        turnstile = stage.start(f"turnstile-{number}", sys.executable, "-S", TURNSTILE, *arguments)
        assert turnstile.wait() == 0, turnstile.err
        assert turnstile.out != "torn\n", "a log cursor was moved outside of T1"
        kills.hit[window] += turnstile.out == "hit\n"
        kills.hit["missed"] += turnstile.out != "hit\n"
    else:
        if chance.random() < 0.6:
            until_slot(stage, daemon)
            time.sleep(chance.choice((chance.uniform(0, 1.1), chance.uniform(0, 3))))
        else:
            time.sleep(chance.uniform(0.2, 3))
        kills.hit["at random"] += 1
    kills.at.append(time.time())
    daemon.kill()


TURNSTILE = Path(__file__).with_name("turnstile.py")


def until_slot(stage: Any, daemon: Any) -> None:
    """Wait for a slot of this life."""
    began = time.time()
    deadline = began + 60
    while stage.state.slot() <= began:
        assert daemon.code is None, daemon.err
        assert time.time() < deadline, "no slot within a minute"
        time.sleep(0.01)


@pytest.mark.timeout(120 + 30 * KILLS)
def test_killed_at_any_instant(stage: Any, wait_until: Callable[..., Any]) -> None:
    cloud, receiver = stage.cloud(), stage.receiver()
    cloud.gpu(HIGH)
    stage.env |= {"FAST": receiver.channel("fast"), "SLOW": receiver.channel("slow")}
    receiver.answers({"kind": "hang", "path": "*/slow", "value": "0.1", "times": 0})
    rules = stage.rules(RULES)
    stage.watching(rules).kill()  # the log is followed from here on
    training = Training(cloud, receiver, SEED)
    training.start()
    chance, kills = random.Random(SEED), Kills()
    for _ in range(KILLS):
        kill_once(stage, stage.daemon(rules), receiver, chance, kills)
        if len(kills.at) == PAUSE:
            time.sleep(4)  # long enough for the outage to be worth a word
    daemon = stage.daemon(rules)
    until_slot(stage, daemon)
    training.end()

    wait_until(
        lambda: all_told(stage, receiver, training),
        "everything to be told",
        alive=daemon,
        patience=60 + KILLS,
    )
    daemon.signal(15)
    assert daemon.wait() == 0, daemon.err
    report(stage, receiver, training, kills)

    assert stage.state.whole()
    no_line_is_lost_or_counted_twice(stage, receiver, training)
    every_alert_is_told(stage, receiver, training)
    repeats_are_few_and_marked(stage, receiver, kills)
    nothing_else_is_said(receiver, training)
    assert "was not watching" in receiver.texts("fast")
    assert all(kills.hit[window] for window in WINDOWS) or KILLS < 10, kills.hit
    for child in stage.children:
        assert "Traceback" not in child.err, child.err


def all_told(stage: Any, receiver: Any, training: Training) -> bool:
    waiting = stage.state.rows("SELECT 1 FROM outbox WHERE state IN ('pending', 'inflight')")
    open_alerts = stage.state.rows("SELECT 1 FROM incidents WHERE rule LIKE 'gpu-%' AND closed_us IS NULL")
    read = stage.state.rows("SELECT count(*) FROM samples WHERE metric = 'log:counted'")
    return not waiting and not open_alerts and read == [(len(training.said),)]


def no_line_is_lost_or_counted_twice(stage: Any, receiver: Any, training: Training) -> None:
    for channel in ("fast", "slow"):
        shown = set(re.findall(r"ERROR no\. (\d+)", receiver.texts(channel)))
        assert set(training.said) - shown == set(), f"lines that {channel} was never told"
    bodies = stage.state.rows(
        "SELECT json_extract(body, '$.labels.pod'), json_extract(body, '$.count') FROM incidents"
        " WHERE rule = 'errors'"
    )
    assert sorted(bodies) == [(f"pod-{name}", 1) for name in training.said]
    samples = stage.state.rows(
        "SELECT count(*), count(DISTINCT time_ns), sum(value) FROM samples WHERE metric = 'log:counted'"
    )
    assert samples == [(len(training.said),) * 3]


def every_alert_is_told(stage: Any, receiver: Any, training: Training) -> None:
    alerts = stage.state.rows(
        "SELECT id, opened_us / 1e6, closed_us / 1e6, json_extract(body, '$.close_reason')"
        " FROM incidents WHERE rule LIKE 'gpu-%' ORDER BY opened_us"
    )
    assert len(alerts) >= min(3, len(training.lows))
    begins = [low.begin for low in training.lows]
    for incident, opened, closed, reason in alerts:
        assert reason == "recovered"
        number = bisect_right(begins, opened) - 1
        assert number >= 0, f"{incident} fired before the GPUs fell"
        low = training.lows[number]
        assert opened < low.end + SLACK, f"{incident} fired while the GPUs were busy"
        assert closed > low.end, f"{incident} closed while the GPUs were idle"
        for channel in ("fast", "slow"):
            titles = {one.title: one.at for one in receiver.told(channel) if one.incident == incident}
            kinds = {title.split(" · ")[0]: at for title, at in titles.items()}
            assert set(kinds) in ({"WARNING", "Recovered"}, {"Fired and recovered"}), (
                incident,
                channel,
                titles,
            )
            assert min(at for kind, at in kinds.items() if "ecovered" in kind) > low.end


SLACK = 10.0  # seconds in which a slot may still be judging points from before a turn


def repeats_are_few_and_marked(stage: Any, receiver: Any, kills: Kills) -> None:
    """At most one repeat a channel and kill, of the same incident, and it says what it is."""
    rows = Counter(stage.state.rows("SELECT channel, incident, kind FROM outbox WHERE state <> 'superseded'"))
    assert set(rows.values()) == {1}
    for channel in ("fast", "slow"):
        lives: Counter[int] = Counter()
        known: set[tuple[str, str]] = set()
        for one in receiver.told(channel):
            assert one.incident, one
            key = (one.incident, one.title)
            if key in known:
                lives[bisect_right(kills.at, one.at)] += 1
                assert "may be a repeat" in one.body, one
            known.add(key)
        assert max(lives.values(), default=0) <= 1, lives
        assert 0 not in lives


def nothing_else_is_said(receiver: Any, training: Training) -> None:
    for one in receiver.told():
        if "· errors ·" in one.title:
            assert set(re.findall(r"ERROR no\. (\d+)", one.body)) <= set(training.said)
        elif "· gpu-" not in one.title:
            assert NOTICES.search(one.title), one


def report(stage: Any, receiver: Any, training: Training, kills: Kills) -> None:
    """The figures of the run (shown by pytest -s)."""
    keys = [(one.channel, one.incident, one.title) for one in receiver.told()]
    alerts = stage.state.rows("SELECT count(*) FROM incidents WHERE rule LIKE 'gpu-%'")[0][0]
    print(f"\nkills: {len(kills.at)} ({dict(kills.hit)})")
    print(f"lines: {len(training.said)}; falls: {len(training.lows)}; alerts: {alerts}")
    print(f"messages: {len(keys)}, of these repeats: {len(keys) - len(set(keys))}")
    combined, notices = (sum(word in title for _, _, title in keys) for word in ("Fired and", "· watchdog ·"))
    print(f"combined messages: {combined}; notices: {notices}")
