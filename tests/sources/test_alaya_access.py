"""Who asks and where: credentials checked by the stand-in's own code, prefixes, options."""

from dataclasses import replace
from datetime import timedelta

import pytest

from watchdog.core.durations import to_ns
from watchdog.core.health import Failure
from watchdog.core.logs import LogQuery
from watchdog.core.ruleset import Secret, SourceSpec
from watchdog.demo.cloud import StandInCloud
from watchdog.demo.cloud_auth import Keys
from watchdog.demo.httpd import LoopbackServer, Reply, json_reply
from watchdog.demo.story import calm
from watchdog.errors import SourceError
from watchdog.sources.alaya_auth import Hmac
from watchdog.sources.registry import SOURCE_KINDS


def query(clock) -> LogQuery:
    return LogQuery(start_ns=to_ns(clock.now()) - 10**9, end_ns=to_ns(clock.now()))


async def ask_everything(source, task, clock) -> None:
    await source.list_tasks()
    await source.metric(task, "gpu", since=clock.now() - timedelta(minutes=1), now=clock.now())
    await source.logs(task, query(clock))
    await source.status(task)


@pytest.mark.parametrize("scheme", ["bearer", "hmac", "plain"])
@pytest.mark.parametrize("prefix", ["/v1", "/api/osm/v1"])
async def test_every_scheme_is_accepted_under_every_prefix(clock, build, task, scheme, prefix) -> None:
    async with StandInCloud(calm(), clock=clock, keys=Keys(scheme=scheme), prefixes=(prefix,)) as cloud:
        await ask_everything(build(cloud, auth=scheme), replace(task, id=task.id), clock)


async def test_the_signature_covers_a_path_with_strange_characters(clock, build, task) -> None:
    async with StandInCloud(calm(), clock=clock, keys=Keys(scheme="hmac")) as cloud:
        with pytest.raises(SourceError) as caught:
            await build(cloud, auth="hmac").logs(replace(task, id="a/b é", namespace="x"), query(clock))
        assert caught.value.failure is Failure.NOT_FOUND  # signed well, and no such task


def test_the_signature_is_what_three_clients_agree_on(clock) -> None:
    """Computed with another tool: HMAC-SHA256 of 1789012800000|GET|/v1/training/instance/list with key sk."""
    header = Hmac(Secret("ak"), Secret("sk")).headers("get", "/v1/training/instance/list", clock.now())

    assert header["authorization"] == (
        "alayanew-HMAC-SHA256 ak:1789012800000:"
        "f7131f2ef96c9286c4dc44839af5861147565f8474fd22f0a774b18cfd7c98f3"
    )


@pytest.mark.parametrize("scheme", ["bearer", "hmac", "plain"])
async def test_wrong_keys_are_named(clock, build, scheme) -> None:
    wrong = {"api_key": Secret("other"), "secret_key": Secret("other")}
    async with StandInCloud(calm(), clock=clock, keys=Keys(scheme=scheme)) as cloud:
        with pytest.raises(SourceError) as caught:
            await build(cloud, auth=scheme, **wrong).list_tasks()
    expected = Failure.SIGNATURE if scheme == "hmac" else Failure.KEY_UNKNOWN
    assert (caught.value.failure, caught.value.retryable) == (expected, False)
    assert "other" not in str(caught.value)


async def test_the_documented_prefix_is_preferred_and_remembered(cloud, source, task, clock) -> None:
    await ask_everything(source, task, clock)

    assert {request.prefix for request in cloud.requests} == {"/v1"}
    assert set(source.prefixes.values()) == {"/v1"}


async def test_the_other_prefix_is_found_once_and_kept(clock, build, task) -> None:
    async with StandInCloud(calm(), clock=clock, prefixes=("/api/osm/v1",)) as cloud:
        source = build(cloud)
        await ask_everything(source, task, clock)
        await source.list_tasks()

        assert sum(not request.prefix for request in cloud.requests) == 1  # one try of /v1 in all
        assert "under /api/osm/v1: 1 tasks" in await source.probe()


async def test_a_prefix_that_turns_to_html_is_looked_for_again(cloud, source, task, clock) -> None:
    await source.list_tasks()
    cloud.prefixes = ("/api/osm/v1",)

    await source.list_tasks()

    assert source.prefixes["task list"] == "/api/osm/v1"


