"""The live verbs, from the command line over a real socket to a played engine, and without a daemon."""

import asyncio
import json
import re
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from watchdog.clock import SystemClock
from watchdog.config.build import Knowledge, Loaded, loads
from watchdog.config.rulefile import RuleFile
from watchdog.core.notifications import Answer, DeliveryResult
from watchdog.engine.answers import Answers
from watchdog.engine.control import Control
from watchdog.engine.engine import Engine, Parts
from watchdog.engine.live import Process
from watchdog.engine.reloading import Prepared, Reloader
from watchdog.replay.files import prepare
from watchdog.replay.play import Play
from watchdog.sources.registry import SOURCE_KINDS
from watchdog.store.reader import ask
from watchdog.store.sqlite import SqliteStore
from watchdog.text.patterns import Re2Engine
from watchdog.text.templates import compile_template

KNOWLEDGE = Knowledge(engine=Re2Engine(), kinds=SOURCE_KINDS)
T0 = datetime(2026, 11, 30, 2, tzinfo=UTC)
STORY = """\
description: a task that idles, a queued one, errors in the log, a channel that refuses
length: 40m
defaults: { timezone: Asia/Shanghai }
tasks: [ { name: llama, pods: 2, gpus: 8 }, { name: eval, pods: 1, status: queued } ]
channels: { chat: {}, pager: { min_severity: critical }, mail: {} }
rules:
  - { name: idle, description: Nobody works., metric: gpu, below: 20%, for: 10m, by: pod }
  - { name: long, metric: gpu, below: 50%, for: 2h }
  - { name: fine, metric: gpu, above: 99% }
  - { name: hungry, metric: vram, avg_over: 6h, above: 90%, severity: info }
  - { name: errors, log: { match: ['\\bERROR\\b'] } }
  - { name: back, metric: cpu, above: 90% }
  - { name: late, metric: gpu, below: 1%, after_start: 3h, on_no_data: fire }
series:
  - { metric: gpu, task: llama, values: '95% until 0m, 5%' }
  - { metric: cpu, task: llama, gpu: none, values: '95% until 20m, 10%' }
  - { metric: vram, task: llama, values: '30%', from: -30m }
logs:
  - { task: llama, at: 25m10s, text: 'ERROR token=hunter2hunter2hunter2 out of memory \\x1b[31mred' }
  - { task: llama, at: 25m11s, text: 'INFO next line' }
statuses: [ { task: llama, at: -4m, status: running, text: Running, reason: scheduled } ]
answers: [ { channel: mail, from: 9m, until: 12m, answer: retry, code: '503' } ]
expect: []
others: true
"""


