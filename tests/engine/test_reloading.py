"""From "load the rule file anew" to rules in force or a report; and the watch on the file (H1, H9)."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from watchdog.config.build import Knowledge, Loaded, loads
from watchdog.config.rulefile import RuleFile
from watchdog.core.alerts import NoticeKind
from watchdog.core.notifications import MessageKind
from watchdog.engine.engine import Engine, Parts
from watchdog.engine.reloading import Outcome, Prepared, Reloaded, Reloader
from watchdog.text.patterns import Re2Engine

KNOWLEDGE = Knowledge(engine=Re2Engine(), kinds={})
AUTO = "defaults: { reload: auto }\n"
RULES = "rules:\n  - { name: idle, metric: gpu, below: 10% }\n"
MORE = RULES + "  - { name: more, metric: gpu, above: 90% }\n"
BAD = RULES + "  - { name: more, metric: gpu, abov: 90% }\n"
SECOND = timedelta(seconds=1)


class Desk:
    """A rule file beside an engine in virtual time; `loads` counts what was looked into."""

    def __init__(self, bench: Any, folder: Path) -> None:
        self.bench = bench
        self.path = folder / "rules.yaml"
        self.loads: list[float] = []
        self.changes: list[str] = []
        self.file = RuleFile(self.path, folder / "state.db", self._parse)
        self.results: list[Reloaded] = []
        self.takes = timedelta()
        self.open = self.most = 0

    def write(self, text: str) -> None:
        self.path.write_text(text, encoding="utf-8")

    @staticmethod
    def _parse(content: bytes, name: str) -> Loaded:
        return loads(content, file=name, env={}, knowledge=KNOWLEDGE)

    async def prepare(self, before: Parts) -> Prepared:
        self.loads.append(self.bench.world.monotonic().total_seconds())
        self.open += 1
        self.most = max(self.most, self.open)
        await self.bench.world.sleep(self.takes)
        self.open -= 1
        judged = self.file.judge()
        if judged.loaded is None:
            return Prepared(digest=judged.digest, parts=None, problems=judged.problems)
        new = judged.loaded.ruleset
        ruleset = replace(before.ruleset, rules=new.rules, auto_reload=new.auto_reload)

        async def keep() -> str:
            self.file.keep(judged)
            return ""

        parts = replace(before, ruleset=ruleset)
        return Prepared(digest=judged.digest, parts=parts, problems=judged.problems, keep=keep)

    async def look(self, closely: bool) -> str:
        return self.file.look(closely=closely)

    def reloader(self, engine: Engine) -> Reloader:
        return Reloader(
            engine=engine,
            file=str(self.path),
            prepare=self.prepare,
            look=self.look,
            judged=self.started,
            since=self.bench.world.now(),
            around=self.around,
            listeners=[lambda ruleset: self.changes.append(ruleset.rules[-1].name)],
        )

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        self.changes.append("begin")
        yield
        self.changes.append("end")

    def live(self, seconds: float, *steps: tuple[float, Callable[[Reloader], Any]]) -> Reloader:
        """Start with the file as it is, let things happen, each at its second, and stop."""

        async def main() -> Reloader:
            start = self.file.start()
            self.started = start.digest
            self.bench.rules = start.loaded.ruleset.rules
            engine = self.bench.engine()
            engine.parts = replace(
                engine.parts,
                ruleset=replace(engine.parts.ruleset, auto_reload=start.loaded.ruleset.auto_reload),
            )
            reloader = self.reloader(engine)
            watch = asyncio.ensure_future(reloader.run())
            life = asyncio.ensure_future(self.bench.live(seconds / 60, engine))
            for second, step in steps:
                await self.bench.world.sleep(second * SECOND - self.bench.world.monotonic())
                result = step(reloader)
                if asyncio.iscoroutine(result):
                    self.results.append(await result)
            await life
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            return reloader

        found: Reloader = self.bench.run(main)
        return found

    @property
    def names(self) -> list[str]:
        return [rule.name for rule in self.bench.engines[-1].parts.ruleset.rules if not rule.builtin]

    def told(self) -> list[tuple[str, str]]:
        return [(str(one.kind), one.title) for _, one in self.bench.chat.sent if "rule file" in one.title]


@pytest.fixture
def desk(bench: Any, tmp_path: Path) -> Desk:
    made = Desk(bench, tmp_path)
    made.write(RULES)
    return made


def asked(reloader: Reloader) -> Any:
    return reloader.reload("asked to")


# --- one reload


def test_a_good_file_is_put_in_force_and_remembered(desk: Desk) -> None:
    desk.live(200, (10, lambda _: desk.write(MORE)), (20, asked))
    assert desk.results[0].outcome is Outcome.IN_FORCE
    assert desk.results[0].differences.rules.added == ("more",)
    assert desk.names == ["idle", "more"]
    assert desk.file.snapshot.read_text() == MORE
    assert desk.changes == ["begin", "more", "end"]
    assert desk.told() == []


def test_a_file_with_any_error_leaves_the_rules_and_says_so_through_a_channel(desk: Desk) -> None:
    reloader = desk.live(200, (10, lambda _: desk.write(BAD)), (20, asked))
    assert desk.results[0].outcome is Outcome.REJECTED
    assert desk.names == ["idle"]
    assert any("abov" in str(problem) for problem in reloader.rejected)
    assert [kind for kind, _ in desk.told()] == ["first"]
    assert "abov" in desk.bench.chat.sent[0][1].body
    assert "stay in force" in desk.bench.chat.sent[0][1].body
    assert not desk.file.snapshot.exists()


def test_the_rejection_is_told_once_and_so_is_its_end(desk: Desk) -> None:
    def spoil(_: Reloader) -> None:
        desk.write(BAD + f"# {len(desk.loads)}\n")

    steps = [(30 * n + offset, step) for n in range(5) for offset, step in ((5, spoil), (10, asked))]
    reloader = desk.live(400, *steps, (200, lambda _: desk.write(MORE)), (210, asked))
    assert [kind for kind, _ in desk.told()] == ["first", "closed"]
    assert desk.told()[1][1].startswith("OK")
    assert reloader.rejected == ()
    assert desk.names == ["idle", "more"]


def test_a_file_that_says_the_same_disturbs_nobody_but_ends_a_rejection(desk: Desk) -> None:
    desk.live(
        300,
        (10, lambda _: desk.write(BAD)),
        (20, asked),
        (100, lambda _: desk.write(RULES + "# a remark\n")),
        (110, asked),
    )
    assert [one.outcome for one in desk.results] == [Outcome.REJECTED, Outcome.UNCHANGED]
    assert [kind for kind, _ in desk.told()] == ["first", "closed"]
    assert "idle" not in desk.changes


def test_a_start_with_a_broken_file_uses_the_last_good_one_and_the_restart_tells_the_same_incident(
    desk: Desk,
) -> None:
    """H1: the bad rule is noticed at the reload, and the restart does not crash over it."""
    desk.live(100, (5, lambda _: desk.write(MORE)), (10, asked), (20, lambda _: desk.write(BAD)), (30, asked))
    start = desk.file.start()
    assert [rule.name for rule in start.loaded.ruleset.rules if not rule.builtin] == ["idle", "more"]

    async def again() -> None:
        desk.bench.rules = start.loaded.ruleset.rules
        engine = desk.bench.engine()
        desk.started = start.digest
        reloader = desk.reloader(engine)
        reloader.rejected = start.rejected
        reloader.begin(start.used.kept)
        await desk.bench.live(3, engine)

    desk.bench.run(again)
    assert [kind for kind, _ in desk.told()] == ["first"]


def test_a_first_start_with_a_broken_file_says_whose_rules_are_in_force(desk: Desk) -> None:
    desk.file.keep(desk.file.judge())
    desk.write(BAD)

    async def main() -> None:
        start = desk.file.start()
        desk.started, desk.bench.rules = start.digest, start.loaded.ruleset.rules
        engine = desk.bench.engine()
        reloader = desk.reloader(engine)
        reloader.rejected = start.rejected
        reloader.begin(start.used.kept)
        await desk.bench.live(2, engine)

    desk.bench.run(main)
    (message,) = [one for _, one in desk.bench.chat.sent if "rule file" in one.title]
    assert "The last rules that were good are in force" in message.body
    assert message.kind is MessageKind.FIRST


def test_many_asked_for_at_once_are_done_one_after_the_other(desk: Desk) -> None:
    async def many(reloader: Reloader) -> Any:
        for _ in range(20):
            reloader.ask()
        done = await asyncio.gather(*(reloader.reload("asked to") for _ in range(5)))
        return done[-1]

    desk.takes = timedelta(seconds=0.5)
    desk.live(100, (10, lambda _: desk.write(MORE)), (20, many))
    assert desk.most == 1
    assert desk.changes.count("more") == 1
    assert 6 <= len(desk.loads) <= 7  # signals that come together are one


def test_a_snapshot_that_cannot_be_written_is_said_and_hinders_nothing(desk: Desk) -> None:
    async def refuse() -> str:
        return "No space left on device"

    prepare = desk.prepare

    async def prepared(before: Parts) -> Prepared:
        return replace(await prepare(before), keep=refuse)

    desk.prepare = prepared  # type: ignore[method-assign]
    reloader = desk.live(100, (10, lambda _: desk.write(MORE)), (20, asked))
    assert desk.results[0].outcome is Outcome.IN_FORCE
    assert reloader.not_kept == "No space left on device"


# --- the watch


def moments(desk: Desk) -> list[int]:
    return [round(second) for second in desk.loads]


def test_a_changed_file_is_loaded_once_after_it_was_left_alone(desk: Desk) -> None:
    desk.write(AUTO + RULES)
    desk.live(300, (30.5, lambda _: desk.write(AUTO + MORE)))
    assert len(desk.loads) == 1
    assert 32.5 <= desk.loads[0] <= 34.5
    assert desk.names == ["idle", "more"]


def test_a_file_written_slowly_is_loaded_when_it_is_whole(desk: Desk) -> None:
    desk.write(AUTO + RULES)
    text = AUTO + MORE
    pieces = [text[: len(text) * n // 8] for n in range(1, 9)]
    desk.live(300, *((30.5 + 1.5 * n, lambda _, p=piece: desk.write(p)) for n, piece in enumerate(pieces)))
    assert len(desk.loads) == 1
    assert desk.loads[0] >= 30.5 + 1.5 * 7 + 2
    assert desk.names == ["idle", "more"]
    assert desk.told() == []


def test_a_symlink_that_is_swapped_is_one_change(desk: Desk, tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(AUTO + RULES)
    two.write_text(AUTO + MORE)
    desk.path.unlink()
    desk.path.symlink_to(one)

    def swap(_: Reloader) -> None:
        fresh = tmp_path / "fresh"
        fresh.symlink_to(two)
        fresh.replace(desk.path)

    desk.live(300, (30.5, swap))
    assert len(desk.loads) == 1
    assert desk.names == ["idle", "more"]


@pytest.mark.parametrize("auto", ["", AUTO])
def test_a_change_between_the_first_read_and_the_watch_is_not_missed(desk: Desk, auto: str) -> None:
    desk.write(auto + RULES)
    start = desk.file.start

    def read_then_changed() -> Any:
        found = start()
        desk.write(auto + MORE)
        return found

    desk.file.start = read_then_changed  # type: ignore[method-assign]
    desk.live(200)
    assert len(desk.loads) == 1
    assert desk.names == ["idle", "more"]


def test_a_change_that_neither_size_nor_time_show_is_found_within_a_minute(desk: Desk) -> None:
    desk.write(AUTO + MORE)

    def sly(_: Reloader) -> None:
        looked = desk.file._looked
        assert looked is not None
        desk.write((AUTO + MORE).replace("more", "less"))
        found = desk.path.stat()
        place = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        desk.file._looked = (place, looked[1])  # as if the file system had shown no difference

    desk.live(300, (70.5, sly))
    assert len(desk.loads) == 1
    assert 72 <= desk.loads[0] <= 126
    assert desk.names == ["idle", "less"]


def test_a_broken_content_is_looked_into_once_and_not_every_two_seconds(desk: Desk) -> None:
    desk.write(AUTO + RULES)
    desk.live(300, (30.5, lambda _: desk.write(AUTO + BAD)), (200.5, lambda _: desk.write(AUTO + MORE)))
    assert moments(desk) == [33, 203]
    assert [kind for kind, _ in desk.told()] == ["first", "closed"]


def test_content_that_was_loaded_because_somebody_asked_is_not_loaded_again(desk: Desk) -> None:
    desk.write(AUTO + RULES)
    desk.live(200, (30.5, lambda _: desk.write(AUTO + MORE)), (31, asked))
    assert moments(desk) == [31]


def test_a_file_that_is_away_for_a_moment_is_no_news_and_one_that_stays_away_is(desk: Desk) -> None:
    desk.write(AUTO + RULES)
    desk.live(
        300,
        (30.5, lambda _: desk.path.unlink()),
        (40.5, lambda _: desk.write(AUTO + RULES)),
        (100.5, lambda _: desk.path.unlink()),
    )
    assert [message.kind for _, message in desk.bench.chat.sent if "rule file" in message.title] == ["first"]
    assert len(desk.loads) == 1
    assert desk.loads[0] > 130
    assert desk.names == ["idle"]


def test_without_being_asked_to_watch_nothing_is_loaded(desk: Desk) -> None:
    desk.live(300, (30.5, lambda _: desk.write(MORE)))
    assert desk.loads == []


def test_the_watch_ends_when_the_new_rules_do_not_want_it(desk: Desk) -> None:
    desk.write(AUTO + RULES)
    desk.live(300, (30.5, lambda _: desk.write(MORE)), (60.5, lambda _: desk.write(RULES)))
    assert len(desk.loads) == 1
    assert desk.names == ["idle", "more"]


def test_a_notice_of_an_earlier_life_ends_when_the_file_is_good_at_the_start(desk: Desk) -> None:
    desk.live(100, (10, lambda _: desk.write(BAD)), (20, asked))
    desk.write(RULES)

    async def again() -> Engine:
        engine: Engine = desk.bench.engine()
        desk.started = desk.file.start().digest
        desk.reloader(engine).begin()
        await desk.bench.live(3, engine)
        return engine

    engine = desk.bench.run(again)
    assert [kind for kind, _ in desk.told()] == ["first", "closed"]
    assert not [one for one in engine.world.book.open.values() if one.notice is NoticeKind.RULES_REJECTED]
