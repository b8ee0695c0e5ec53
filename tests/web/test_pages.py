"""The pages: what each says, and that a storm of scrapes is one piece of work."""

import asyncio
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from watchdog.core.telemetry import Telemetry
from watchdog.core.vitals import Vitals, judge
from watchdog.web.pages import Pages

WELL = Vitals(interval=timedelta(minutes=1), slots=3, since_slot=timedelta(seconds=5), asked=1, answered=1)


@dataclass
class Source:
    vitals: Vitals = WELL
    asked: int = 0
    at: timedelta = timedelta(hours=1)
    sleeping: list[timedelta] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC)

    def monotonic(self) -> timedelta:
        return self.at

    async def sleep(self, duration: timedelta) -> None:
        self.sleeping.append(duration)

    def telemetry(self) -> Telemetry:
        self.asked += 1
        return Telemetry(
            vitals=self.vitals,
            verdict=judge(self.vitals),
            missed=0,
            evaluating=timedelta(),
            evaluated=timedelta(),
            questions={},
            failures={},
            blind={},
            log_lag={},
            log_lines={},
            channels={},
            alerts={},
            incidents={},
        )


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def pages(source: Source) -> Pages:
    return Pages(vitals=lambda: source.vitals, telemetry=source.telemetry, clock=source, version="1")


async def test_health_is_200_or_503_with_the_reasons(pages: Pages, source: Source) -> None:
    well = await pages("/healthz")
    assert (well.status, json.loads(well.body)["healthy"]) == (200, True)
    source.vitals = replace(WELL, not_stored="disk full 盘")
    ill = await pages("/healthz")
    assert ill.status == 503
    assert json.loads(ill.body)["reasons"] == ["the state is not stored: disk full 盘"]


async def test_readiness_does_not_depend_on_sources_or_channels(pages: Pages, source: Source) -> None:
    source.vitals = replace(WELL, answered=0, channels=("a",), broken=("a",))
    assert (await pages("/readyz")).status == 200
    assert (await pages("/healthz")).status == 503
    source.vitals = replace(WELL, since_slot=timedelta(minutes=10))
    assert (await pages("/readyz")).status == 503


async def test_unknown_paths_say_what_there_is(pages: Pages) -> None:
    for path, status in (("/", 200), ("/metrics/", 404), ("/../etc/passwd", 404)):
        page = await pages(path)
        assert page.status == status
        assert b"/metrics" in page.body


async def test_many_scrapes_at_once_are_made_once_a_second(pages: Pages, source: Source) -> None:
    found = await asyncio.gather(*(pages("/metrics") for _ in range(20)))
    assert len({page.body for page in found}) == 1
    assert source.asked == 1
    source.at += timedelta(seconds=1)
    await pages("/metrics")
    assert source.asked == 2
