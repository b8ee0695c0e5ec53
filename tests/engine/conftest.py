"""The live engine on a virtual clock, from a scenario written as text, with a hook into each life."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from watchdog.config.build import Knowledge
from watchdog.core.ruleset import Ruleset
from watchdog.engine.engine import Engine
from watchdog.replay.files import prepare
from watchdog.replay.play import Play
from watchdog.replay.world import Sent
from watchdog.sources.registry import SOURCE_KINDS
from watchdog.store.memory import MemoryState
from watchdog.text.patterns import Re2Engine


@dataclass
class Performance:
    """What came of a play."""

    sent: tuple[Sent, ...]
    engine: Engine

    def about(self, rule: str) -> list[tuple[float, str]]:
        """(minute, kind) of each message of a rule."""
        return [
            (message.at.total_seconds() / 60, str(message.kind))
            for message in self.sent
            if message.rule == rule
        ]

    def text(self, rule: str) -> str:
        """Everything that was said of a rule."""
        return "\n".join(message.text for message in self.sent if message.rule == rule)


Perform = Callable[..., Performance]


@pytest.fixture
def perform(tmp_path: Path) -> Iterator[Perform]:
    """Play a scenario's text; `on_life` gets each new engine, `change` may alter the ruleset."""
    knowledge = Knowledge(engine=Re2Engine(), kinds=SOURCE_KINDS)
    states: list[MemoryState] = []

    def played(
        text: str,
        on_life: Callable[[Engine], None] | None = None,
        change: Callable[[Ruleset], Ruleset] = replace,
    ) -> Performance:
        path = tmp_path / "scenario.yaml"
        path.write_text(text, encoding="utf-8")
        prepared = prepare(path, knowledge)
        states.append(MemoryState())
        play = Play(
            scenario=prepared.scenario,
            ruleset=change(prepared.ruleset),
            rulesets=prepared.rulesets,
            open_store=states[-1].open,
            patterns=knowledge.engine,
            compile_template=None,
            on_life=on_life,
        )
        sent = play.run()
        assert play.engine is not None
        return Performance(sent, play.engine)

    yield played
    for state in states:
        state.discard()
