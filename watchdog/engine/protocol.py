"""What is said over the control socket: one JSON object a line, typed on both sides.

A request names its verb and the version it speaks; an answer is a view, or an error with a code. Owns the
requests, the envelope and its limits; the views are `views`. Used by the daemon and by the verbs.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from watchdog.core.labels import Labels

VERSION = 1
MAX_REQUEST = 16 * 1024  # bytes of one line, its end included
MAX_ANSWER = 8 * 1024 * 1024
MAX_ROWS = 500  # of one list in an answer

Text = Annotated[str, msgspec.Meta(max_length=512)]
Count = Annotated[int, msgspec.Meta(ge=1, le=MAX_ROWS)]


class ErrorCode(StrEnum):
    """Why there is no answer."""

    BAD_REQUEST = "bad request"
    VERSION = "other version"
    BUSY = "busy"
    NOT_FOUND = "not found"
    AMBIGUOUS = "ambiguous"
    TOO_LARGE = "too large"
    TOO_SLOW = "too slow"
    FAILED = "failed"


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """A request that cannot be answered; the text is one line for people."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        self.code = code
        super().__init__(message)


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="verb"):
    """What every request has."""

    v: int = VERSION


class Status(Request, frozen=True, tag="status"):
    """How everything stands."""


class History(Request, frozen=True, tag="history"):
    """Incidents, open ones first, then the newest."""

    limit: Count = 50
    rule: Text = ""  # glob
    task: Text = ""  # glob; the name or the key
    open: bool = False  # only what has not ended


class Show(Request, frozen=True, tag="show"):
    """One incident with its evidence. `incident`: its id, or a beginning of it that only one has."""

    incident: Text


class Why(Request, frozen=True, tag="why"):
    """What was decided and tried for one incident."""

    incident: Text


class Explain(Request, frozen=True, tag="explain"):
    """Why a rule does or does not fire."""

    rule: Text
    task: Text = ""


class Metrics(Request, frozen=True, tag="metrics"):
    """What a task offers, asked now."""

    source: Text
    task: Text


class Forget(Request, frozen=True, tag="forget"):
    """Forget what is known of a task, or that it is expected to have a pod."""

    task: Text
    pod: Text = ""


class Reload(Request, frozen=True, tag="reload"):
    """Load the rule file anew."""


class TestNotify(Request, frozen=True, tag="test-notify"):
    """Send a sample to one channel, or to all."""

    __test__ = False  # no test case, whatever pytest makes of its name

    channel: Text = ""


class Names(Request, frozen=True, tag="names"):
    """The names that verbs take as arguments, for shell completion."""


AnyRequest = Status | History | Show | Why | Explain | Metrics | Forget | Reload | TestNotify | Names


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The envelope of an answer: a result, or a code and a message."""

    v: int = VERSION
    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    code: str = ""
    message: str = ""


_REQUEST = msgspec.json.Decoder(AnyRequest)
_ANSWER = msgspec.json.Decoder(Answer)


class _Spoken(msgspec.Struct):
    v: int = VERSION


def read_request(line: bytes) -> AnyRequest:
    """Read one line.

    Raises:
        Refusal: it is no request that this version knows.
    """
    try:
        spoken = msgspec.json.decode(line, type=_Spoken).v
        if spoken != VERSION:
            message = f"version {spoken} is spoken there, {VERSION} here: use the same version of both"
            raise Refusal(ErrorCode.VERSION, message)
        return _REQUEST.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(ErrorCode.BAD_REQUEST, str(error)) from None


def write_request(request: AnyRequest) -> bytes:
    """Return a request as one line."""
    return msgspec.json.encode(request) + b"\n"


def write_result(view: object) -> bytes:
    """Return a view as one line, as an answer."""
    try:
        result = msgspec.Raw(msgspec.json.encode(view, enc_hook=_plain))
    except UnicodeEncodeError:  # a log line or an answer from outside with half a surrogate pair in it
        result = msgspec.Raw(msgspec.json.encode(_whole(msgspec.to_builtins(view, enc_hook=_plain))))
    line = msgspec.json.encode(Answer(ok=True, result=result)) + b"\n"
    if len(line) > MAX_ANSWER:
        return write_refusal(Refusal(ErrorCode.TOO_LARGE, f"the answer has {len(line)} bytes: ask for less"))
    return line


def write_refusal(refusal: Refusal) -> bytes:
    """Return a refusal as one line."""
    return msgspec.json.encode(Answer(ok=False, code=refusal.code, message=str(refusal))) + b"\n"


def read_answer(line: bytes) -> Answer:
    """Read one answer.

    Raises:
        ValueError: it is none.
    """
    return _ANSWER.decode(line)


def _whole(value: object) -> object:
    """Return plain values without halves of surrogate pairs."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_whole(name): _whole(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(one) for one in value]
    return value


def _plain(value: object) -> object:
    if isinstance(value, Labels):
        return dict(value)
    raise NotImplementedError(f"cannot say a {type(value).__name__}")
