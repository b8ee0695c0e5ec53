"""`watchdog init` where nobody can be asked: everything from options and the environment."""

import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from watchdog.demo.receiver import Answer

KEY = "stand-in-api-key"
TASK = "1234567890"
URL = "json://localhost/a-secret-room"


pytestmark = pytest.mark.usefixtures("root_logger")


@pytest.fixture
def setup(watchdog: Any, outside: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run `watchdog init` with key, address and channel given, and whatever else."""
    monkeypatch.setenv("JOB_WATCHDOG_ALAYA_API_KEY", KEY)
    monkeypatch.setenv("CHAT", outside.channel)

    def command(*more: str, channel: str = "env:CHAT") -> Any:
        address = f"base_url={outside.cloud.url}"
        return watchdog("init", "--cloud", "alaya", "--option", address, "--channel", channel, *more)

    return command


def test_everything_given_writes_a_file_that_check_accepts(
    setup: Any, outside: Any, watchdog: Any, tmp_path: Path
) -> None:
    ran = setup("--task", TASK, "--timezone", "Asia/Shanghai", "--language", "zh")

    assert (ran.code, ran.err) == (0, "")
    assert "\x1b" not in ran.out
    text = (tmp_path / "rules.yaml").read_text()
    assert f'- {{ source: alaya, task: "{TASK}", name: "pretrain-llama-70b" }}' in text
    assert "timezone: Asia/Shanghai" in text
    assert "language: zh" in text
    assert 'team: { url: "${CHAT}" }' in text
    assert stat.S_IMODE((tmp_path / "rules.yaml").stat().st_mode) == 0o644
    assert not (tmp_path / ".env").exists()
    assert [one.path for one in outside.receiver.received] == ["/team-room"]
    checked = watchdog("check")
    assert checked.code == 0
    assert checked.out == "ok: rules.yaml: 10 rules, 1 source, 1 watch entry, 1 channel\n"


def test_the_cloud_is_the_one_whose_key_is_set(
    setup: Any, watchdog: Any, outside: Any, tmp_path: Path
) -> None:
    address = f"base_url={outside.cloud.url}"
    ran = watchdog("init", "--option", address, "--name", "pretrain-*", "--channel", "env:CHAT")

    assert ran.code == 0
    assert "alaya: { kind: alaya, " in (tmp_path / "rules.yaml").read_text()


def test_what_stands_only_in_this_shell_is_named(setup: Any) -> None:
    ran = setup("--task", TASK)

    assert "needed wherever it runs: JOB_WATCHDOG_ALAYA_API_KEY, CHAT" in ran.out


def test_no_secret_is_in_the_output_or_the_rule_file(setup: Any, tmp_path: Path) -> None:
    ran = setup("--name", "pretrain-*")

    assert ran.code == 0
    for secret in (KEY, "team-room"):
        assert secret not in ran.out + ran.err + (tmp_path / "rules.yaml").read_text()


def test_the_key_may_stand_in_the_env_file(
    setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JOB_WATCHDOG_ALAYA_API_KEY")
    (tmp_path / ".env").write_text(f"JOB_WATCHDOG_ALAYA_API_KEY={KEY}\n")

    ran = setup("--name", "pretrain-*")

    assert ran.code == 0
    assert "wherever it runs: CHAT" in ran.out
    assert (tmp_path / ".env").read_text() == f"JOB_WATCHDOG_ALAYA_API_KEY={KEY}\n"


def test_the_terminal_is_a_channel(setup: Any, tmp_path: Path) -> None:
    ran = setup("--name", "pretrain-*", channel="console")

    assert ran.code == 0
    assert "If you can read it, this channel works." in ran.out
    assert 'team: { url: "console://" }' in (tmp_path / "rules.yaml").read_text()


def test_the_first_tasks_that_a_name_fits_are_tried(setup: Any) -> None:
    ran = setup("--name", "pretrain-*")

    assert "ok  pretrain-llama-70b: 32 series of gpu, the newest point is" in ran.out
    assert "ok  pretrain-eval-7b: is queued: nothing to read yet" in ran.out


def test_a_name_that_nothing_fits_yet_is_said_and_written(setup: Any, tmp_path: Path) -> None:
    ran = setup("--name", "sft-*")

    assert ran.code == 0
    assert "note  sft-* fits no task now" in ran.out
    assert '- { source: alaya, name: "sft-*" }' in (tmp_path / "rules.yaml").read_text()


def test_without_a_terminal_everything_that_is_missing_is_one_line(watchdog: Any, tmp_path: Path) -> None:
    ran = watchdog("init", "--cloud", "alaya")
    bare = watchdog("init")

    assert (ran.code, ran.out) == (bare.code, bare.out) == (2, "")
    assert re.search(
        r"also needed: --cloud alaya or .*, and its key in .*; --task ID .*; --channel ", bare.err
    )
    assert bare.err.count("\n") == 1
    assert ran.err == (
        "watchdog: nobody can be asked here; also needed: JOB_WATCHDOG_ALAYA_API_KEY in the environment or "
        "in .env; --task ID or --name GLOB; --channel env:NAME or console "
        "(watchdog init --help says what there is)\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--cloud", "alayya"), "--cloud alayya: did you mean alaya?"),
        (("--option", "base_ur=x"), "--option alaya has no option 'base_ur' (did you mean base_url?)"),
        (("--option", "base_url"), "--option base_url: write NAME=VALUE"),
        (("--option", "base_url=nowhere"), "base_url must be http:// or https://"),
        (("--option", "auth=digest"), "auth must be one of bearer, hmac, plain"),
        (("--option", "api_key=hunter2"), "api_key is a secret: set JOB_WATCHDOG_ALAYA_API_KEY"),
        (("--channel", URL), "--channel takes console or env:NAME (a URL is a secret"),
        (("--channel", "env:NOT_SET"), "--channel NOT_SET is not set"),
        (("--channel", "env:a b"), "--channel env: takes the name of a variable"),
        (
            ("--timezone", "Shanghai"),
            "--timezone: Shanghai is not a time zone this machine knows (did you mean",
        ),
        (("--language", "fr"), "--language takes en or zh"),
    ],
)
def test_a_wrong_option_is_one_line_and_nothing_is_written(
    setup: Any, tmp_path: Path, arguments: tuple[str, str], complaint: str
) -> None:
    ran = setup("--name", "pretrain-*", *arguments)

    assert ran.code == 2
    assert complaint in ran.err
    assert ran.err.count("\n") == 1
    assert "hunter2" not in ran.err
    assert "a-secret-room" not in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_key_stops_it(setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JOB_WATCHDOG_ALAYA_API_KEY", "wrong-key-4711")

    ran = setup("--name", "pretrain-*")

    assert ran.code == 1
    assert "source alaya: the task list cannot be read: key unknown" in ran.err
    assert "The cloud refuses this key" in ran.err
    assert "4711" not in ran.out + ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_list_that_is_a_web_page_does_not_stop_an_id(setup: Any, outside: Any, tmp_path: Path) -> None:
    outside.cloud.faults.add("html", "list")

    ran = setup("--task", TASK)

    assert ran.code == 0
    assert "note  the task list cannot be read: not JSON" in ran.out
    assert f"ok  {TASK}: 32 series of gpu" in ran.out
    assert f'task: "{TASK}" }}' in (tmp_path / "rules.yaml").read_text()


def test_a_list_that_is_a_web_page_stops_a_name(setup: Any, outside: Any, tmp_path: Path) -> None:
    outside.cloud.faults.add("html", "list")

    ran = setup("--name", "pretrain-*")

    assert ran.code == 1
    assert "A web page came where data should be" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_an_id_that_the_cloud_does_not_know_stops_it(setup: Any, tmp_path: Path) -> None:
    ran = setup("--task", "99999")

    assert ran.code == 1
    assert "99999 cannot be read, and no list says that it exists" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_listed_task_whose_data_is_refused_is_said_and_written(
    setup: Any, outside: Any, tmp_path: Path
) -> None:
    outside.cloud.faults.add("forbidden", "metrics")

    ran = setup("--task", TASK)

    assert ran.code == 0
    assert "FAILED  pretrain-llama-70b: metrics cannot be read: forbidden" in ran.out
    assert (tmp_path / "rules.yaml").exists()


def test_a_channel_that_refuses_stops_it(setup: Any, outside: Any, tmp_path: Path) -> None:
    outside.receiver.answers.append(Answer(status=403, times=0))

    ran = setup("--name", "pretrain-*")

    assert ran.code == 1
    assert "FAILED  test message refused: HTTP 403" in ran.out
    assert "channel team: the test message failed" in ran.err
    assert "team-room" not in ran.out + ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_channel_url_that_is_none_stops_it(
    setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CHAT", "slack://hunter2")

    ran = setup("--name", "pretrain-*")

    assert ran.code == 1
    assert "channel team: cannot be used" in ran.err
    assert "hunter2" not in ran.out + ran.err
    assert list(tmp_path.iterdir()) == []


def test_an_existing_rule_file_is_left_alone_unless_forced(setup: Any, outside: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("mine\n")

    refused = setup("mine.yaml", "--name", "pretrain-*")
    told = len(outside.receiver.received)
    forced = setup("mine.yaml", "--name", "pretrain-*", "--force")

    assert (refused.code, told) == (1, 0)
    assert "mine.yaml: is there already (--force writes over it" in refused.err
    assert forced.code == 0
    assert path.read_text().startswith("# What `watchdog` looks at")
    assert "once mine.yaml" in forced.out


def test_what_only_the_loader_refuses_is_not_written(setup: Any, tmp_path: Path) -> None:
    ran = setup("--name", "pretrain-*", "--option", "rate=0.0005")

    assert ran.code == 1
    assert "sources: alaya: rate: 0.0005 is not between" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_said_at_once(setup: Any, outside: Any) -> None:
    ran = setup("gone/rules.yaml", "--name", "pretrain-*")

    assert ran.code == 1
    assert "gone/rules.yaml: its folder does not exist" in ran.err
    assert outside.receiver.received == []


def test_the_file_of_the_settings_is_the_one_written(
    setup: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JOB_WATCHDOG_RULES", str(tmp_path / "other.yaml"))

    assert setup("--name", "pretrain-*").code == 0
    assert (tmp_path / "other.yaml").exists()
