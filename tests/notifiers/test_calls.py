"""Calling the dead man's switch over real HTTP on loopback."""

from datetime import timedelta

import pytest

from watchdog.notifiers.calls import MAX_BODY, call_url


async def test_a_call_is_a_post_whose_body_says_how_it_stands(webhook) -> None:
    assert await call_url(webhook.url("http", "/key/fail?create=1"), "no source: 0 of 3") == ""
    (seen,) = webhook.seen
    assert (seen.method, seen.path, seen.body) == ("POST", "/key/fail?create=1", "no source: 0 of 3")


async def test_a_long_body_is_cut(webhook) -> None:
    await call_url(webhook.url("http"), "€" * 100_000)
    assert webhook.seen[0].body == "€" * MAX_BODY


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, "OK", ""),
        (201, "Created", ""),
        (200, "OK (not found)", "HTTP 200, OK (not found)"),
        (404, "not found", "HTTP 404"),
        (302, "", "HTTP 302"),
        (500, "key abcdef", "HTTP 500"),
    ],
)
async def test_only_a_call_that_was_heard_counts(webhook, reply, status: int, body: str, said: str) -> None:
    webhook.plays(reply(status=status, body=body, headers={"Location": "/else"}))
    assert await call_url(webhook.url("http"), "") == said


async def test_an_outside_that_hangs_is_left(webhook, reply) -> None:
    webhook.plays(reply(mode="hang"))
    assert await call_url(webhook.url("http"), "", timedelta(milliseconds=200)) == "timed out"


async def test_what_cannot_be_reached_is_named_without_the_address(closed_port: int) -> None:
    said = await call_url(f"http://127.0.0.1:{closed_port}/secret-key", "")
    assert said == "unreachable (ConnectError)"


async def test_a_broken_answer_is_no_crash(webhook, reply) -> None:
    webhook.plays(reply(mode="drop"))
    assert (await call_url(webhook.url("http"), "")).startswith("unreachable (")