async def test_calls_may_live_under_different_prefixes(clock, build, task) -> None:
    """The documents have metrics under /v1; clients read the list under /api/osm/v1."""
    async with StandInCloud(calm(), clock=clock, prefixes=("/v1", "/api/osm/v1")) as cloud:

        async def only(request) -> Reply:
            wrong = request.path.startswith("/v1") and request.path.endswith("/list")
            return (
                await cloud.handle(request) if not wrong else Reply(body=b"<html>", content_type="text/html")
            )

        async with LoopbackServer(only) as front:
            source = build(front.url)
            await ask_everything(source, task, clock)
            await source.close()
    assert source.prefixes == {
        "task list": "/api/osm/v1",
        "metrics": "/api/osm/v1",
        "logs": "/api/osm/v1",
        "pod basic": "/api/osm/v1",
    }


@pytest.mark.parametrize(
    "other",
    [
        json_reply({"error": {"message": "no such model", "code": "invalid_api_key"}}, 401),
        json_reply({"timestamp": 1, "status": 404, "error": "Not Found"}, 404),
        Reply(status=404, body=b"<html>", content_type="text/html"),
        json_reply([], 200),
    ],
    ids=["model API", "framework 404", "HTML 404", "other JSON"],
)
async def test_something_else_under_v1_is_not_the_api(clock, build, task, other) -> None:
    async with StandInCloud(calm(), clock=clock, prefixes=("/api/osm/v1",)) as cloud:

        async def front(request) -> Reply:
            return await cloud.handle(request) if request.path.startswith("/api/osm") else other

        async with LoopbackServer(front) as server:
            source = build(server.url)
            await ask_everything(source, task, clock)
            await source.close()
    assert set(source.prefixes.values()) == {"/api/osm/v1"}


async def test_a_refused_key_is_no_reason_to_try_another_prefix(cloud, build) -> None:
    with pytest.raises(SourceError) as caught:
        await build(cloud, api_key=Secret("other")).list_tasks()

    assert caught.value.failure is Failure.KEY_UNKNOWN
    assert [request.prefix for request in cloud.requests] == ["/v1"]


async def test_a_configured_prefix_is_the_only_one(clock, build) -> None:
    async with StandInCloud(calm(), clock=clock, prefixes=("/api/osm/v1",)) as cloud:
        with pytest.raises(SourceError) as caught:
            await build(cloud, prefix="v1/").list_tasks()
        assert caught.value.failure is Failure.NOT_JSON
        await build(cloud, prefix="/api/osm/v1").list_tasks()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "api_key is missing.*JOB_WATCHDOG_ALAYA_EAST_API_KEY"),
        ({"auth": "hmac", "access_key": "a"}, "secret_key is missing"),
        ({"api_key": "with space"}, "api_key contains"),
        ({"api_key": "k", "auth": "basic"}, "auth must be one of bearer, hmac, plain"),
        ({"api_key": "k", "timezone": "Mars/Olympus"}, "timezone: 'Mars/Olympus'"),
        ({"api_key": "k", "timeout": "0s"}, "timeout must be longer"),
        ({"api_key": "k", "timeout": "soon"}, "not a duration"),
        ({"api_key": "k", "concurrency": "0.5"}, "concurrency must be a whole number"),
        ({"api_key": "k", "rate": "no"}, "rate must be a number"),
        ({"api_key": "k", "rate": "-1"}, "rate must be above 0"),
        ({"api_key": "k", "base_url": "nowhere"}, "base_url"),
        ({"api_key": "k", "tokn": "x"}, "unknown option 'tokn'"),
    ],
)
def test_unusable_options_are_named(clock, options, complaint) -> None:
    spec = SourceSpec(name="alaya-east", kind="alaya", options=options)
    with pytest.raises(ValueError, match=complaint):
        SOURCE_KINDS["alaya"].build(spec, clock)


def test_options_may_be_typed_or_text(clock) -> None:
    for timeout, rate in (("45s", "2.5"), (timedelta(seconds=45), 2.5)):
        options = {"api_key": Secret("k"), "timeout": timeout, "rate": rate, "concurrency": 2}
        source = SOURCE_KINDS["alaya"].build(SourceSpec(name="a", kind="alaya", options=options), clock)
        assert source.name == "a"


def test_the_option_table_says_what_each_is_for() -> None:
    for kind in SOURCE_KINDS.values():
        assert all(option.doc.endswith(".") for option in kind.options)
        assert len({option.name for option in kind.options}) == len(kind.options)