class Stage:
    """A played engine with its state file, served (or not) on a control socket by a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state.db"
        self.rules = folder / "rules.yaml"
        self.store = SqliteStore.open(self.state, started=T0)
        scenario = folder / "scenario.yaml"
        scenario.write_text(STORY, encoding="utf-8")
        prepared = prepare(scenario, KNOWLEDGE)
        play = Play(
            scenario=prepared.scenario,
            ruleset=prepared.ruleset,
            rulesets={},
            open_store=lambda: self.store,
            patterns=KNOWLEDGE.engine,
            compile_template=compile_template,
        )
        play.run()
        assert play.engine is not None
        self.engine: Engine = play.engine
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._life: Any = None

    def serve(self) -> None:
        """Start to answer."""
        self._thread.start()
        control = Control(path=self.folder / "control.sock", answer=self.answers(), clock=SystemClock())
        self._life = asyncio.run_coroutine_threadsafe(control.run(), self._loop)
        for _ in range(500):
            if (self.folder / "control.sock").exists():
                return
            threading.Event().wait(0.01)
        raise AssertionError("it does not listen")

    def answers(self) -> Answers:
        async def asked(question: Callable[..., object]) -> object:
            return ask(self.state, question)

        file = RuleFile(self.rules, self.state, self._parse)

        async def prepared(before: Parts) -> Prepared:
            judged = file.judge()
            if judged.loaded is None:
                return Prepared(digest=judged.digest, parts=None, problems=judged.problems)
            ruleset = replace(before.ruleset, rules=judged.loaded.ruleset.rules)
            return Prepared(digest=judged.digest, parts=replace(before, ruleset=ruleset))

        async def look(closely: bool) -> str:
            return file.look(closely=closely)

        reloader = Reloader(
            engine=self.engine,
            file=str(self.rules),
            prepare=prepared,
            look=look,
            judged="",
            since=T0,
        )
        process = Process(version="1.2.3", pid=4711, started=T0)
        return Answers(engine=self.engine, reloader=reloader, process=process, ask_store=asked)

    @staticmethod
    async def _end() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    @staticmethod
    def _parse(content: bytes, name: str) -> Loaded:
        return loads(content, file=name, env={}, knowledge=KNOWLEDGE)

    def stop(self) -> None:
        if self._life is not None:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)
        self._loop.close()
        self.store.close()


@pytest.fixture(scope="module")
def played() -> Iterator[Stage]:
    """One play for all tests that change nothing."""
    with tempfile.TemporaryDirectory(prefix="wd-") as folder:
        stage = Stage(Path(folder))
        stage.serve()
        yield stage
        stage.stop()


@pytest.fixture
def fresh() -> Iterator[Stage]:
    """A play of its own for a test that changes something."""
    with tempfile.TemporaryDirectory(prefix="wd-") as folder:
        stage = Stage(Path(folder))
        stage.serve()
        yield stage
        stage.stop()


@pytest.fixture
def live(played: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("JOB_WATCHDOG_STATE", str(played.state))
    return played


@pytest.fixture
def idle(live: Stage) -> str:
    """The id of the incident of the rule `idle`."""
    return next(one.id for one in live.engine.world.book.open.values() if one.rule == "idle")


# --- status


def test_status_shows_everything_that_stands(watchdog: Any, live: Stage) -> None:
    ran = watchdog("status")
    assert ran.code == 0
    assert ran.out.startswith("watchdog 1.2.3, process 4711, running for 40 min")
    for text in (
        "rules of " + str(live.rules),
        "llama",
        "queued",
        "Running scheduled",
        r"idle .* 2 ",
        r"firing +warning +idle +llama +pod-0 and 1 more",
        r"pending +warning +long +llama .* 40 min of 2 h",
        r"errors +log lines",
        r"cloud \(scripted\) +metrics +good",
        r"mail +console +\w+",
        r"pager .* critical",
        "outbox: ",
    ):
        assert re.search(text, ran.out), text
    assert "\x1b" not in ran.out
    assert "10:40 Asia/Shanghai" in ran.out


def test_status_as_json_has_every_alert_with_times_in_utc(watchdog: Any, live: Stage) -> None:
    view = json.loads(watchdog("status", "--json").out)
    assert view["live"] is True
    firing = [one for one in view["alerts"] if one["phase"] == "firing"]
    assert sorted(one["labels"]["pod"] for one in firing if one["rule"] == "idle") == ["pod-0", "pod-1"]
    assert view["alerts"][0]["since"].endswith("Z")
    assert view["daemon"]["pid"] == 4711
    assert {one["name"]: one["state"] for one in view["channels"]}["chat"] == "ok"
    rules = {one["name"]: one for one in view["rules"]}
    assert (rules["hungry"]["unjudged"], rules["idle"]["firing"]) == (1, 2)


def test_status_is_coloured_on_a_terminal(on_terminal: Any, live: Stage) -> None:
    out = on_terminal("status").out
    assert "\x1b[1;31mfiring\x1b[0m" in out
    assert all(len(re.sub(r"\x1b\[[\d;]*m", "", line)) <= 100 for line in out.splitlines()[5:])


# --- history, show, why


def test_history_lists_open_incidents_first_and_filters(watchdog: Any, live: Stage) -> None:
    rows = watchdog("history").out.splitlines()[1:]
    assert " open " in rows[0]
    assert any("recovered" in row and " back " in row for row in rows)
    only = watchdog("history", "--rule", "id*", "--task", "ll*", "--open").out.splitlines()[1:]
    assert len(only) == 1
    assert watchdog("history", "--rule", "nothing").out == "no incidents\n"
    assert len(json.loads(watchdog("history", "-n", "2", "--json").out)["incidents"]) == 2


def test_show_has_the_evidence_from_the_moment_of_firing(watchdog: Any, live: Stage, idle: str) -> None:
    out = watchdog("show", idle[:5]).out
    assert out.startswith(f"{idle}  warning  idle · llama")
    for text in (
        "Nobody works.",
        "WHEN IT FIRED",
        "GPU 5 %, below 20 %",
        "▁",
        "THE TASK, THEN",
        "status text: Running",
        "reason: scheduled",
        "THE TASK, NOW",
        "MEMBERS (2 of 2 still firing)",
        "pod-1",
    ):
        assert text in out


def test_show_has_masked_log_lines_that_cannot_steer_the_terminal(on_terminal: Any, live: Stage) -> None:
    errors = next(one.id for one in live.engine.world.book.open.values() if one.rule == "errors")
    for out in (on_terminal("show", errors).out, on_terminal("show", errors, "--json").out):
        assert "out of memory" in out
        assert "hunter2" not in out
        assert "\x1b[31mred" not in out


def test_show_of_a_closed_one_says_how_it_ended(watchdog: Any, live: Stage) -> None:
    back = json.loads(watchdog("history", "--rule", "back", "--json").out)["incidents"][0]["id"]
    out = watchdog("show", back).out
    assert re.search(r"to 10:2\d Asia/Shanghai \(.*\): recovered", out)
    assert "AT THE END" in out


def test_a_beginning_that_several_have_is_refused_with_their_ids(watchdog: Any, live: Stage) -> None:
    ids = [one["id"] for one in json.loads(watchdog("history", "--json").out)["incidents"]]
    beginning = next((a[0] for a in ids if sum(b[0] == a[0] for b in ids) > 1), "")
    ran = watchdog("show", beginning or "")
    assert ran.code == 1
    assert ran.out == ""
    if beginning:
        assert sum(one in ran.err for one in ids) >= 2


@pytest.mark.parametrize("verb", ["show", "why"])
def test_an_unknown_incident_is_one_line_and_code_1(watchdog: Any, live: Stage, verb: str) -> None:
    ran = watchdog(verb, "zzzzzzzz")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "watchdog: there is no incident 'zzzzzzzz': `watchdog history` lists them\n"


def test_why_shows_each_attempt_and_why_a_channel_was_not_meant(
    watchdog: Any, live: Stage, idle: str
) -> None:
    out = watchdog("why", idle).out
    assert re.search(r"10:10:00 +opened", out)
    assert "pager: not for it: min_severity is critical, this is warning" in out
    chat, mail = out.index("\nchat: for it"), out.index("\nmail: for it")
    assert "told (first) at 10:10" in out[chat:mail]
    assert "attempt 1: ok" in out[chat:]
    assert len(re.findall(r"attempt \d+: retry 503 scripted", out[mail:])) >= 5
    view = json.loads(watchdog("why", idle, "--json").out)
    assert [one["change"] for one in view["changes"]] == ["opened"]


# --- explain


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        ("idle", ["pod-0: firing, TRUE: fires since 10:10; true for 40m (for: 10m)", "GPU 5 %, below 20 %"]),
        ("long", ["pending, TRUE: pending: true for 40m of 2h; fires in 1h20m if it stays so"]),
        ("fine", ["inactive, FALSE: not true", "GPU 5 %, not above 99 %", "sees gpu: good, 16 series"]),
        ("hungry", ["inactive, THIN: its window is not covered yet", "needs 80% of its window"]),
        ("back", ["inactive, FALSE: not true"]),
        ("errors", ["an event: its incident", "sees log: good, 1 pod,", "lines read"]),
        ("pod-gone", ["inactive, FALSE"]),
    ],
)
def test_explain_says_why_a_rule_does_or_does_not_fire(
    watchdog: Any, live: Stage, rule: str, texts: list[str]
) -> None:
    ran = watchdog("explain", rule, "llama")
    assert ran.code == 0
    for text in texts:
        assert text in ran.out, ran.out


def test_explain_says_when_a_rule_holds_still_and_is_about_all_tasks_unless_one_is_named(
    watchdog: Any, live: Stage
) -> None:
    out = watchdog("explain", "idle").out
    assert "eval (queued)" in out
    assert "holds still: the task is queued (while: running" in out
    assert "llama (running)" in out


def test_explain_names_the_near_ones(watchdog: Any, live: Stage) -> None:
    assert "did you mean idle?" in watchdog("explain", "idl").err
    assert "did you mean llama?" in watchdog("explain", "idle", "lama").err


# --- verbs that act


def test_metrics_asks_the_source_now(watchdog: Any, live: Stage) -> None:
    ran = watchdog("metrics", "cloud", "llama")
    assert re.search(r"gpu +\S+ +16 +10:\d\d +5 % +.*idle", ran.out) or "gpu" in ran.out
    view = json.loads(watchdog("metrics", "cloud", "llama", "--json").out)
    offers = {one["metric"]: one for one in view["metrics"]}
    assert offers["gpu"]["series"] == 16
    assert (offers["gpu"]["low"], offers["gpu"]["high"]) == (0.05, 0.05)
    assert "idle" in offers["gpu"]["rules"]
    assert "there is no source 'clud'" in watchdog("metrics", "clud", "llama").err


def test_test_notify_prints_what_the_provider_really_answered(
    watchdog: Any, fresh: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        name, limits = "mail", fresh.engine.parts.notifiers["chat"].limits

        async def send(self, message: object) -> DeliveryResult:
            return DeliveryResult(answer=Answer.PERMANENT, code="403", detail="not in this chat")

        async def close(self) -> None: ...

    parts = fresh.engine.parts
    fresh.engine.parts = replace(parts, notifiers={**parts.notifiers, "mail": Refusing()})
    monkeypatch.setenv("JOB_WATCHDOG_STATE", str(fresh.state))
    sent = []
    monkeypatch.setattr(parts.notifiers["chat"], "record", lambda name, message: sent.append(message))
    ran = watchdog("test-notify")
    assert ran.code == 1
    assert "ok     chat (console), firing: ok" in ran.out
    assert "ok     chat (console), closing: ok" in ran.out
    assert "FAILED mail (console), firing: permanent 403 not in this chat" in ran.out
    assert "mail (console), closing" not in ran.out
    assert [str(one.kind) for one in sent] == ["first", "closed"]
    assert all("test-notify" in one.title for one in sent)
    assert "nothing is wrong" in sent[0].body
    assert sent[0].dedup == sent[1].dedup
    assert watchdog("test-notify", "chat").code == 0
    assert "there is no channel 'chatt'" in watchdog("test-notify", "chatt").err


def test_forget_says_what_will_be_forgotten_and_knows_the_names(
    watchdog: Any, fresh: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_WATCHDOG_STATE", str(fresh.state))
    assert "it is expected to have pod-0, pod-1" in watchdog("forget", "llama", "nothing").err
    assert watchdog("forget", "nobody").code == 1
    assert watchdog("forget", "llama", "pod-1").out.startswith("pod pod-1 of llama: forgotten")
    assert watchdog("forget", "llama").out.startswith("everything about llama: forgotten")
    assert fresh.engine.world.forgetting == [("cloud/llama", "pod-1"), ("cloud/llama", "")]


def test_reload_says_what_changed_or_every_problem(
    watchdog: Any, fresh: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOB_WATCHDOG_STATE", str(fresh.state))
    fresh.rules.write_text("rules: [ { name: idle, metric: gpu, belo: 5%, fro: 1m } ]")
    ran = watchdog("reload")
    assert ran.code == 1
    assert f"{fresh.rules}:1:" in ran.out
    assert "did you mean below?" in ran.out
    assert "did you mean for?" in ran.out
    assert "the rules stay as they are" in ran.out
    assert "cannot be used; other rules are in force" in watchdog("status").out
    fresh.rules.write_text(
        "rules: [ { name: idle, metric: gpu, below: 5% }, { name: new, metric: gpu, above: 1% } ]"
    )
    ran = watchdog("reload")
    assert ran.code == 0
    assert re.search(r"rules: \+new -long .*~idle", ran.out)
    assert ran.out.splitlines()[-1].startswith("in force: ")
    assert json.loads(watchdog("reload", "--json").out)["outcome"] == "unchanged"
    fresh.rules.unlink()
    assert json.loads(watchdog("reload", "--json").out)["problems"][0]["message"].startswith("cannot be read")


# --- without a daemon


@pytest.fixture(scope="module")
def ended() -> Iterator[Stage]:
    """The state of a play whose daemon is gone."""
    with tempfile.TemporaryDirectory(prefix="wd-") as folder:
        stage = Stage(Path(folder))
        stage.stop()
        yield stage


@pytest.fixture
def stopped(ended: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv("JOB_WATCHDOG_STATE", str(ended.state))
    yield ended
    (ended.folder / "control.sock").unlink(missing_ok=True)


def test_reading_verbs_show_what_is_stored_marked_as_such_with_code_3(watchdog: Any, stopped: Stage) -> None:
    incident = next(one.id for one in stopped.engine.world.book.open.values() if one.rule == "idle")
    for arguments in (("status",), ("history",), ("show", incident), ("why", incident), ("explain", "idle")):
        ran = watchdog(*arguments)
        assert ran.code == 3, ran
        first = ran.out.splitlines()[0]
        assert first == "the daemon is not running; this is what it stored at 10:40 Asia/Shanghai"
        assert "idle" in ran.out
        assert json.loads(watchdog(*arguments, "--json").out)["live"] is False
    assert "attempt 1: ok" in watchdog("why", incident).out
    assert "Nobody works." in watchdog("show", incident).out


def test_acting_verbs_say_that_nobody_listens_with_code_3(watchdog: Any, stopped: Stage) -> None:
    for arguments in (("reload",), ("forget", "llama")):
        ran = watchdog(*arguments)
        assert (ran.code, ran.out) == (3, "")
        assert "no daemon listens on " + str(stopped.folder / "control.sock") in ran.err


def test_with_neither_daemon_nor_state_both_are_named(watchdog: Any, tmp_path: Path) -> None:
    ran = watchdog("status", "--state", str(tmp_path / "none.db"))
    assert (ran.code, ran.out) == (3, "")
    assert "no daemon listens on" in ran.err
    assert "there is no state file" in ran.err


def test_a_process_that_holds_the_state_but_does_not_answer_is_not_called_dead(
    watchdog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="wd-") as folder:
        stage = Stage(Path(folder))
        monkeypatch.setenv("JOB_WATCHDOG_STATE", str(stage.state))
        ran = watchdog("status")
        stage.stop()
    assert ran.code == 3
    assert re.match(r"no daemon answers, though process \d+ holds the state", ran.out)


def test_test_notify_and_metrics_work_from_the_rule_file_alone(
    watchdog: Any, stopped: Stage, tmp_path: Path
) -> None:
    rules = tmp_path / "r.yaml"
    rules.write_text("channels: { here: { url: 'console://' } }\nrules: []\n")
    ran = watchdog("test-notify", "--rules", str(rules))
    assert ran.code == 0
    assert "ok     here (console), closing: ok printed" in ran.out
    assert "This is a test" in ran.out
    ran = watchdog("metrics", "cloud", "x", "--rules", str(rules))
    assert ran.code == 1
    assert "there is no source 'cloud'" in ran.err


def test_a_stale_socket_is_not_taken_for_a_daemon(watchdog: Any, stopped: Stage) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(stopped.folder / "control.sock"))
    left.close()
    assert watchdog("status").out.startswith("the daemon is not running")


def test_a_daemon_that_hangs_up_or_talks_nonsense_is_one_line(watchdog: Any, stopped: Stage) -> None:
    for said, complaint in (
        (b"", "hung up"),
        (b'{"v":1,"ok"', "hung up"),
        (b"HTTP/1.1 400\n", "not understood"),
    ):
        listener = socket.socket(socket.AF_UNIX)
        place = stopped.folder / "control.sock"
        place.unlink(missing_ok=True)
        listener.bind(str(place))
        listener.listen(1)

        def reply(listener: socket.socket = listener, said: bytes = said) -> None:
            other, _ = listener.accept()
            other.recv(100)
            other.sendall(said)
            other.close()

        thread = threading.Thread(target=reply)
        thread.start()
        ran = watchdog("status")
        thread.join()
        listener.close()
        assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert complaint in ran.err


def test_time_passes_in_the_stage_as_played(played: Stage) -> None:
    assert played.engine.world.now == T0 + timedelta(minutes=40)
