"""Whatever comes in as a request is a request or is refused, and never anything else."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchdog.engine.protocol import (
    MAX_ANSWER,
    AnyRequest,
    ErrorCode,
    Refusal,
    Request,
    read_answer,
    read_request,
    write_request,
    write_result,
)

VERBS = [cls.__struct_config__.tag for cls in Request.__subclasses__()]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.dictionaries(
    st.sampled_from(["v", "incident", "rule", "task", "pod", "limit", "open", "source", "channel", "x"]), JSON
)


def tried(line: bytes) -> AnyRequest | None:
    """Return the request, None if it was refused properly."""
    try:
        return read_request(line)
    except Refusal as error:
        refusal = error
    assert refusal.code in (ErrorCode.BAD_REQUEST, ErrorCode.VERSION)
    assert str(refusal)
    return None


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(line: bytes) -> None:
    tried(line)


@settings(max_examples=400, deadline=None)
@given(JSON)
def test_any_json(value: object) -> None:
    tried(json.dumps(value).encode("utf-8", "surrogatepass"))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(VERBS), FIELDS)
def test_any_fields_of_a_verb(verb: str, fields: dict[str, object]) -> None:
    request = tried(json.dumps({"verb": verb, **fields}).encode("utf-8", "surrogatepass"))
    if request is not None:
        assert read_request(write_request(request)) == request


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_request_that_is_understood(verb: str) -> None:
    needed = {"show": ["incident"], "why": ["incident"], "explain": ["rule"]}
    needed |= {"metrics": ["source", "task"], "forget": ["task"]}
    fields = dict.fromkeys(needed.get(str(verb), []), "a")
    request = read_request(json.dumps({"verb": verb, "v": 1, **fields}).encode())
    assert request.__struct_config__.tag == verb


def test_half_a_surrogate_pair_in_an_answer_does_not_spoil_it() -> None:
    answer = read_answer(write_result({"text": "a\ud800b", "list": ["\udfff"], "\ud800": 1}))
    found = msgspec.json.decode(answer.result)
    assert found == {"text": "a\ufffdb", "list": ["\ufffd"], "\ufffd": 1}


def test_an_answer_that_is_too_large_says_so() -> None:
    answer = read_answer(write_result({"text": "x" * MAX_ANSWER}))
    assert (answer.ok, answer.code) == (False, ErrorCode.TOO_LARGE)
