"""The rule file loaded anew in the real process, by signal, verb and itself; the socket it answers on."""

import json
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

Wait = Callable[..., Any]

HEAD = r"""
defaults: { interval: 1s, poll: 1s, timezone: UTC@AUTO@ }
sources:
  alaya: { kind: alaya, base_url: "${CLOUD}", rate: 1000 }
watch:
  - { source: alaya, task: "1234567890", name: calm-run }
channels:
  chat: { url: "${CHAT}" }
rules:
  - { name: pod-gone, enabled: false }
  - { name: errors, log: { match: '\bERROR\b' } }
"""
LOW = "  - { name: gpu-low, metric: gpu, below: 10%, for: 1s }\n"
BAD = "  - { name: gpu-low, metric: gpu, belo: 10% }\n"


def text(*rules: str, auto: bool = False) -> str:
    return HEAD.replace("@AUTO@", ", reload: auto" if auto else "") + "".join(rules)


def status(stage: Any) -> dict[str, Any]:
    done = stage.run("status", "--json", "--state", stage.state.path)
    assert done.code == 0, done
    found: dict[str, Any] = json.loads(done.out)
    return found


def names(stage: Any) -> set[str]:
    return {one["name"] for one in status(stage)["rules"]}


def test_sighup_with_a_good_file_a_bad_one_and_a_restart_on_the_bad_one(stage: Any, wait_until: Wait) -> None:
    cloud, receiver = stage.cloud(), stage.receiver()
    cloud.gpu(0.02)
    rules = stage.rules("", head=text())
    daemon = stage.watching(rules)
    assert names(stage) == {"errors"}

    rules.write_text(text(LOW))
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: "gpu-low" in receiver.texts(), "the new rule's alert", alive=daemon)

    rules.write_text(text(BAD))
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: "rejected the new rule file" in receiver.texts(), "the complaint", alive=daemon)
    assert "belo" in receiver.texts()
    assert names(stage) == {"errors", "gpu-low"}
    assert status(stage)["daemon"]["rules_rejected"]
    told = len(receiver.told())

    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    daemon = stage.watching(rules)
    assert "belo" in daemon.err
    assert names(stage) == {"errors", "gpu-low"}
    rules.write_text(text(LOW))
    done = stage.run("reload", "--state", stage.state.path)
    assert done.code == 0, done
    wait_until(lambda: "accepted the rule file" in receiver.texts(), "the end of the complaint", alive=daemon)
    titles = [one.title for one in receiver.told()[told:]]
    assert [title for title in titles if "gpu-low" in title or "rejected" in title] == []
    assert "Traceback" not in daemon.err


def test_the_verb_names_every_problem_and_exits_with_1(stage: Any) -> None:
    stage.cloud(), stage.receiver()
    rules = stage.rules("", head=text())
    stage.watching(rules)
    rules.write_text(text(BAD, "  - { name: x, metric: gpu, above: 900% }\n"))
    done = stage.run("reload", "--state", stage.state.path)
    assert done.code == 1
    assert "did you mean below?" in done.out
    assert f"{rules}:12:" in done.out
    assert f"{rules}:13:" in done.out
    assert names(stage) == {"errors"}


def test_a_swapped_symlink_is_loaded_by_itself_once(stage: Any, wait_until: Wait) -> None:
    stage.cloud(), stage.receiver()
    one, two = stage.rules("", head=text(auto=True), name="one.yaml"), stage.folder / "two.yaml"
    two.write_text(text(LOW, auto=True))
    rules = stage.folder / "rules.yaml"
    rules.symlink_to(one)
    daemon = stage.watching(rules)
    fresh = stage.folder / "fresh"
    fresh.symlink_to(two)
    fresh.replace(rules)
    wait_until(lambda: "outcome=in force" in daemon.err, "the reload", alive=daemon)
    assert names(stage) == {"errors", "gpu-low"}
    assert daemon.err.count("rule file loaded") == 1


def test_the_snapshot_holds_no_value_from_outside_and_is_ours_alone(stage: Any) -> None:
    stage.cloud()
    receiver = stage.receiver()
    stage.env["CHAT"] = receiver.channel("chat", "?token=plantedplanted7")
    stage.watching(stage.rules("", head=text()))
    (snapshot,) = stage.state.path.parent.glob("state.db.rules-*.yaml")
    assert stat.S_IMODE(snapshot.stat().st_mode) == 0o600
    assert "${CHAT}" in snapshot.read_text()
    assert "plantedplanted7" not in snapshot.read_text()


def test_a_hundred_reloads_while_errors_come_lose_and_double_nothing(stage: Any, wait_until: Wait) -> None:
    """H7, in the real process."""
    cloud, receiver = stage.cloud(), stage.receiver()
    rules = stage.rules("", head=text())
    daemon = stage.watching(rules)
    for number in range(100):
        if number % 2:
            cloud.say(f"ERROR number {number} of many", pod="worker-0")
        rules.write_text(text(*([LOW] if number % 3 else []), f"# {number}\n"))
        daemon.signal(signal.SIGHUP)
        if number % 10 == 0:
            assert stage.run("reload", "--state", stage.state.path).code == 0
    cloud.say("ERROR the last one", pod="worker-0")

    def seen() -> int:
        rows = stage.run("history", "--rule", "errors", "--json", "--state", stage.state.path)
        return sum(one["count"] for one in json.loads(rows.out)["incidents"])

    wait_until(lambda: seen() >= 51, "every line", alive=daemon)
    assert seen() == 51
    firsts = [one for one in receiver.told() if "errors" in one.title and "something new" not in one.title]
    assert len(firsts) == 1
    assert "Traceback" not in daemon.err


def test_a_killed_daemon_leaves_a_socket_that_the_next_one_takes_over(stage: Any) -> None:
    stage.cloud(), stage.receiver()
    rules = stage.rules("", head=text())
    daemon = stage.watching(rules)
    place = Path(stage.state.path).parent / "control.sock"
    assert stat.S_IMODE(place.stat().st_mode) == 0o660
    daemon.kill()
    assert place.exists()
    done = stage.run("status", "--state", stage.state.path)
    assert done.code == 3
    assert done.out.startswith("the daemon is not running; this is what it stored at ")
    daemon = stage.watching(rules)
    assert status(stage)["daemon"]["pid"] == daemon.pid
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert not place.exists()


def test_the_socket_may_lie_elsewhere(stage: Any, tmp_path: Path) -> None:
    stage.cloud(), stage.receiver()
    place = stage.folder / "run" / "ctl"
    stage.env["JOB_WATCHDOG_SOCKET"] = os.fspath(place)
    stage.watching(stage.rules("", head=text()))
    assert stat.S_ISSOCK(place.stat().st_mode)
    assert status(stage)["live"] is True
